// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/stub_gpu/trainer/watchdog.h"

#include <pthread.h>

#include <chrono>

namespace stub_trainer {

Watchdog::Watchdog(const Libraries& libraries)
    : libraries_(libraries), thread_([this] { Run(); }) {}

Watchdog::~Watchdog() {
  stopping_ = true;
  thread_.join();
}

Handle Watchdog::TakeEvent() {
  if (!free_.empty()) {
    Handle event = free_.back();
    free_.pop_back();
    return event;
  }
  Handle event = nullptr;
  libraries_.cudaEventCreate(&event);
  return event;
}

void Watchdog::Watch(Handle stream) {
  const std::lock_guard lock(mutex_);
  Handle event = TakeEvent();
  libraries_.cudaEventRecord(event, stream);
  open_.push_back(event);
}

void Watchdog::Run() {
  pthread_setname_np(pthread_self(), "pt_nccl_watchdg");
  while (!stopping_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::lock_guard lock(mutex_);
    std::deque<Handle> still_open;
    for (Handle event : open_) {
      (libraries_.cudaEventQuery(event) == stub_gpu::kNotReady ? still_open.push_back(event)
                                                               : free_.push_back(event));
    }
    open_.swap(still_open);
  }
}

}  // namespace stub_trainer
