// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A thread for each user whose files a source reads. It has that user's rights and no more (see
// user_threads), so that what he may not read is not read for him; and what he names can hang for
// as long as he likes (a file system of his own), and then only his own thread hangs. Each source
// owns one of these; everything here is called on the loop thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "detectors/model/time.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/user_identity.h"
#include "exporter/loop/worker.h"

namespace rankscope::exporter {

class UserWorkers {
 public:
  // Threads at once; a node has fewer users at work. An idle one makes room for a new user.
  static constexpr size_t kMaxUsers = 32;
  // Of one user, who may run jobs with other groups side by side (sg(1)).
  static constexpr size_t kMaxPerUser = 4;
  // An idle thread ends after this.
  static constexpr Duration kMaxIdle = Seconds(60);

  explicit UserWorkers(EventLoop& loop) : loop_(loop) {}
  ~UserWorkers() { BeginStop(); }
  UserWorkers(const UserWorkers&) = delete;
  UserWorkers& operator=(const UserWorkers&) = delete;

  // As Worker::Submit, on the thread of `who`. False when that user's queue is full, when all
  // threads are busy with other users, or when his rights cannot be had (see obstacle): the caller
  // has a lost job to count.
  [[nodiscard]] bool Submit(const UserIdentity& who, Worker::Job job, Duration deadline,
                            std::function<void()> on_late);
  // Where no process tells his groups: the job can read what he owns, and what everybody may read.
  [[nodiscard]] bool Submit(uint32_t uid, Worker::Job job, Duration deadline,
                            std::function<void()> on_late) {
    return Submit(UserIdentity{uid}, std::move(job), deadline, std::move(on_late));
  }

  // Jobs of this user that were submitted and not yet delivered.
  int pending(uint32_t uid) const;
  size_t users() const { return workers_.size(); }

  // Why the last new user's rights could not be had; empty when they could.
  const std::string& obstacle() const { return obstacle_; }

  // Delivers nothing more; the waits for running jobs run side by side.
  void BeginStop();

 private:
  struct Entry {
    std::unique_ptr<Worker> worker;
    Timestamp used;
  };

  Entry* Find(const UserIdentity& who);
  bool MakeRoom(const UserIdentity& who);
  void EndIdle();

  EventLoop& loop_;
  std::map<UserIdentity, Entry> workers_;
  std::string obstacle_;
};

}  // namespace rankscope::exporter
