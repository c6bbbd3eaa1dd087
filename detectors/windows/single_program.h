// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a job that nobody has numbered ranks for is one program on this node: its command is a
// Python program, and nothing of the job starts programs elsewhere or passes on what they print. So
// its words come from here. Where that is not seen, it is not known. Single writer.
#pragma once

#include "detectors/attribution/process_info.h"

namespace rankscope::windows {

class SingleProgram {
 public:
  // Each start and exec of a process of the job; `command`: it is what the wrapper has started.
  void OnStart(const attribution::ProcessInfo& process, bool command);

  bool holds() const { return python_ && !launches_; }

  template <class A>
  void Fields(A& a) {
    a(python_, launches_);
  }

 private:
  bool python_ = false;
  bool launches_ = false;
};

}  // namespace rankscope::windows
