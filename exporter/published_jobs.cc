// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/published_jobs.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rankscope::exporter {
namespace {

std::shared_ptr<const JobStatus> Copy(const JobStatus& job, const std::string& trouble) {
  auto copy = std::make_shared<JobStatus>(job);
  if (!trouble.empty() && job.running) {
    copy->verdict.mutable_data_quality()->add_notes("not recorded: " + trouble);
  }
  return copy;
}

}  // namespace

void PublishedJobs::Note(const engine::Output& output) {
  for (const std::string& job_id : output.renewed) copies_.erase(job_id);
  for (const std::string& job_id : output.ended) copies_.erase(job_id);
}

void PublishedJobs::Share(std::shared_ptr<const JobStatus> copy) {
  if (copy != nullptr) copies_[copy->job_id] = std::move(copy);
}

metrics::JobList PublishedJobs::All(const engine::Engine& engine, metrics::JobList kept,
                                    const std::string& trouble) {
  metrics::JobList jobs;
  for (const JobStatus* job : engine.Jobs()) {
    std::shared_ptr<const JobStatus>& copy = copies_[job->job_id];
    if (copy == nullptr) copy = Copy(*job, trouble);
    jobs.push_back(copy);
  }
  if (copies_.size() > jobs.size()) {
    std::erase_if(copies_, [&](const auto& entry) { return engine.Find(entry.first) == nullptr; });
  }
  for (std::shared_ptr<const JobStatus>& job : kept) {
    if (engine.Find(job->job_id) == nullptr) jobs.push_back(std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const auto& a, const auto& b) { return a->job_id < b->job_id; });
  return jobs;
}

}  // namespace rankscope::exporter
