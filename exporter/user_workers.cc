// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/user_workers.h"

#include <utility>

namespace rankscope::exporter {

bool UserWorkers::Submit(uint32_t uid, Worker::Job job, Duration deadline,
                         std::function<void()> on_late) {
  auto found = workers_.find(uid);
  if (found == workers_.end()) {
    if (workers_.size() >= kMaxUsers && !MakeRoom()) return false;
    found = workers_.emplace(uid, std::make_unique<Worker>(loop_)).first;
  }
  return found->second->Submit(std::move(job), deadline, std::move(on_late));
}

int UserWorkers::pending(uint32_t uid) const {
  const auto found = workers_.find(uid);
  return found == workers_.end() ? 0 : found->second->pending();
}

// An idle thread ends at once, so nothing waits here.
bool UserWorkers::MakeRoom() {
  for (auto it = workers_.begin(); it != workers_.end(); ++it) {
    if (it->second->pending() > 0) continue;
    workers_.erase(it);
    return true;
  }
  return false;
}

void UserWorkers::BeginStop() {
  for (auto& [uid, worker] : workers_) worker->BeginStop();
}

}  // namespace rankscope::exporter
