// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/disk_thread.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "exporter/loop/start_thread.h"

namespace rankscope::exporter {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

// What both threads touch.
struct DiskThread::Shared {
  struct Item {
    Job job;
    size_t bytes = 0;
  };
  std::mutex mutex;
  std::condition_variable wake;  // of the thread
  std::condition_variable done;  // of who waits for it
  std::deque<Item> queue;
  size_t bytes = 0;  // of the queue and of the job that runs
  int64_t submitted = 0;
  int64_t finished = 0;
  std::optional<Clock::time_point> running_since;
  bool stopping = false;      // ends when the queue is empty
  bool gone = false;          // the thread has returned
  EventLoop* loop = nullptr;  // null: nobody hears results any more
  std::thread thread;         // of the loop thread alone

  void Run();
  void RunOne(std::unique_lock<std::mutex>& lock);
};

void DiskThread::Shared::RunOne(std::unique_lock<std::mutex>& lock) {
  Item item = std::move(queue.front());
  queue.pop_front();
  running_since = Clock::now();
  lock.unlock();
  std::function<void()> result = item.job();
  item.job = nullptr;  // what it held is given back before its bytes are
  lock.lock();
  running_since.reset();
  bytes -= item.bytes;
  ++finished;
  if (loop != nullptr && result) loop->Post(std::move(result));
  done.notify_all();
}

void DiskThread::Shared::Run() {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [this] { return stopping || !queue.empty(); });
    if (queue.empty()) break;
    RunOne(lock);
  }
  gone = true;
  done.notify_all();
}

DiskThread::DiskThread(EventLoop& loop, Bounds bounds)
    : loop_(loop), bounds_(bounds), shared_(std::make_shared<Shared>()) {
  shared_->loop = &loop_;
}

DiskThread::~DiskThread() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->queue.clear();
  }
  Stop({});
}

void DiskThread::Start() {
  if (auto thread = StartThread([shared = shared_] { shared->Run(); })) {
    shared_->thread = std::move(*thread);
  }
}

bool DiskThread::Submit(Job job, size_t bytes) {
  if (!shared_->thread.joinable()) Start();
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->thread.joinable() || shared_->stopping) return false;
    // One job larger than all room is still taken by an idle thread.
    const bool full = shared_->queue.size() >= bounds_.jobs ||
                      (shared_->bytes > 0 && shared_->bytes + bytes > bounds_.bytes);
    if (full) return false;
    shared_->queue.push_back({std::move(job), bytes});
    shared_->bytes += bytes;
    ++shared_->submitted;
  }
  shared_->wake.notify_one();
  return true;
}

bool DiskThread::Drain(Duration patience) {
  std::unique_lock lock(shared_->mutex);
  const int64_t wanted = shared_->submitted;
  return shared_->done.wait_for(lock, std::chrono::nanoseconds(patience.ns),
                                [&] { return shared_->finished >= wanted; });
}

Duration DiskThread::behind() const {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->running_since) return {};
  const auto since = Clock::now() - *shared_->running_since;
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()};
}

void DiskThread::Stop(Duration patience) {
  if (!shared_->thread.joinable()) return;
  bool gone = false;
  {
    std::unique_lock lock(shared_->mutex);
    shared_->stopping = true;
    shared_->loop = nullptr;
    shared_->wake.notify_all();
    gone = shared_->done.wait_for(lock, std::chrono::nanoseconds(patience.ns),
                                  [this] { return shared_->gone; });
    // What cannot run any more must not begin while the process ends.
    if (!gone) shared_->queue.clear();
    // An idle thread needs no more than to be told.
    if (!gone && !shared_->running_since) gone = true;
  }
  if (gone) {
    shared_->thread.join();
  } else {
    shared_->thread.detach();
  }
}

}  // namespace rankscope::exporter
