// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The failure block that torchelastic prints at its end ("Failures:", "Root Cause (first observed
// failure):") with its entries of rank, exit code, pid, time and traceback text. Spans lines, so it
// is a machine of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/logs/record.h"

namespace rankscope::logs {

class ElasticSummaryMachine {
 public:
  // Literals one of which is in a line that begins the block.
  static constexpr std::string_view kAnchors[] = {"Failures:",
                                                  "Root Cause (first observed failure)"};

  bool open() const { return open_; }
  // As TracebackMachine::Feed. Entries become kSignalDeath or kNonZeroExit incidents with role
  // kWrapper; sub kRootCause for the entry that the launcher calls so.
  bool Feed(const CleanLine& line, RecordList& out);
  void Flush(RecordList& out);

  template <class A>
  void Fields(A& a) {
    a(open_, root_, entry_, has_entry_, lines_);
  }

 private:
  bool ReadEntryLine(std::string_view text, const CleanLine& line);

  bool open_ = false;
  bool root_ = false;
  Incident entry_;
  bool has_entry_ = false;
  int32_t lines_ = 0;
};

}  // namespace rankscope::logs
