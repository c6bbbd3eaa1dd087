// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whose comments are to be read, and when: the epilog writes what is left of a job there some time
// after its end, by default within 40 s. Each job is asked about twice at most, so that accounting
// has one call a round at most. Pure and bounded; single writer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/model/job_summary.h"
#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

// What is left of the job by its comments; a line that names another job is none of its.
inline std::optional<JobSummary> SummaryInComment(const SlurmJob& job) {
  if (!job.step_id.empty()) return std::nullopt;
  for (const std::string* comment : {&job.admin_comment, &job.comment}) {
    std::optional<JobSummary> summary = ReadJobSummary(*comment);
    if (summary && summary->job_id == job.job_id) return summary;
  }
  return std::nullopt;
}

// What the comments of that job hold of it.
inline std::string SummaryOf(const std::vector<SlurmJob>& jobs, std::string_view parent) {
  for (const SlurmJob& job : jobs) {
    const bool task = !job.array_task.empty() && job.array_job_id + "_" + job.array_task == parent;
    if (job.job_id != parent && !task) continue;
    if (const auto summary = SummaryInComment(job)) return JobSummaryToText(*summary);
  }
  return {};
}

class CommentQueue {
 public:
  static constexpr int64_t kFirst = 90, kAgain = 600;  // seconds after the end
  static constexpr size_t kMost = 4096;                // the oldest gives way
  static constexpr size_t kMostOfOneCall = 100;

  // A job has ended at `end`, seconds since 1970.
  void Add(const std::string& job_id, int64_t end) { Push({end + kFirst, job_id, false}); }

  // Those that are due, `most` of them.
  std::vector<std::string> TakeDue(int64_t now, size_t most = kMostOfOneCall) {
    std::vector<std::string> jobs;
    while (jobs.size() < most && !waiting_.empty()) {
      const auto first =
          std::min_element(waiting_.begin(), waiting_.end(),
                           [](const auto& a, const auto& b) { return a.due < b.due; });
      if (first->due > now) break;
      Entry entry = std::move(*first);
      waiting_.erase(first);
      jobs.push_back(entry.job_id);
      if (!entry.again) Push({now + kAgain - kFirst, std::move(entry.job_id), true});
    }
    return jobs;
  }
  // Accounting could not be asked about these.
  void PutBack(const std::vector<std::string>& jobs, int64_t now) {
    for (const std::string& job : jobs) {
      Done(job);
      Add(job, now - kFirst);
    }
  }
  // Its comment was found.
  void Done(const std::string& job_id) {
    std::erase_if(waiting_, [&](const Entry& entry) { return entry.job_id == job_id; });
  }
  size_t size() const { return waiting_.size(); }

 private:
  struct Entry {
    int64_t due = 0;
    std::string job_id;
    bool again = false;
  };
  void Push(Entry entry) {
    waiting_.push_back(std::move(entry));
    if (waiting_.size() > kMost) waiting_.pop_front();
  }

  std::deque<Entry> waiting_;
};

}  // namespace rankscope::exporter::slurm
