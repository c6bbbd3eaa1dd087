// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One thread for a source that may block: jobs run there one after the other, what they return runs
// on the loop thread. A job past its deadline is reported once on the loop thread, and its late
// result is still delivered when it comes, so the source can say "down" and then "up" again.
// Everything here is called on the loop thread.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "detectors/model/time.h"
#include "exporter/loop/event_loop.h"

namespace rankscope::exporter {

class Worker {
 public:
  // Runs on the worker's thread, shares nothing with the loop; the returned function (may be empty)
  // runs on the loop.
  using Job = std::function<std::function<void()>()>;

  // Makes the thread; what it returns is not joinable where it cannot.
  using Starter = std::function<std::thread(std::function<void()> body)>;

  explicit Worker(EventLoop& loop);
  // With a thread of another kind. Where there is none the worker takes no job.
  Worker(EventLoop& loop, const Starter& start);
  // Waits a moment for the running job; a thread that does not come back is left behind, for it may
  // hang in the kernel for good, and its result is dropped.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The first half of the destructor, which need not be called: delivers nothing more and lets the
  // wait begin. Called of many before the first is destroyed, their waits run side by side;
  // EventLoop::BeginStop calls it of all.
  void BeginStop();

  // False when kMaxQueued jobs wait already: the thread is stuck or too slow, and the caller has a
  // lost job to count.
  [[nodiscard]] bool Submit(Job job, Duration deadline, std::function<void()> on_late);

  // Jobs submitted and not yet delivered.
  int pending() const;
  // Whether it has a thread.
  bool works() const;

  static constexpr int kMaxQueued = 64;  // a scan each second and a burst of new processes

 private:
  struct Shared;
  struct Local;
  static std::function<void()> Body(std::shared_ptr<Shared> shared);
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Local> local_;
};

}  // namespace rankscope::exporter
