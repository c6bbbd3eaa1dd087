// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is counted of one thread, by the kernel or by looking into /proc each second. Plain data.
#pragma once

#include <array>
#include <cstdint>

#include "detectors/model/time.h"
#include "detectors/model/wait_class.h"

namespace rankscope::probes {

struct ThreadTimes {
  int32_t tid = 0;
  int32_t tgid = 0;
  WaitClass state = WaitClass::kRunning;
  Timestamp since;       // when it began
  Timestamp counted_to;  // `spent` holds everything up to here
  int32_t call = -1;     // the system call it waits in; -1 = none
  bool uninterruptible = false;
  bool ended = false;
  std::array<Duration, kWaitClasses> spent{};  // finished intervals
  Duration run;                                // on a CPU since the last wait, before `counted_to`
  Duration silent;                             // of finished runs that were long; see RS_SILENT_NS

  Duration Spent(WaitClass of, Timestamp now) const {
    const Duration finished = spent[static_cast<size_t>(of)];
    return of == state && now > counted_to ? finished + (now - counted_to) : finished;
  }
  // With the run that still goes on.
  Duration Silent(Timestamp now) const;
  Duration Waited(Timestamp now) const {
    return IsOnCpu(state) || now < since ? Duration{} : now - since;
  }
};

}  // namespace rankscope::probes
