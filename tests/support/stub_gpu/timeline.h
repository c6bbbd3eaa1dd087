// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What streams and events of the stub card hold: work is a time until which the stream is busy, and
// conditions that somebody else fulfils (a collective of NCCL). Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "tests/support/stub_gpu/abi.h"

namespace stub_gpu {

int64_t Now();  // CLOCK_MONOTONIC, ns

struct Wait {
  Done done = nullptr;
  void* what = nullptr;
  uint64_t number = 0;
};

class Stream {
 public:
  int64_t Enqueue(int64_t ns);
  void EnqueueWait(const Wait& wait);
  bool Idle();
  // Work queued so far, for an event.
  int64_t busy_until();
  std::deque<Wait> waits();

 private:
  std::mutex mutex_;
  int64_t busy_until_ns_ = 0;
  std::deque<Wait> waits_;
};

class Event {
 public:
  void Record(Stream& stream);
  bool Ready();

 private:
  std::mutex mutex_;
  int64_t at_ns_ = 0;
  std::deque<Wait> waits_;
};

Stream& StreamOf(Handle handle);  // null, 1 and 2 are the default streams
Stream* NewStream();
bool AllIdle();

}  // namespace stub_gpu
