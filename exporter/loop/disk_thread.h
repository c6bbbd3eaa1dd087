// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A thread for what the daemon writes to its own disk. Jobs run there one after the other, and what
// they return runs on the loop thread; a disk that hangs keeps this thread waiting, and no tick.
// The queue is bounded in jobs and bytes. Everything here is called on the loop thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "detectors/model/time.h"
#include "exporter/loop/event_loop.h"

namespace rankscope::exporter {

class DiskThread {
 public:
  // Shares nothing with the loop; the returned function (may be empty) runs on the loop.
  using Job = std::function<std::function<void()>()>;

  struct Bounds {
    size_t jobs = 4096;       // of 100 bytes and what they hold
    size_t bytes = 16 << 20;  // that jobs say they hold: what a busy node records in some minutes
  };

  explicit DiskThread(EventLoop& loop) : DiskThread(loop, Bounds{}) {}
  DiskThread(EventLoop& loop, Bounds bounds);
  // Drops what waits. See Stop.
  ~DiskThread();
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;

  // False when the queue is full, the kernel has no thread to give, or Stop was called: the caller
  // has a lost job to count.
  [[nodiscard]] bool Submit(Job job, size_t bytes = 0);

  // Waits until everything submitted so far has run, no longer than `patience`; false: it has not.
  bool Drain(Duration patience);

  // How long the job that runs now has been running; 0 = none runs.
  Duration behind() const;

  // Lets what waits still run, no longer than `patience`, and delivers nothing more. A thread that
  // does not come back is left behind, for it may hang in the kernel for good.
  void Stop(Duration patience);

 private:
  struct Shared;
  void Start();

  EventLoop& loop_;
  const Bounds bounds_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace rankscope::exporter
