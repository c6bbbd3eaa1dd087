// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/user_workers.h"

#include <algorithm>
#include <utility>

#include "exporter/loop/user_threads.h"

namespace rankscope::exporter {

bool UserWorkers::Submit(const UserIdentity& who, Worker::Job job, Duration deadline,
                         std::function<void()> on_late) {
  EndIdle();
  Entry* const entry = Find(who);
  if (entry == nullptr) return false;
  entry->used = loop_.Now();
  return entry->worker->Submit(std::move(job), deadline, std::move(on_late));
}

UserWorkers::Entry* UserWorkers::Find(const UserIdentity& who) {
  if (const auto found = workers_.find(who); found != workers_.end()) return &found->second;
  if (!MakeRoom(who)) return nullptr;
  auto worker = std::make_unique<Worker>(
      loop_, [&who](std::function<void()> body) { return StartAs(who, std::move(body)); });
  if (!worker->works()) {
    obstacle_ = "files of user " + std::to_string(who.uid) +
                " are not read; run the daemon as root with CAP_SETUID and CAP_SETGID";
    return nullptr;
  }
  obstacle_.clear();
  return &workers_.emplace(who, Entry{std::move(worker), loop_.Now()}).first->second;
}

int UserWorkers::pending(uint32_t uid) const {
  int pending = 0;
  for (const auto& [who, entry] : workers_) {
    if (who.uid == uid) pending += entry.worker->pending();
  }
  return pending;
}

// An idle thread ends at once, so nothing waits here.
bool UserWorkers::MakeRoom(const UserIdentity& who) {
  const auto same_user = [&](const auto& entry) { return entry.first.uid == who.uid; };
  const bool own = std::count_if(workers_.begin(), workers_.end(), same_user) >=
                   static_cast<int64_t>(kMaxPerUser);
  if (!own && workers_.size() < kMaxUsers) return true;
  const auto idle = std::find_if(workers_.begin(), workers_.end(), [&](const auto& entry) {
    return entry.second.worker->pending() == 0 && (!own || same_user(entry));
  });
  if (idle == workers_.end()) return false;
  workers_.erase(idle);
  return true;
}

void UserWorkers::EndIdle() {
  const Timestamp now = loop_.Now();
  std::erase_if(workers_, [&](const auto& entry) {
    return entry.second.worker->pending() == 0 && now - entry.second.used > kMaxIdle;
  });
}

void UserWorkers::BeginStop() {
  for (auto& [who, entry] : workers_) entry.worker->BeginStop();
}

}  // namespace rankscope::exporter
