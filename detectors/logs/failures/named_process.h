// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Launchers of MPI name a process in one line and say in the next how it ended. One instance per
// stream.
#pragma once

#include <cstdint>
#include <string>

#include "detectors/logs/record.h"

namespace rankscope::logs {

class NamedProcess {
 public:
  // Takes the records of lines that only name a process out of `records`, and gives the name to the
  // line that follows.
  void Feed(RecordList& records);

  template <class A>
  void Fields(A& a) {
    a(rank_, pid_, node_, offset_);
  }

 private:
  int32_t rank_ = -1;  // -1: nobody is named
  int32_t pid_ = 0;
  std::string node_;
  int64_t offset_ = 0;
};

}  // namespace rankscope::logs
