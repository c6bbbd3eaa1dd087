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

// Of whom nobody is left, and that was read to its end.
void StdoutTail::CloseAbandoned() {
  const Timestamp now = loop_->Now();
  for (auto it = files_.begin(); it != files_.end();) {
    File& file = it->second;
    const bool held =
        std::any_of(file.writers.begin(), file.writers.end(), [this](const auto& key) {
          const TrackedProcess* const tracked = table_->Find(key.pid);
          return tracked != nullptr && tracked->key == key;
        });
    if (held) file.last_writer = now;
    const bool done =
        !held && file.at_end && file.waiting.empty() && now - file.last_writer > Seconds(1);
    if (done || now - file.last_writer > kAfterEnd) {
      lost_ += std::max<int64_t>(0, file.size - file.offset);
      if (!file.job_id.empty()) {
        file.lines.Flush(LineEnd::kClosed,
                         [&](const logs::AssembledLine& line) { Emit(file, line); });
      }
      it = files_.erase(it);
    } else {
      ++it;
    }
  }
}

}  // namespace rankscope::collectors
