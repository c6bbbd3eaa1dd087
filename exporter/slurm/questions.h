// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the engine wants to know of Slurm, until the source that asks takes it up. Loop thread only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <utility>

namespace rankscope::exporter::slurm {

struct Question {
  std::string job_id;
  bool ended = false;  // it ended abnormally; else: it has begun
  // Not empty: what is left of this job is asked for, which job_id may go on from.
  std::string parent{};
  bool owner = false;  // whose it is, and nothing else
  bool wish = false;   // whom its comment wants to be told, and nothing else
  bool operator==(const Question&) const = default;
};

class Questions {
 public:
  // A node has some jobs at once; the oldest gives way.
  static constexpr size_t kMost = 64;

  void Ask(Question question) {
    if (std::find(asked_.begin(), asked_.end(), question) != asked_.end()) return;
    asked_.push_back(std::move(question));
    if (asked_.size() > kMost) asked_.pop_front();
  }
  std::deque<Question> Take() { return std::exchange(asked_, {}); }

  // Whether somebody is there who can tell whose a job is.
  void set_tells_owners(bool tells) { tells_owners_ = tells; }
  bool tells_owners() const { return tells_owners_; }

 private:
  std::deque<Question> asked_;
  bool tells_owners_ = false;
};

}  // namespace rankscope::exporter::slurm
