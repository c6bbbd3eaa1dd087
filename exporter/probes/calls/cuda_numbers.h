// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the kernel has counted of one process's calls into CUDA, as samples. Pure but for its
// memory of the last look; one for each process.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "bpf/events/calls.h"
#include "detectors/model/launch_gaps.h"
#include "detectors/model/observation.h"

namespace rankscope::probes {

// While the probes were on, of the time since the last look.
struct LaunchWatch {
  double share = 1;      // 1: all the time, so that each launch was counted
  int64_t since_ns = 0;  // when they were put on last
  int64_t until_ns = 0;  // when they were taken off; 0 = they are on
  bool timed = true;     // synchronisations, copies and allocations, each of them
  int64_t timed_since_ns = 0;
};

// Whether this thread of the process still is.
using ThreadLives = std::function<bool(uint32_t thread)>;

class CudaNumbers {
 public:
  // Counters are totals; what has not been seen yet (a launch, a failure) is left out.
  std::vector<Sample> Take(const rs_cuda_counts& counts, int64_t now_ns, const LaunchWatch& watch,
                           const ThreadLives& lives);

  // All launches, of kernels and graphs, counted once whatever layers they went through.
  static uint64_t LaunchesOf(const rs_cuda_counts& counts) {
    return counts.launches + counts.graphs;
  }

  // Whether it has done anything that needs a device: a synchronisation alone may have failed.
  static bool HasWorked(const rs_cuda_counts& counts) {
    return LaunchesOf(counts) + counts.allocated_bytes + counts.copied_bytes > 0;
  }

 private:
  double LargestGap(const rs_cuda_counts& counts, int64_t now_ns, const LaunchWatch& watch) const;
  void TimeLaunches(const rs_cuda_counts& counts);
  void AddGaps(const rs_cuda_counts& counts, std::vector<Sample>& samples);

  int64_t looked_ns_ = 0;
  uint64_t told_launches_ = 0;  // never fewer, whatever turns out of who reaches the driver
  // The histogram as it was told last; nothing before the first launch.
  std::array<uint64_t, kLaunchGapSlots> gaps_{};
  uint64_t gap_ns_ = 0;
  uint64_t gap_looks_ = 0;
  uint64_t launches_ = 0;
  uint64_t timed_launches_ = 0;
  uint64_t timed_ns_ = 0;
  double told_sync_seconds_ = 0;  // never fewer
  double launch_seconds_ = 0;
  double mean_launch_seconds_ = 0;  // of the last timed window; 0 = none yet
};

}  // namespace rankscope::probes
