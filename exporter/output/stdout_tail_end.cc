// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What follows from who is left: whether a job's files were read, and which are closed.
#include <algorithm>
#include <utility>

#include "exporter/output/past_text.h"
#include "exporter/output/stdout_tail.h"

namespace rankscope::collectors {

using attribution::ProcessInfo;
using attribution::ProcessRole;

// Of a job whose ranks write to files only, once these were read to where they were when found.
void StdoutTail::TellRead() {
  struct Earlier {
    bool known = false;  // it is one
    bool all = true;
  };
  std::map<std::string, Earlier> jobs;
  std::set<std::string> read;
  for (const auto& [key, process] : processes_) {
    const ProcessInfo* const info = who_(key);
    if (info == nullptr || info->job_id.empty() || heard_before_.contains(info->job_id)) continue;
    if (read_.contains(info->job_id)) {
      read.insert(info->job_id);
      continue;
    }
    Earlier& job = jobs[info->job_id];
    if (info->role != ProcessRole::kRank || key.start_ticks >= began_ticks_) continue;
    job.known = true;
    job.all = job.all && process.looked_at && !process.elsewhere && process.refusal.empty();
  }
  for (const auto& [key, file] : files_) {
    const auto job = jobs.find(file.job_id);
    if (job != jobs.end())
      job->second.all = job->second.all && !file.torn && file.offset >= file.past_end;
  }
  read_ = std::move(read);  // others are over
  for (const auto& [job_id, job] : jobs) {
    if (!job.known || !job.all) continue;
    read_.insert(job_id);
    Source::Tell(AllTextRead(job_id));
  }
}

void StdoutTail::LearnJob(const ProcessKey& key, Process& process) const {
  if (const ProcessInfo* const info = who_(key)) process.job_id = info->job_id;
}

bool StdoutTail::IsHeld(const File& file) const {
  return std::any_of(file.writers.begin(), file.writers.end(), [this](const ProcessKey& key) {
    const TrackedProcess* const tracked = table_->Find(key.pid);
    return tracked != nullptr && tracked->key == key;
  });
}

void StdoutTail::Close(File& file) {
  if (!file.over || !file.waiting.empty()) {
    lost_ += std::max<int64_t>(0, file.size - file.offset);
    if (followed_.contains(file.job_id)) given_up_.insert(file.job_id);
  }
  if (file.job_id.empty()) return;
  file.lines.Flush(LineEnd::kClosed, [&](const logs::AssembledLine& line) { Emit(file, line); });
}

// Of whom nobody is left, and that was read to its end.
void StdoutTail::CloseAbandoned() {
  const Timestamp now = loop_->Now();
  // A process that is not known to write to the file yet may do so; of a job that is over there is
  // none.
  constexpr Duration kMoment = Seconds(1);
  std::set<std::string> lives;
  for (auto& [key, process] : processes_) {
    LearnJob(key, process);
    const TrackedProcess* const tracked = table_->Find(key.pid);
    if (process.looking || (tracked != nullptr && tracked->key == key))
      lives.insert(process.job_id);
  }
  for (auto it = files_.begin(); it != files_.end();) {
    File& file = it->second;
    const bool held = IsHeld(file);
    if (held) file.last_writer = now;
    file.over = file.over && !held;
    const bool alone = !file.job_id.empty() && !lives.contains(file.job_id);
    const bool done =
        file.over && file.waiting.empty() && (alone || now - file.last_writer > kMoment);
    if (done || now - file.last_writer > kAfterEnd) {
      Close(file);
      it = files_.erase(it);
    } else {
      ++it;
    }
  }
}

void StdoutTail::TellFollowed() {
  std::set<std::string> open;
  for (const auto& [key, process] : processes_) open.insert(process.job_id);
  for (const auto& [key, file] : files_) open.insert(file.job_id);
  open.erase(std::string());
  for (const std::string& job_id : open) {
    if (followed_.insert(job_id).second) Source::Tell(OutputFollowed(job_id, true));
  }
  for (auto it = followed_.begin(); it != followed_.end();) {
    const std::string job_id = *it++;
    if (!open.contains(job_id)) EndFollowed(job_id);
  }
}

void StdoutTail::EndFollowed(const std::string& job_id) {
  Source::Tell(OutputFollowed(job_id, false, given_up_.erase(job_id) > 0));
  followed_.erase(std::string(job_id));
}

}  // namespace rankscope::collectors
