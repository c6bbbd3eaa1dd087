// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A thread for each user whose files a source reads. What a user names can hang for as long as he
// likes (a file system of his own), and then only his own thread hangs. Each source owns one of
// these; everything here is called on the loop thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "detectors/model/time.h"
#include "exporter/event_loop.h"
#include "exporter/worker.h"

namespace rankscope::exporter {

class UserWorkers {
 public:
  // Threads at once; a node has fewer users at work. An idle one makes room for a new user.
  static constexpr size_t kMaxUsers = 32;

  explicit UserWorkers(EventLoop& loop) : loop_(loop) {}
  ~UserWorkers() { BeginStop(); }
  UserWorkers(const UserWorkers&) = delete;
  UserWorkers& operator=(const UserWorkers&) = delete;

  // As Worker::Submit, on the thread of `uid`. False when that user's queue is full, or when all
  // threads are busy with other users: the caller has a lost job to count.
  [[nodiscard]] bool Submit(uint32_t uid, Worker::Job job, Duration deadline,
                            std::function<void()> on_late);

  // Jobs of this user that were submitted and not yet delivered.
  int pending(uint32_t uid) const;
  size_t users() const { return workers_.size(); }

  // Delivers nothing more; the waits for running jobs run side by side.
  void BeginStop();

 private:
  bool MakeRoom();

  EventLoop& loop_;
  std::map<uint32_t, std::unique_ptr<Worker>> workers_;
};

}  // namespace rankscope::exporter
