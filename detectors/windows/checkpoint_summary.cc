// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/checkpoint_summary.h"

#include <algorithm>
#include <cmath>

namespace rankscope::windows {
namespace {

// When the job ended, or now.
Timestamp Until(const JobWindow& job, Timestamp now) {
  if (job.end().ended) return std::min(job.end().t, now);
  if (job.processes_seen() > 0 && job.processes_alive() == 0)
    return std::min(job.last_process_exit(), now);
  return now;
}

bool EndedWell(const JobWindow& job) {
  return job.end().ended && job.end().status_known && job.end().wait_status == 0;
}

void FromFiles(const CheckpointTracker& tracker, Timestamp now, CheckpointSummary& summary) {
  const SaveSeen& whole = tracker.newest_whole(now);
  summary.files = true;
  summary.saves = tracker.saves();
  summary.saved = whole.present();
  summary.newest_whole = tracker.newest().whole() || tracker.under_way(now);
  if (summary.saved) {
    summary.begin = whole.begin;
    summary.end = whole.end;
    summary.seconds = whole.seconds();
    summary.bytes = static_cast<double>(whole.bytes);
  }
  summary.interval_seconds = tracker.IntervalSeconds();
  const double loss = tracker.LossPerInterval();
  if (tracker.free_bytes() >= 0 && loss > 0 && summary.interval_seconds > 0)
    summary.full_in_seconds = tracker.free_bytes() / loss * summary.interval_seconds;
}

void FromText(const AttemptWindow& window, CheckpointSummary& summary) {
  const MarkerSeen& begun = window.marker(logs::MarkerKind::kSaveBegin);
  const MarkerSeen& ended = window.marker(logs::MarkerKind::kSaveEnd);
  summary.saves = std::max(begun.count, ended.count);
  if (ended.count > 0) {
    summary.saved = true;
    summary.end = ended.last;
    // The end of the save that was begun, or the only thing that is said of one.
    summary.begin = begun.count > 0 && begun.last <= ended.last ? begun.last : ended.last;
    if (summary.begin < summary.end) summary.seconds = (summary.end - summary.begin).seconds();
  } else if (begun.count > 0 && window.clock.last_progress() > begun.last) {
    // Training went on behind it.
    summary.saved = true;
    summary.begin = summary.end = begun.last;
  }
  const double steps = window.training.saves().Interval();
  const double step_seconds = window.clock.MedianStepSeconds();
  if (std::isfinite(steps) && std::isfinite(step_seconds))
    summary.interval_seconds = steps * step_seconds;
}

}  // namespace

CheckpointSummary SummarizeCheckpoints(const JobWindow& job, Timestamp now) {
  const AttemptWindow& window = job.now();
  const CheckpointTracker& tracker = window.kernel.checkpoints;
  CheckpointSummary summary;
  if (tracker.saves() > 0) {
    FromFiles(tracker, now, summary);
  } else {
    FromText(window, summary);
  }
  if (tracker.free_bytes() >= 0) summary.free_bytes = tracker.free_bytes();
  if (window.progress > 0 && !EndedWell(job)) {
    const Timestamp since = summary.saved ? summary.begin : window.first_progress.t;
    const double ranks = std::max(job.world_size(), 1);
    summary.work_at_risk_seconds = std::max(0.0, (Until(job, now) - since).seconds()) * ranks;
  }
  return summary;
}

}  // namespace rankscope::windows
