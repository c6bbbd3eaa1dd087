// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the scoreboard counts: verdicts beside truths, by family and in sum. Single thread.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "tests/generator/plan.h"

namespace rankscope::bench {

struct Judgement {
  struct Change {
    double t = 0;  // seconds after the recording's time 0
    std::string code;
  };
  std::string code, sub;
  double confidence = 0;
  int ground = 0;  // proto::Ground; 0 = not known
  std::vector<int> ranks;
  std::vector<Change> changes;  // the first verdict is the first change

  // When it named a code that is right and stood until the onset or came after it; < 0: never.
  double NamedAt(const generator::Truth& truth) const;
  int Changed() const { return changes.empty() ? 0 : static_cast<int>(changes.size()) - 1; }
};

bool IsFault(const std::string& code);
bool IsRight(const generator::Truth& truth, const std::string& code);

class Board {
 public:
  void Add(const generator::Truth& truth, const Judgement& judgement);
  void PrintFamilies() const;
  void PrintSums() const;
  // One row of the table of conditions, and its head.
  static void PrintHead();
  void PrintRow(const std::string& name) const;

  // By the names of `--at-least` and `--at-most`; NaN for other names.
  double Value(const std::string& name) const;
  double healthy_node_days() const;

 private:
  struct Row {
    int jobs = 0, decidable = 0, right = 0, sure_right = 0, named_wrongly = 0;
    int culprits = 0, culprits_right = 0, abstained = 0, subs = 0, subs_right = 0;
    std::vector<double> delays;
    double precision() const;
    double recall() const;
    double f1() const;
  };
  void AddHealthy(const generator::Truth& truth, const Judgement& judgement);
  Row Sum() const;

  std::map<std::string, Row> rows_;
  std::array<int, 10> bin_jobs_{}, bin_right_{};
  std::array<double, 10> bin_confidence_{};
  int jobs_ = 0, sure_wrong_ = 0;
  int healthy_ = 0, healthy_blamed_ = 0, healthy_called_ = 0, healthy_changes_ = 0, changes_ = 0;
  double healthy_seconds_ = 0, healthy_node_seconds_ = 0, seconds_ = 0, brier_ = 0;
};

}  // namespace rankscope::bench
