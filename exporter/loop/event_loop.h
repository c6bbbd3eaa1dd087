// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One epoll loop: the thread that owns every source's state, the engine and the windows. Everything
// here is called on the loop thread, except Post and Stop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "detectors/model/result.h"
#include "detectors/model/time.h"

namespace rankscope::exporter {

class EventLoop {
 public:
  using IoCallback = std::function<void(uint32_t epoll_events)>;
  using TimerId = int64_t;

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // `epoll_events`: EPOLLIN and so on. The fd stays the caller's; Unwatch before closing it.
  // Callbacks may watch and unwatch.
  Status Watch(int fd, uint32_t epoll_events, IoCallback callback);
  Status Modify(int fd, uint32_t epoll_events);
  void Unwatch(int fd);

  // First after `interval`, then on its grid; missed beats are skipped, not made up.
  TimerId Every(Duration interval, std::function<void()> callback);
  TimerId After(Duration delay, std::function<void()> callback);
  void Cancel(TimerId id);

  // Before sources are stopped one after the other: what each waits for at its end begins to end,
  // all side by side.
  TimerId AtStop(std::function<void()> begin);
  void NotAtStop(TimerId id);
  void BeginStop();

  // Any thread: runs `work` on the loop thread soon, in order of posting.
  void Post(std::function<void()> work);

  void Run();   // until Stop
  void Stop();  // any thread, and from signal handlers

  // CLOCK_MONOTONIC, read once per wake-up: the one clock of the daemon.
  Timestamp Now() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope::exporter
