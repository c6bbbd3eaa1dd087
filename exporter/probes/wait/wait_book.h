// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Adds up threads to processes: running totals that never fall when a thread ends, and what stands
// still now. Pure but for what it remembers; loop thread only.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "detectors/model/ids.h"
#include "detectors/model/observation.h"
#include "exporter/probes/wait/thread_times.h"

namespace rankscope::probes {

struct ProcessTimes {
  std::array<double, kWaitClasses> seconds{};
  double silent_seconds = 0;
  double main_running_seconds = 0;
  double main_runnable_seconds = 0;
  WaitClass main = WaitClass::kRunning;
  double main_wait_seconds = 0;
  // Of waits that only a device or a server ends: files, locks on them, the GPU, the
  // uninterruptible.
  double oldest_wait_seconds = 0;
  int32_t uninterruptible = 0;
  int32_t threads = 0;
};

class WaitBook {
 public:
  // All threads known of these processes. Ended ones are added for good: tell of each of them once.
  void Update(const std::vector<ProcessKey>& processes, std::span<const ThreadTimes> threads,
              Timestamp now);

  // Of a process of the last Update; null where no thread of it was told of.
  const ProcessTimes* Find(const ProcessKey& process) const;
  // What has changed since the last call for it.
  std::vector<Sample> TakeSamples(const ProcessKey& process);

 private:
  struct Ended {
    std::array<Duration, kWaitClasses> spent{};
    Duration silent;
  };
  struct Page {
    Ended ended;
    ProcessTimes now;
    std::map<SignalId, double> told;
    bool seen = false;
  };
  std::map<ProcessKey, Page> pages_;
};

}  // namespace rankscope::probes
