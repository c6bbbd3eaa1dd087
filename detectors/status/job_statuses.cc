// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/status/job_statuses.h"

#include <optional>
#include <utility>

#include "detectors/status/describe_job.h"
#include "detectors/windows/job_window.h"

namespace rankscope::status {

void JobStatuses::Update(const engine::Engine& engine, const engine::Output& output) {
  for (const std::string& job_id : output.renewed) {
    const std::optional<engine::JobView> view = engine.Find(job_id);
    if (view && (view->window != nullptr || !view->watched)) Renew(*view);
  }
  // Jobs may leave without a word of theirs: of what is not watched nobody hears for long.
  if (jobs_.size() > engine.CountJobs())
    std::erase_if(jobs_, [&](const auto& job) { return !engine.Find(job.first); });
}

void JobStatuses::Renew(const engine::JobView& view) {
  const Timestamp begin = view.window == nullptr ? Timestamp{} : view.window->begin();
  Shown& shown = jobs_[std::string(view.job_id)];
  const bool same = shown.status != nullptr && shown.begin == begin;
  shown.status =
      std::make_shared<const JobStatus>(DescribeJob(view, same ? shown.status.get() : nullptr));
  shown.begin = begin;
}

void JobStatuses::Replace(std::shared_ptr<const JobStatus> copy) {
  if (copy == nullptr) return;
  if (const auto found = jobs_.find(copy->job_id); found != jobs_.end())
    found->second.status = std::move(copy);
}

std::shared_ptr<const JobStatus> JobStatuses::Find(std::string_view job_id) const {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? nullptr : found->second.status;
}

}  // namespace rankscope::status
