// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Asks every 100 ms of each collective that is not through whether it is, from a thread named as
// PyTorch's, by cudaEventQuery, as c10d::ProcessGroupNCCL's watchdog does. Stops with the object.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/stub_gpu/trainer/libraries.h"

namespace stub_trainer {

class Watchdog {
 public:
  explicit Watchdog(const Libraries& libraries);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // A collective was queued on the stream.
  void Watch(Handle stream);

 private:
  void Run();
  Handle TakeEvent();

  const Libraries& libraries_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::deque<Handle> open_;
  std::vector<Handle> free_;
  std::thread thread_;
};

}  // namespace stub_trainer
