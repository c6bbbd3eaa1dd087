// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exporter/loop/boot_clock.h"

namespace rankscope::exporter {
namespace {

Timestamp ReadNow() {
  return {ReadClock(CLOCK_MONOTONIC)};
}

// Marks the wake-up fd among the watched ones.
constexpr uint64_t kWakeTag = ~uint64_t{0};

// A wait never lasts longer: epoll_wait's milliseconds are an int.
constexpr int64_t kLongestWaitMs = 3'600'000;

// Events taken per wake-up; what is left is taken by the next.
constexpr int kEventsPerWake = 64;

}  // namespace

struct EventLoop::Impl {
  struct Watched {
    uint32_t generation = 0;  // tells a reused fd from the one that a waiting event was meant for
    std::shared_ptr<IoCallback> callback;
  };
  struct Timer {
    Timestamp due;
    Duration interval;  // 0 = once
    std::shared_ptr<std::function<void()>> callback;
  };

  int epoll_fd = -1;
  int wake_fd = -1;
  std::unordered_map<int, Watched> watched;
  uint32_t next_generation = 0;
  std::map<TimerId, Timer> timers;
  std::set<std::pair<Timestamp, TimerId>> due;
  TimerId next_timer = 1;
  std::map<TimerId, std::function<void()>> at_stop;
  std::mutex inbox_mutex;
  std::vector<std::function<void()>> inbox;
  std::atomic<bool> stop{false};
  static_assert(std::atomic<bool>::is_always_lock_free, "Stop is called from signal handlers");
  bool running = false;
  Timestamp now;

  void Wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written =
        write(wake_fd, &one, sizeof one);  // full = awake already
  }

  TimerId AddTimer(Timestamp at, Duration interval, std::function<void()> callback) {
    const TimerId id = next_timer++;
    timers[id] = {at, interval, std::make_shared<std::function<void()>>(std::move(callback))};
    due.emplace(at, id);
    return id;
  }

  int WaitMs() const {
    if (due.empty()) return static_cast<int>(kLongestWaitMs);
    const int64_t ns = due.begin()->first.ns - now.ns;
    // Rounded up: waking early would spin until the timer is due.
    return static_cast<int>(std::clamp<int64_t>((ns + 999'999) / 1'000'000, 0, kLongestWaitMs));
  }

  void RunTimers() {
    // Timers that callbacks add are not run in this pass, or a zero delay would starve the fds.
    std::vector<TimerId> ripe;
    for (const auto& [at, id] : due) {
      if (at > now) break;
      ripe.push_back(id);
    }
    for (const TimerId id : ripe) {
      const auto found = timers.find(id);
      if (found == timers.end()) continue;
      Timer& timer = found->second;
      due.erase({timer.due, id});
      const auto callback = timer.callback;
      if (timer.interval.ns == 0) {
        timers.erase(found);
      } else {
        const int64_t beats = (now.ns - timer.due.ns) / timer.interval.ns + 1;
        timer.due = timer.due + Duration{beats * timer.interval.ns};
        due.emplace(timer.due, id);
      }
      (*callback)();
    }
  }

  void RunInbox() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_fd, &count, sizeof count);
    std::vector<std::function<void()>> work;
    {
      const std::lock_guard lock(inbox_mutex);
      work.swap(inbox);
    }
    for (auto& one : work) one();
  }
};

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {
  impl_->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  impl_->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeTag;
  // Without these three nothing can run; there is nobody to report to yet.
  if (impl_->epoll_fd < 0 || impl_->wake_fd < 0 ||
      epoll_ctl(impl_->epoll_fd, EPOLL_CTL_ADD, impl_->wake_fd, &event) != 0) {
    std::abort();
  }
  impl_->now = ReadNow();
}

EventLoop::~EventLoop() {
  close(impl_->wake_fd);
  close(impl_->epoll_fd);
}

Status EventLoop::Watch(int fd, uint32_t epoll_events, IoCallback callback) {
  const uint32_t generation = ++impl_->next_generation;
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = static_cast<uint64_t>(generation) << 32 | static_cast<uint32_t>(fd);
  if (epoll_ctl(impl_->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
    return Error{"cannot watch fd " + std::to_string(fd) + ": " + std::strerror(errno)};
  }
  impl_->watched[fd] = {generation, std::make_shared<IoCallback>(std::move(callback))};
  return {};
}

Status EventLoop::Modify(int fd, uint32_t epoll_events) {
  const auto found = impl_->watched.find(fd);
  if (found == impl_->watched.end()) {
    return Error{"fd " + std::to_string(fd) + " is not watched"};
  }
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 =
      static_cast<uint64_t>(found->second.generation) << 32 | static_cast<uint32_t>(fd);
  if (epoll_ctl(impl_->epoll_fd, EPOLL_CTL_MOD, fd, &event) != 0) {
    return Error{"cannot change the watch of fd " + std::to_string(fd) + ": " +
                 std::strerror(errno)};
  }
  return {};
}

void EventLoop::Unwatch(int fd) {
  if (impl_->watched.erase(fd) == 0) return;
  epoll_ctl(impl_->epoll_fd, EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerId EventLoop::Every(Duration interval, std::function<void()> callback) {
  const Duration positive = std::max(interval, Duration{1'000'000});
  return impl_->AddTimer(Now() + positive, positive, std::move(callback));
}

EventLoop::TimerId EventLoop::After(Duration delay, std::function<void()> callback) {
  return impl_->AddTimer(Now() + std::max(delay, Duration{}), Duration{}, std::move(callback));
}

void EventLoop::Cancel(TimerId id) {
  const auto found = impl_->timers.find(id);
  if (found == impl_->timers.end()) return;
  impl_->due.erase({found->second.due, id});
  impl_->timers.erase(found);
}

EventLoop::TimerId EventLoop::AtStop(std::function<void()> begin) {
  const TimerId id = impl_->next_timer++;
  impl_->at_stop[id] = std::move(begin);
  return id;
}

void EventLoop::NotAtStop(TimerId id) {
  impl_->at_stop.erase(id);
}

void EventLoop::BeginStop() {
  for (const auto& [id, begin] : impl_->at_stop) begin();
}

void EventLoop::Post(std::function<void()> work) {
  {
    const std::lock_guard lock(impl_->inbox_mutex);
    impl_->inbox.push_back(std::move(work));
  }
  impl_->Wake();
}

void EventLoop::Run() {
  impl_->running = true;
  while (!impl_->stop.load(std::memory_order_acquire)) {
    impl_->now = ReadNow();
    std::array<epoll_event, kEventsPerWake> events;
    const int n = epoll_wait(impl_->epoll_fd, events.data(), kEventsPerWake, impl_->WaitMs());
    impl_->now = ReadNow();
    for (int i = 0; i < n; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kWakeTag) {
        impl_->RunInbox();
        continue;
      }
      const auto found = impl_->watched.find(static_cast<int>(event.data.u64 & 0xffffffffu));
      if (found == impl_->watched.end()) continue;
      if (found->second.generation != event.data.u64 >> 32) continue;
      const auto callback = found->second.callback;  // may unwatch itself
      (*callback)(event.events);
    }
    impl_->RunTimers();
  }
  impl_->running = false;
  impl_->stop.store(false, std::memory_order_release);
}

void EventLoop::Stop() {
  const int saved = errno;
  impl_->stop.store(true, std::memory_order_release);
  impl_->Wake();
  errno = saved;
}

Timestamp EventLoop::Now() const {
  return impl_->running ? impl_->now : ReadNow();
}

}  // namespace rankscope::exporter
