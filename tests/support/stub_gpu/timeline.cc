// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/stub_gpu/timeline.h"

#include <algorithm>
#include <ctime>
#include <vector>

namespace stub_gpu {
namespace {

std::mutex& StreamsMutex() {
  static std::mutex mutex;
  return mutex;
}

std::vector<Stream*>& Streams() {
  static auto& streams = *new std::vector<Stream*>{new Stream};
  return streams;
}

void DropDone(std::deque<Wait>& waits) {
  while (!waits.empty() && waits.front().done(waits.front().what, waits.front().number))
    waits.pop_front();
}

}  // namespace

int64_t Now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

int64_t Stream::Enqueue(int64_t ns) {
  const std::lock_guard lock(mutex_);
  return busy_until_ns_ = std::max(busy_until_ns_, Now()) + ns;
}

void Stream::EnqueueWait(const Wait& wait) {
  const std::lock_guard lock(mutex_);
  DropDone(waits_);
  waits_.push_back(wait);
}

bool Stream::Idle() {
  const std::lock_guard lock(mutex_);
  DropDone(waits_);
  return waits_.empty() && Now() >= busy_until_ns_;
}

int64_t Stream::busy_until() {
  const std::lock_guard lock(mutex_);
  return busy_until_ns_;
}

std::deque<Wait> Stream::waits() {
  const std::lock_guard lock(mutex_);
  return waits_;
}

void Event::Record(Stream& stream) {
  const std::lock_guard lock(mutex_);
  at_ns_ = stream.busy_until();
  waits_ = stream.waits();
}

bool Event::Ready() {
  const std::lock_guard lock(mutex_);
  DropDone(waits_);
  return waits_.empty() && Now() >= at_ns_;
}

Stream& StreamOf(Handle handle) {
  const std::lock_guard lock(StreamsMutex());
  const bool own = reinterpret_cast<uintptr_t>(handle) > 2;
  return own ? *static_cast<Stream*>(handle) : *Streams().front();
}

Stream* NewStream() {
  const std::lock_guard lock(StreamsMutex());
  Streams().push_back(new Stream);
  return Streams().back();
}

bool AllIdle() {
  const std::lock_guard lock(StreamsMutex());
  return std::all_of(Streams().begin(), Streams().end(), [](Stream* s) { return s->Idle(); });
}

}  // namespace stub_gpu
