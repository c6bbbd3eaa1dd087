// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/process_table.h"

#include <algorithm>
#include <utility>

namespace rankscope::collectors {

void ProcessTable::AddRoot(ProcessKey key, std::string job_id) {
  TrackedProcess root;
  root.key = key;
  root.job_id = std::move(job_id);
  root.wrapped = true;
  if (Add(std::move(root))) AskFacts(key);
}

void ProcessTable::NoteWrapped(ProcessKey key) {
  if (std::find(wrapped_.begin(), wrapped_.end(), key) != wrapped_.end()) return;
  wrapped_.push_back(key);
  if (wrapped_.size() > kMaxWrapped) wrapped_.pop_front();
}

void ProcessTable::AskFacts(ProcessKey key) {
  if (asked_.size() < kMaxTracked) asked_.push_back(key);
}

std::vector<ProcessKey> ProcessTable::TakeAsked() {
  return std::exchange(asked_, {});
}

bool ProcessTable::Add(TrackedProcess process) {
  const auto found = processes_.find(process.key.pid);
  const bool replaces = found != processes_.end();
  const bool was_unranked = replaces && found->second.unranked;
  const bool full = !replaces && processes_.size() >= kMaxTracked;
  if (full && !MakeRoom(users_, process.uid)) return false;
  if (process.unranked && !was_unranked && unranked_ >= kMaxUnranked &&
      !MakeRoom(unranked_users_, process.uid))
    return false;
  const ProcessKey key = process.key;
  constexpr int32_t kInit = 1;
  const bool orphan = !processes_.contains(process.parent.pid);
  if (!replaces && orphan) ++begun_;
  // Of a job with a name of its own, the launcher carries that.
  if (process.from_launcher && process.job_id.empty() && orphan && process.parent.pid > kInit)
    AskFacts(process.parent);
  if (replaces) Unindex(processes_[key.pid]);
  Index(process);
  processes_[key.pid] = std::move(process);
  if (on_change_) on_change_(key, true);
  return true;
}

bool ProcessTable::MakeRoom(const Users& users, uint32_t uid) {
  ++dropped_;
  const auto own = users.find(uid);
  size_t most = own == users.end() ? 1 : own->second.size() + 1;
  int32_t newest = 0;
  for (const auto& [user, pids] : users) {
    if (user == 0 || user == uid || pids.size() <= most) continue;
    most = pids.size();
    newest = *pids.rbegin();
  }
  if (newest == 0) return false;
  Drop(newest);
  return true;
}

void ProcessTable::Index(const TrackedProcess& process) {
  users_[process.uid].insert(process.key.pid);
  if (!process.unranked) return;
  unranked_users_[process.uid].insert(process.key.pid);
  ++unranked_;
}

void ProcessTable::Unindex(const TrackedProcess& process) {
  const auto erase = [&process](Users& users) {
    const auto pids = users.find(process.uid);
    pids->second.erase(process.key.pid);
    if (pids->second.empty()) users.erase(pids);
  };
  erase(users_);
  if (!process.unranked) return;
  erase(unranked_users_);
  --unranked_;
}

void ProcessTable::Drop(int32_t pid) {
  const auto found = processes_.find(pid);
  const ProcessKey key = found->second.key;
  Unindex(found->second);
  processes_.erase(found);
  if (on_change_) on_change_(key, false);
}

void ProcessTable::Remove(ProcessKey key) {
  const auto found = processes_.find(key.pid);
  if (found == processes_.end() || found->second.key != key) return;
  Drop(key.pid);
  if (ended_.insert(key).second) ended_order_.push_back(key);
  if (ended_order_.size() > kMaxEnded) {
    ended_.erase(ended_order_.front());
    ended_order_.pop_front();
  }
}

void ProcessTable::set_exits_told(const void* teller, bool told) {
  if (told) {
    exit_tellers_.insert(teller);
  } else {
    exit_tellers_.erase(teller);
  }
}

TrackedProcess* ProcessTable::Find(int32_t pid) {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? nullptr : &found->second;
}

}  // namespace rankscope::collectors
