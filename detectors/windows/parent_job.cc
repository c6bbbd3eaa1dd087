// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/parent_job.h"

#include <algorithm>
#include <utility>

namespace rankscope::windows {

void ParentJobs::OnSchedulerRecord(const SchedulerRecord& record, Timestamp t) {
  const auto word = [&](std::string field, std::string_view value) {
    return SchedulerWord{std::move(field), std::string(value.substr(0, kValueCap)), record.origin,
                         t};
  };
  if (!record.dependency.empty()) TakeDependency(word("dependency", record.dependency));
  if (record.submit_line.empty()) return;
  constexpr size_t kMaxLine = size_t{64} << 10;
  const std::string_view line = std::string_view(record.submit_line).substr(0, kMaxLine);
  if (!submit_line_.present()) submit_line_ = word("submit_line", line);
  TakeDependency(word("submit_line", DependencyOfSubmitLine(line)));
}

void ParentJobs::OnEnvironment(const std::vector<KeyValue>& environment, Timestamp t) {
  for (const KeyValue& variable : environment) {
    if (variable.key != "SLURM_JOB_DEPENDENCY") continue;
    TakeDependency({variable.key, variable.value.substr(0, kValueCap), "environment", t});
  }
}

// Slurm takes a dependency out once it is fulfilled: whoever names somebody first stays.
void ParentJobs::TakeDependency(SchedulerWord word) {
  if (dependency_.present() || ReadSlurmDependencies(word.value).empty()) return;
  dependency_ = std::move(word);
}

void ParentJobs::OnSummary(const SchedulerFact& fact, Timestamp t) {
  const std::string_view value = fact.value;
  const size_t space = value.find(' ');
  ParentJob parent;
  parent.origin = fact.origin;
  parent.t = t;
  parent.job_id = value.substr(0, std::min(space, JobSummary::kMostWordBytes));
  if (parent.job_id.empty() || space == std::string_view::npos) return;
  if (value.substr(space + 1) != "unknown") {
    auto summary = ReadJobSummary(value.substr(space + 1));
    if (!summary) return;
    // A task of an array is asked for as 7_3, and has a number of its own.
    const bool task = parent.job_id.find('_') != std::string::npos;
    const bool nameless = task && summary->array_task.empty();
    if (!nameless && summary->job_id != parent.job_id && summary->array_task != parent.job_id)
      return;
    parent.known = true;
    parent.line = FindJobSummary(value);
    parent.summary = std::move(*summary);
  }
  const auto known = std::find_if(all_.begin(), all_.end(), [&](const ParentJob& each) {
    return each.job_id == parent.job_id;
  });
  if (known == all_.end()) {
    if (all_.size() < kMost) all_.push_back(std::move(parent));
  } else if (parent.known &&
             (!known->known || parent.summary.restarts >= known->summary.restarts)) {
    *known = std::move(parent);
  }
}

}  // namespace rankscope::windows
