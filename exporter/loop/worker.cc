// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/worker.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "exporter/loop/start_thread.h"

namespace rankscope::exporter {
namespace {

// How long the destructor waits for a running job: the daemon must end within a second of SIGTERM.
constexpr std::chrono::milliseconds kPatience{200};

}  // namespace

// What both threads touch. The loop pointer is cleared when the worker goes, so that a thread left
// behind posts nothing.
struct Worker::Shared {
  struct Item {
    int64_t id = 0;
    Job job;
  };
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Item> queue;
  bool stopping = false;
  bool gone = false;  // the thread has returned
  EventLoop* loop = nullptr;
  std::function<void(int64_t, std::function<void()>)> deliver;
};

// What only the loop thread touches. Held by shared_ptr from posted closures through a weak one:
// results may arrive after the worker is gone.
struct Worker::Local {
  EventLoop* loop = nullptr;
  std::thread thread;
  // Jobs not yet delivered, with the timer of each deadline.
  std::shared_ptr<std::map<int64_t, EventLoop::TimerId>> waiting =
      std::make_shared<std::map<int64_t, EventLoop::TimerId>>();
  int64_t next_id = 1;
  std::optional<std::chrono::steady_clock::time_point> wait_until;  // set when it stops
  std::function<void()> body;  // of a thread of the usual kind, which can be made later; else null
  EventLoop::TimerId at_stop = 0;
};

std::function<void()> Worker::Body(std::shared_ptr<Shared> shared) {
  return [shared = std::move(shared)] {
    for (;;) {
      Shared::Item item;
      {
        std::unique_lock lock(shared->mutex);
        shared->wake.wait(lock, [&] { return shared->stopping || !shared->queue.empty(); });
        if (shared->stopping) break;
        item = std::move(shared->queue.front());
        shared->queue.pop_front();
      }
      std::function<void()> result = item.job();
      const std::lock_guard lock(shared->mutex);
      if (shared->loop == nullptr) break;
      shared->loop->Post(
          [deliver = shared->deliver, id = item.id, result = std::move(result)]() mutable {
            deliver(id, std::move(result));
          });
    }
    const std::lock_guard lock(shared->mutex);
    shared->gone = true;
    shared->wake.notify_all();
  };
}

Worker::Worker(EventLoop& loop)
    : Worker(loop, [](std::function<void()> body) {
        return StartThread(std::move(body)).value_or(std::thread());
      }) {
  local_->body = Body(shared_);
}

Worker::Worker(EventLoop& loop, const Starter& start)
    : shared_(std::make_shared<Shared>()), local_(std::make_unique<Local>()) {
  local_->loop = &loop;
  shared_->loop = &loop;
  const std::weak_ptr<std::map<int64_t, EventLoop::TimerId>> weak = local_->waiting;
  shared_->deliver = [weak, &loop](int64_t id, const std::function<void()>& result) {
    const auto waiting = weak.lock();
    if (!waiting) return;
    const auto found = waiting->find(id);
    if (found == waiting->end()) return;
    loop.Cancel(found->second);
    waiting->erase(found);
    if (result) result();
  };
  local_->thread = start(Body(shared_));
  local_->at_stop = loop.AtStop([this] { BeginStop(); });
}

void Worker::BeginStop() {
  if (local_->wait_until) return;
  local_->wait_until = std::chrono::steady_clock::now() + kPatience;
  for (const auto& [id, timer] : *local_->waiting) local_->loop->Cancel(timer);
  local_->waiting->clear();
  const std::lock_guard lock(shared_->mutex);
  shared_->stopping = true;
  shared_->loop = nullptr;
  shared_->queue.clear();
  shared_->wake.notify_all();
}

Worker::~Worker() {
  local_->loop->NotAtStop(local_->at_stop);
  BeginStop();
  if (!works()) return;
  bool gone = false;
  {
    std::unique_lock lock(shared_->mutex);
    gone = shared_->wake.wait_until(lock, *local_->wait_until, [this] { return shared_->gone; });
  }
  if (gone) {
    local_->thread.join();
  } else {
    local_->thread.detach();
  }
}

bool Worker::Submit(Job job, Duration deadline, std::function<void()> on_late) {
  if (pending() >= kMaxQueued || local_->wait_until) return false;
  // The kernel may have had no thread to give before.
  if (!works() && local_->body) {
    if (auto thread = StartThread(local_->body)) local_->thread = std::move(*thread);
  }
  if (!works()) return false;
  const int64_t id = local_->next_id++;
  (*local_->waiting)[id] = local_->loop->After(deadline, [on_late = std::move(on_late)] {
    if (on_late) on_late();
  });
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->queue.push_back({id, std::move(job)});
  }
  shared_->wake.notify_one();
  return true;
}

bool Worker::works() const {
  return local_->thread.joinable();
}

int Worker::pending() const {
  return static_cast<int>(local_->waiting->size());
}

}  // namespace rankscope::exporter
