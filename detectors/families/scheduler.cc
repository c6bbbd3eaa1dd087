// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/scheduler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "detectors/families/curve.h"
#include "detectors/families/sender.h"
#include "detectors/model/subs.h"

namespace rankscope::families {

using features::Cause;
using features::JobFeatures;
using features::SchedulerFeatures;
using logs::IncidentKind;

namespace {

struct RerunRow {
  std::string_view rerun, text;  // of one that failed Slurm's word follows
};

constexpr RerunRow kReruns[] = {
    {"completed", "the job has since run again and completed"},
    {"running", "the job is running again"},
    {"waiting", "the job is waiting in the queue to run again"},
    {"held", "the job is held in the queue, where it does not start by itself"},
    {"cancelled", "the job was cancelled while it waited to run again"},
    {"failed", "the job has since run again and ended as "},
};

}  // namespace

const Cause* PrimarySchedulerEnd(const JobFeatures& f, std::string_view sub) {
  const Cause* primary = f.Primary();
  if (primary == nullptr || primary->incident().kind != IncidentKind::kSchedulerEnd) return nullptr;
  return primary->incident().sub == sub ? primary : nullptr;
}

Finding SchedulerFinding(const JobFeatures& f, std::string_view sub) {
  Finding finding = FromPrimary(f);
  finding.sub = sub;
  finding.symptom = "ended_by_scheduler";
  finding.domain = proto::DOMAIN_SCHEDULER;
  finding.component = "scheduler";
  // The scheduler's own record proves; its daemon's line in the job's output is one voice.
  for (const Cause& cause : f.causes) {
    const bool same = cause.role == Cause::Role::kInitiating &&
                      cause.incident().kind == IncidentKind::kSchedulerEnd &&
                      cause.incident().sub == f.Primary()->incident().sub;
    if (!same || cause.candidate->store != proto::STORE_SCHEDULER) continue;
    finding.tier = proto::TIER_P;
    // Who is told to stop may leave in order, and srun of 22.05 does when its node fails.
    finding.contradiction = 1;
  }
  Show(f.last_progress_evidence, finding);
  Show(f.leave.save, finding);
  Show(f.leave.evaluation, finding);
  return finding;
}

const Cause* Notice(const JobFeatures& f, std::string_view sub) {
  const Cause* primary = f.Primary();
  if (primary == nullptr || primary->event < features::CauseClass::kReasonToStop) return nullptr;
  for (const Cause& cause : f.causes) {
    const bool speaks =
        cause.role == Cause::Role::kInitiating || cause.role == Cause::Role::kSupport;
    if (speaks && cause.incident().kind == IncidentKind::kTerminated && cause.incident().sub == sub)
      return &cause;
  }
  return nullptr;
}

Finding NoticeFinding(const JobFeatures& f, std::string_view sub, const Cause& notice) {
  Finding finding = FromPrimary(f);
  finding.sub = sub;
  finding.signal = 0;
  finding.symptom = "ended_by_scheduler";
  finding.domain = proto::DOMAIN_SCHEDULER;
  finding.component = "scheduler";
  finding.cap = cap::kOneSource;
  if (std::find(finding.root.begin(), finding.root.end(), notice.evidence) == finding.root.end())
    finding.root.push_back(notice.evidence);
  Show(notice.evidence, finding);
  Show(f.last_progress_evidence, finding);
  Show(f.leave.save, finding);
  if (CancellerIsOpen(f)) finding.open.push_back(Question::kWhoCancelled);
  return finding;
}

void CapByWhatWasSeen(const JobFeatures& f, Finding& finding) {
  if (f.progress == 0) finding.cap = std::min(finding.cap, cap::kLookalike);
}

namespace {

// Whether it shows what no text is said to show, `what` as of NoSchedulerText.
bool IsOfScheduler(const Cause& cause, std::string_view what) {
  const logs::Incident& incident = cause.incident();
  if (incident.kind != IncidentKind::kSchedulerEnd && incident.kind != IncidentKind::kTerminated)
    return false;
  return incident.sub == what || (what == "preemption" && incident.sub == subs::kRequeue);
}

}  // namespace

RuledOut NoSchedulerText(const JobFeatures& f, std::string_view what) {
  const SchedulerFeatures& s = f.scheduler;
  if (s.judged >= 0) {
    const features::RecordedRun& run = s.runs[static_cast<size_t>(s.judged)];
    if (run.ended)
      return Excluded(Reason::kRecordedState, {run.evidence}, {{FieldId::kState, run.state}});
  }
  if (f.exit_known && f.exit_code == 0) return Exited(f, {f.exit_evidence});
  for (const Cause& cause : f.causes) {
    if (IsOfScheduler(cause, what)) return Excluded(Reason::kOtherFamily, {cause.evidence});
  }
  if (f.store(proto::STORE_SCHEDULER) == Availability::kUp) return NoSuchText(f, what);
  if (const Cause* primary = f.Primary()) {
    if (primary->incident().kind != IncidentKind::kSchedulerEnd && !IsDisposition(primary->event)) {
      return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "scheduler"}});
    }
  }
  if (f.running) return Excluded(Reason::kGoesOn);
  return NotDecidable(proto::STORE_SCHEDULER);
}

void AddLostWork(const JobFeatures& f, Finding& finding) {
  const features::LostWork& lost = f.lost;
  if (!std::isfinite(lost.seconds)) return;
  // One quote of the save is enough.
  const features::Evidence* const saved = f.At(f.leave.save);
  const features::Evidence* const cited = f.At(lost.evidence);
  if (saved != nullptr && cited != nullptr && saved->offset == cited->offset &&
      saved->stream == cited->stream)
    std::erase(finding.shows, f.leave.save);
  Show(lost.evidence, finding);
  finding.wasted_gpu_seconds = lost.gpu_seconds;
  finding.values.Set(lost.saved ? FieldId::kLost : FieldId::kLostAll, lost.seconds);
}

void AddHistory(const JobFeatures& f, Finding& finding) {
  const SchedulerFeatures& s = f.scheduler;
  for (const features::RecordedRun& run : s.runs) Show(run.evidence, finding);
  Show(s.rerun_evidence, finding);
  std::string text = "it is not known whether the job has run again";
  for (const RerunRow& row : kReruns) {
    if (row.rerun != s.rerun) continue;
    text = row.text;
    if (row.rerun == "failed") text += s.rerun_state;
  }
  finding.values.Set(FieldId::kRerun, std::move(text));
  if (s.rerun.empty()) finding.open.push_back(Question::kRerun);
}

}  // namespace rankscope::families
