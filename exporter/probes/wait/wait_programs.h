// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The programs of bpf/sched.bpf.c in the kernel: loads them, attaches them while there is somebody
// to watch, reads what they have counted. Everything is undone by the destructor, in milliseconds.
// Loop thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/probes/wait/thread_times.h"

namespace rankscope::probes {

class WaitPrograms {
 public:
  // `tracked`: the map of bpf/tracked.h.
  static Result<std::unique_ptr<WaitPrograms>> Load(int tracked);
  ~WaitPrograms();
  WaitPrograms(const WaitPrograms&) = delete;
  WaitPrograms& operator=(const WaitPrograms&) = delete;

  Status Attach();
  void Detach();
  bool attached() const;

  // Whom the programs look at from now on; they must be in `tracked` as well.
  void Watch(std::span<const int32_t> pids);
  // Tells of a thread that has not been switched since the programs run; nothing where they know
  // it.
  void Seed(const ThreadTimes& thread);
  // All threads. Those that have ended, and those of processes not watched any more, are forgotten.
  std::vector<ThreadTimes> Read();

  int64_t lost() const;  // threads for which there was no room

 private:
  struct Impl;
  explicit WaitPrograms(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope::probes
