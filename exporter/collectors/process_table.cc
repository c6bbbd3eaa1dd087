// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/collectors/process_table.h"

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
  if (full || (process.unranked && !was_unranked && unranked_ >= kMaxUnranked)) {
    ++dropped_;
    return false;
  }
  unranked_ += static_cast<size_t>(process.unranked) - static_cast<size_t>(was_unranked);
  const ProcessKey key = process.key;
  if (found == processes_.end() && !processes_.contains(process.parent.pid)) ++begun_;
  processes_[key.pid] = std::move(process);
  if (on_change_) on_change_(key, true);
  return true;
}

void ProcessTable::Remove(ProcessKey key) {
  const auto found = processes_.find(key.pid);
  if (found == processes_.end() || found->second.key != key) return;
  unranked_ -= static_cast<size_t>(found->second.unranked);
  processes_.erase(found);
  if (ended_.insert(key).second) ended_order_.push_back(key);
  if (ended_order_.size() > kMaxEnded) {
    ended_.erase(ended_order_.front());
    ended_order_.pop_front();
  }
  if (on_change_) on_change_(key, false);
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
