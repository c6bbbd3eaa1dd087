// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The status of Ray Tune and Ray Train: a table that is printed again every few seconds, a row for
// each trial, and in it what its newest result said. Only the first trial that is seen counts:
// those beside it train other models. One per stream, on the reader's thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detectors/logs/record.h"

namespace rankscope::logs {

class TrialTable {
 public:
  bool open() const { return !keys_.empty(); }
  // Opens a table at its header; any other text is ignored.
  void Observe(std::string_view text);
  // Offers a line to the open table; true where it belongs to it.
  bool Feed(const CleanLine& line, RecordList& out);

  template <class A>
  void Fields(A& a) {
    a(keys_, boxed_, trial_, step_);
  }

 private:
  std::string keys_;    // a column each: its Key as a byte
  bool boxed_ = false;  // its columns stand in a box, with blanks between
  std::string trial_;   // the name of the one that counts
  std::string step_;    // its newest
};

}  // namespace rankscope::logs
