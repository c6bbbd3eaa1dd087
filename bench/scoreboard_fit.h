// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How often verdicts were right, by group of families and by what they rest on: the rows of
// detectors/families/confidence.inc. Single thread.
#pragma once

#include <array>

#include "bench/scoreboard_board.h"
#include "detectors/families/confidence.h"

namespace rankscope::bench {

class Fit {
 public:
  void Add(const generator::Truth& truth, const Judgement& judgement);
  // Each row with the number of verdicts behind it. Shares of few verdicts lean on what the ground
  // is worth by itself; no row falls from a ground to a surer one.
  void Print() const;

 private:
  struct Cell {
    double jobs = 0, right = 0;
  };
  static constexpr int kGrounds = proto::GROUND_RECORD;
  using Row = std::array<Cell, kGrounds>;

  static std::array<double, kGrounds> Rise(const Row& row);

  std::array<Row, families::kGroups> rows_{};
};

}  // namespace rankscope::bench
