// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/watch/job_course.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "exporter/slurm/values.h"

namespace rankscope::watch {
namespace {

using exporter::slurm::SlurmJob;

// The scheduler guesses the start of a job that waits anew with each round.
constexpr int64_t kSameStartSeconds = 600;

bool HasFlag(const SlurmJob& job, std::string_view part) {
  return std::any_of(job.state_flags.begin(), job.state_flags.end(),
                     [part](const auto& flag) { return flag.find(part) != std::string::npos; });
}

std::string NewsOf(const SlurmJob& job, Stage stage) {
  std::string news = job.state.empty() && !job.state_flags.empty() ? job.state_flags[0] : job.state;
  if (stage == Stage::kWaiting) news += ' ' + job.reason + ' ' + job.dependency;
  if (stage == Stage::kRunning) news += ' ' + job.nodes;
  return news + ' ' + std::to_string(job.restarts.value_or(0));
}

}  // namespace

Stage StageOf(const SlurmJob& job) {
  if (exporter::slurm::IsEndState(job.state)) return Stage::kEnded;
  if (job.state == "RUNNING" || job.state == "SUSPENDED") return Stage::kRunning;
  if (job.state == "PENDING" || HasFlag(job, "REQUEUE") || HasFlag(job, "SPECIAL_EXIT"))
    return Stage::kWaiting;
  return Stage::kNew;
}

int StatusOf(const SlurmJob& job) {
  if (StageOf(job) != Stage::kEnded) return kUnknownStatus;
  if (job.exit && job.exit->signal > 0) return std::min(255, 128 + job.exit->signal);
  if (job.exit && job.exit->code > 0) return std::min(255, job.exit->code);
  return job.state == "COMPLETED" ? 0 : 1;
}

JobCourse::News JobCourse::Update(const SlurmJob& job) {
  News news;
  if (stage_ == Stage::kEnded && !lost_) {
    const bool again = job.restarts.value_or(0) > job_.restarts.value_or(0);
    if (!again) return news;  // what it is now it was
  }
  const Stage seen = StageOf(job);
  const Stage stage = seen == Stage::kNew ? stage_ : seen;
  const bool restarted = job.restarts.value_or(0) > job_.restarts.value_or(0);
  const bool waits_again = running_ && stage == Stage::kWaiting;
  if (running_ && (restarted || waits_again || stage == Stage::kEnded)) {
    news.run_over = true;
    news.put_back = restarted || waits_again;
    running_ = false;
  }
  // One that was never seen to run has run if it has had nodes.
  const bool ran_unseen = stage == Stage::kEnded && !news.run_over && !job.nodes.empty();
  if (!running_ && stage == Stage::kRunning) news.run_begun = running_ = true;
  if (ran_unseen || (stage == Stage::kEnded && news.put_back)) news.run_begun = true;
  if (stage == Stage::kEnded) news.run_over = true;

  std::string told = NewsOf(job, stage);
  const int64_t start = stage == Stage::kWaiting ? job.start : 0;
  news.state = told != told_ || std::llabs(start - told_start_) >= kSameStartSeconds;
  if (seen == Stage::kNew && stage_ == Stage::kRunning) news.state = false;  // it completes
  if (news.state) {
    told_ = std::move(told);
    told_start_ = start;
  }
  const SlurmJob before = std::move(job_);
  job_ = job;
  // Accounting does not know where the output goes.
  if (job_.std_out.empty()) job_.std_out = before.std_out;
  if (job_.std_err.empty()) job_.std_err = before.std_err;
  if (job_.batch_host.empty()) job_.batch_host = before.batch_host;
  if (job_.work_dir.empty()) job_.work_dir = before.work_dir;
  if (!job_.uid) job_.uid = before.uid;
  if (!job_.restarts) job_.restarts = before.restarts;
  if (!job_.time_limit_seconds) job_.time_limit_seconds = before.time_limit_seconds;
  stage_ = stage;
  lost_ = false;
  return news;
}

JobCourse::News JobCourse::Lose() {
  News news;
  if (stage_ == Stage::kEnded) return news;
  news.run_over = true;
  news.state = true;
  lost_ = true;
  running_ = false;
  stage_ = Stage::kEnded;
  return news;
}

void JobCourse::Explain(const SlurmJob& accounted) {
  if (accounted.state != job_.state) return;
  if (!accounted.state_by.empty()) job_.state_by = accounted.state_by;
  if (accounted.derived_exit) job_.derived_exit = accounted.derived_exit;
  if (accounted.elapsed_seconds) job_.elapsed_seconds = accounted.elapsed_seconds;
}

}  // namespace rankscope::watch
