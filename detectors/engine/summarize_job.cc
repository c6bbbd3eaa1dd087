// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/engine/summarize_job.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "detectors/logs/text/redactor.h"
#include "detectors/windows/series/statistics.h"

namespace rankscope::engine {
namespace {

using windows::AttemptWindow;
using windows::EarlierAttempt;
using windows::MarkerSeen;
using windows::SaveSeen;

// MAD of a normal distribution with this sigma.
constexpr double kMadOfSigma = 1 / 1.4826;

std::string Masked(std::string text) {
  logs::Redact(std::span(text.data(), text.size()));
  return text;
}

void AddCheckpoint(std::string path, double bytes, double step, JobSummary& summary) {
  if (summary.checkpoints.size() >= JobSummary::kMostCheckpoints) return;
  path = Masked(std::move(path));
  if (path.empty() && !std::isfinite(step)) return;
  const bool known = std::any_of(
      summary.checkpoints.begin(), summary.checkpoints.end(),
      [&](const JobSummary::Checkpoint& each) { return !path.empty() && each.path == path; });
  if (!known) summary.checkpoints.push_back({std::move(path), bytes, step});
}

// Both tell of the same file where one's name ends with the other's: the program prints the whole
// path, the kernel knows the size.
bool SameFile(std::string_view told, std::string_view seen) {
  return !seen.empty() && (told.ends_with(seen) || seen.ends_with(told));
}

void AddNewest(const AttemptWindow& window, Timestamp now, JobSummary& summary) {
  const MarkerSeen& ended = window.marker(logs::MarkerKind::kSaveEnd);
  const MarkerSeen& told = ended.count > 0 ? ended : window.marker(logs::MarkerKind::kSaveBegin);
  const SaveSeen& whole = window.kernel.checkpoints.newest_whole(now);
  const SaveSeen& before = window.kernel.checkpoints.before();
  const double bytes = static_cast<double>(whole.bytes);
  summary.saves = std::max(told.count, window.kernel.checkpoints.saves());
  if (told.count > 0 && (!whole.present() || SameFile(told.text, whole.name))) {
    AddCheckpoint(told.text, whole.present() ? bytes : JobSummary::kNone, told.number, summary);
  } else {
    // What is whole on the disk goes before what somebody says.
    if (whole.present()) AddCheckpoint(whole.name, bytes, JobSummary::kNone, summary);
    if (told.count > 0) AddCheckpoint(told.text, JobSummary::kNone, told.number, summary);
  }
  if (before.whole() && before.name != whole.name)
    AddCheckpoint(before.name, static_cast<double>(before.bytes), JobSummary::kNone, summary);
}

void AddTraining(const AttemptWindow& window, JobSummary& summary) {
  summary.records = window.progress;
  summary.first_step = window.clock.first_step();
  if (std::isfinite(window.clock.reached())) summary.last_step = window.clock.reached();
  summary.total_steps = window.clock.total_steps();
  if (window.loss.first().present()) summary.first_loss = window.loss.first().value;
  if (window.loss.last().present()) summary.last_loss = window.loss.last().value;
  if (window.loss.points() > 2)
    summary.loss_mad = windows::NoiseSigma(window.loss.curve()) * kMadOfSigma;
  summary.finished = window.marker(logs::MarkerKind::kTrainEnd).count > 0;
}

JobSummary OfEarlier(const EarlierAttempt& earlier) {
  JobSummary summary;
  summary.records = earlier.progress;
  summary.first_step = earlier.first_step;
  summary.last_step = earlier.highest_step;
  summary.first_loss = earlier.first_loss.value;
  summary.last_loss = earlier.last_loss.value;
  summary.loss_mad = earlier.loss_noise * kMadOfSigma;
  summary.finished = earlier.finished;
  if (earlier.saved.count > 0) {
    summary.saves = earlier.saved.count;
    AddCheckpoint(earlier.saved.text, JobSummary::kNone, earlier.saved.number, summary);
  }
  return summary;
}

}  // namespace

JobSummary SummarizeJob(const windows::JobWindow& job, const proto::Verdict& verdict,
                        int64_t wall_offset_ns, Timestamp now) {
  JobSummary summary;
  AddTraining(job.now(), summary);
  AddNewest(job.now(), now, summary);
  for (auto earlier = job.earlier().rbegin(); earlier != job.earlier().rend(); ++earlier)
    summary = GoOn(OfEarlier(*earlier), std::move(summary));
  // What it had come to elsewhere before it was begun anew.
  for (const windows::ParentJob& parent : job.parents().all()) {
    const bool before = parent.known && parent.job_id == job.job_id() &&
                        parent.summary.restarts < job.attempt().slurm_restart;
    if (before) summary = GoOn(parent.summary, std::move(summary));
  }
  summary.job_id = job.job_id();
  summary.array_task = job.array_task();
  summary.restarts = std::max(0, job.attempt().slurm_restart);
  summary.code = verdict.code();
  summary.node = verdict.node();
  summary.program = Masked(ProgramOf(job.argv()));
  const Timestamp end = job.end().ended ? std::min(job.end().t, now) : now;
  if (wall_offset_ns > 0) summary.end_wall_seconds = (end.ns + wall_offset_ns) / 1'000'000'000;
  return summary;
}

}  // namespace rankscope::engine
