// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Counts what threads do by looking at them each second, where the kernel does not count it for us:
// time on a CPU and in its queue are the kernel's own numbers, the rest of a second goes to the
// class of wait that the thread is seen in. Used by one thread at a time: the worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "exporter/probes/wait/thread_reader.h"
#include "exporter/probes/wait/thread_times.h"

namespace rankscope::probes {

class ThreadSampler {
 public:
  // A thread costs five small files, 20 us; so many are 1 % of a core. The main thread of each
  // process comes first.
  static constexpr size_t kMostThreads = 512;

  explicit ThreadSampler(ThreadReader reader) : reader_(std::move(reader)) {}

  std::vector<ThreadTimes> Sample(const std::vector<int32_t>& pids, Timestamp now);

 private:
  struct Seen {
    ThreadTimes times;
    Duration ran{-1};
    Duration runnable{-1};
    int64_t round = 0;
  };
  void Count(const ThreadLook& look, Timestamp now, Seen& seen) const;

  ThreadReader reader_;
  std::map<int32_t, Seen> seen_;
  int64_t round_ = 0;
};

// A thread that nothing is known of but this look: it has been in its class since `now`.
ThreadTimes FirstSight(int32_t pid, const ThreadLook& look, Timestamp now);

}  // namespace rankscope::probes
