// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/published_jobs.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rankscope::exporter {

metrics::JobList PublishedJobs::All(const status::JobStatuses& known, metrics::JobList kept,
                                    const Notes& notes) {
  metrics::JobList jobs;
  jobs.reserve(known.size() + kept.size());
  known.ForEach([&](const std::shared_ptr<const JobStatus>& job) {
    std::shared_ptr<const JobStatus> noted = job->running ? notes.on_running(*job) : nullptr;
    if (noted == nullptr) noted = job;
    jobs.push_back(std::move(noted));
  });
  for (std::shared_ptr<const JobStatus>& job : kept) {
    if (known.Find(job->job_id) == nullptr) jobs.push_back(std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const auto& a, const auto& b) { return a->job_id < b->job_id; });
  NoteUnkept(jobs, notes);
  return jobs;
}

void PublishedJobs::NoteUnkept(metrics::JobList& jobs, const Notes& notes) {
  if (std::exchange(why_unkept_, notes.why_unkept) != notes.why_unkept) unkept_.clear();
  if (notes.why_unkept.empty()) return;
  for (std::shared_ptr<const JobStatus>& job : jobs) {
    if (job->running || !notes.is_unkept(job->job_id)) continue;
    Unkept& unkept = unkept_[job->job_id];
    if (unkept.verdict != job) {
      auto noted = std::make_shared<JobStatus>(*job);
      noted->verdict.mutable_data_quality()->add_notes("not on the disk yet: " + notes.why_unkept);
      unkept = {job, std::move(noted)};
    }
    job = unkept.noted;
  }
  std::erase_if(unkept_, [&](const auto& entry) { return !notes.is_unkept(entry.first); });
}

}  // namespace rankscope::exporter
