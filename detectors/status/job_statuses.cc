// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/status/job_statuses.h"

#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "detectors/status/describe_job.h"
#include "detectors/windows/job_window.h"

namespace rankscope::status {
namespace {

// Below 0: nobody knows.
int64_t OwnerOf(const JobStatus& status) {
  if (status.uid >= 0) return status.uid;
  int64_t uid = -1;
  const char* const end = status.user.data() + status.user.size();
  const auto [at, error] = std::from_chars(status.user.data(), end, uid);
  return error == std::errc() && at == end ? uid : -1;
}

// The node's name for a number that the kernel told goes before what the job's environment says.
// Only root's does not: its processes stand in the jobs of others. True: it is another name now.
bool NameUser(const JobStatuses::NameOf& names, JobStatus& status) {
  const int64_t uid = OwnerOf(status);
  if (!names || uid < 0 || (uid == 0 && !status.facts.user.empty())) return false;
  std::string name = names(uid);
  if (name.empty() && status.user.empty()) name = std::to_string(uid);
  if (name.empty() || name == status.user) return false;
  status.user = std::move(name);
  return true;
}

}  // namespace

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
  JobStatus status = DescribeJob(view, same ? shown.status.get() : nullptr);
  NameUser(names_, status);
  shown.status = std::make_shared<const JobStatus>(std::move(status));
  shown.begin = begin;
}

void JobStatuses::Named(int64_t uid) {
  for (auto& [id, shown] : jobs_) {
    if (OwnerOf(*shown.status) != uid) continue;
    JobStatus status = *shown.status;
    if (NameUser(names_, status)) shown.status = std::make_shared<const JobStatus>(status);
  }
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
