// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <utility>

#include "detectors/features/landmarks.h"
#include "detectors/features/promql.h"

namespace rankscope::features {
namespace {

using windows::SuspendedBy;
using windows::Suspension;
using windows::SuspensionTracker;

// Whoever stops the processes of a job one after the other is soon through; and a debugger that
// attaches to them says so after a second.
constexpr double kSettledSeconds = 2;

}  // namespace

void DescribeSuspension(const windows::JobWindow& job, bool earlier, Citer& citer, JobFeatures& f) {
  const SuspensionTracker& tracker = job.suspension();
  SuspensionFeatures& suspension = f.suspension;
  suspension.total_seconds = tracker.Total(f.now).seconds();
  suspension.times = tracker.times();
  if (tracker.Suspended(f.now) && f.running && !earlier) {
    const Suspension& current = tracker.current();
    suspension.seconds = (f.now - current.begin).seconds();
    suspension.now = suspension.seconds >= kSettledSeconds;
    suspension.seconds_ago = 0;
  } else if (!tracker.past().empty()) {
    suspension.seconds_ago = (f.now - tracker.past().back().end).seconds();
  }
  if (suspension.now) {
    const Suspension& current = tracker.current();
    Evidence evidence;
    evidence.kind = EvidenceKind::kSuspended;
    evidence.store = proto::STORE_PROCESS;
    evidence.observed = suspension.seconds;
    evidence.unit = "s";
    evidence.begin = current.begin;
    evidence.end = f.now;
    const bool freezer = static_cast<SuspendedBy>(current.by) == SuspendedBy::kFreezer;
    evidence.values = {
        {FieldId::kBy, freezer ? "freezer" : "signal"},
        {FieldId::kProcesses, static_cast<int64_t>(current.processes)},
        {FieldId::kQuery, FillQuery("rankscope_job_suspended_seconds_total{$} - @",
                                    {.matchers = "job_id=\"" + f.job_id + "\"",
                                     .from = suspension.total_seconds - suspension.seconds})}};
    suspension.evidence = citer.Add(std::move(evidence));
    f.notices.push_back({suspension.evidence, "suspended", {}});
  } else if (!tracker.past().empty()) {
    Evidence evidence;
    evidence.kind = EvidenceKind::kSuspended;
    evidence.store = proto::STORE_PROCESS;
    evidence.observed = suspension.total_seconds;
    evidence.unit = "s";
    evidence.begin = tracker.past().front().begin;
    evidence.end = tracker.past().back().end;
    evidence.values = {
        {FieldId::kSuspensions, static_cast<int64_t>(suspension.times)},
        {FieldId::kQuery, "rankscope_job_suspended_seconds_total{job_id=\"" + f.job_id + "\"}"}};
    suspension.past_evidence = citer.Add(std::move(evidence));
    f.notices.push_back({suspension.past_evidence, "was_suspended", {}});
  }
}

}  // namespace rankscope::features
