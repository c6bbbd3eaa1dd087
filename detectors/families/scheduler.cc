// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// F1 and F2: the scheduler took the nodes away, because one failed or because it wanted them back.
#include "detectors/families/scheduler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"

namespace rankscope::families {

using features::Cause;
using features::JobFeatures;
using features::SchedulerFeatures;
using logs::IncidentKind;

namespace {

constexpr int32_t kLeave = 88;  // of causes that are requests to stop, and none but them
constexpr double kTheProgramsWord = 0.65;

struct RerunRow {
  std::string_view rerun, text;  // of one that failed Slurm's word follows
};
constexpr RerunRow kReruns[] = {
    {"completed", "the job has run again since, and completed"},
    {"running", "the job runs again"},
    {"waiting", "the job waits in the queue to run again"},
    {"failed", "the job has run again since, and ended as "},
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
  if (primary == nullptr || primary->precedence < kLeave) return nullptr;
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
  finding.cap = kTheProgramsWord;
  if (std::find(finding.root.begin(), finding.root.end(), notice.evidence) == finding.root.end())
    finding.root.push_back(notice.evidence);
  Show(notice.evidence, finding);
  Show(f.last_progress_evidence, finding);
  Show(f.leave.save, finding);
  finding.open.push_back(Question::kWhoCancelled);
  return finding;
}

RuledOut NoSchedulerText(const JobFeatures& f, std::string_view what) {
  const SchedulerFeatures& s = f.scheduler;
  if (s.judged >= 0) {
    const features::RecordedRun& run = s.runs[static_cast<size_t>(s.judged)];
    if (run.ended) return Excluded("the record of the run says " + run.state, {run.evidence});
  }
  if (f.exit_known && f.exit_code == 0)
    return Excluded("the command exited with 0", {f.exit_evidence});
  if (f.store(proto::STORE_SCHEDULER) == Availability::kUp) return NoSuchText(f, what);
  if (const Cause* primary = f.Primary()) {
    if (primary->incident().kind != IncidentKind::kSchedulerEnd && primary->precedence < 80) {
      return Excluded("the run failed by itself", {primary->evidence});
    }
  }
  if (f.running) return Excluded("the run is going on");
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
  finding.values.push_back({lost.saved ? "lost" : "lost_all", Lasting(lost.seconds)});
}

void AddHistory(const JobFeatures& f, Finding& finding) {
  const SchedulerFeatures& s = f.scheduler;
  for (const features::RecordedRun& run : s.runs) Show(run.evidence, finding);
  Show(s.rerun_evidence, finding);
  std::string text = "whether the job has run again is not known";
  for (const RerunRow& row : kReruns) {
    if (row.rerun != s.rerun) continue;
    text = row.text;
    if (row.rerun == "failed") text += s.rerun_state;
  }
  finding.values.push_back({"rerun", std::move(text)});
  if (s.rerun.empty()) finding.open.push_back(Question::kRerun);
}

namespace {

// What the record says of the node, and what that leaves open.
void JudgeNode(const JobFeatures& f, Finding& finding) {
  const SchedulerFeatures& s = f.scheduler;
  finding.values.push_back({"the_node", s.failed_node.empty() ? "the node" : s.failed_node});
  if (!s.node_class.empty() && s.node_class != "none" && s.node_class != "other")
    finding.values.push_back({"node_class", s.node_class});
  Show(s.node_evidence, finding);
  Show(s.boot_evidence, finding);
  const bool booted = s.boot == SchedulerFeatures::Boot::kAnother || s.node_class == "rebooted";
  if (booted) {
    finding.sub = "rebooted";
  } else {
    finding.open.push_back(Question::kNodeOrDaemon);
    if (s.boot == SchedulerFeatures::Boot::kSame) {
      finding.open.pop_back();
      // Whoever has given another reason knows better.
      constexpr std::string_view kSilent[] = {"", "none", "other", "not_responding"};
      if (std::find(std::begin(kSilent), std::end(kSilent), s.node_class) != std::end(kSilent))
        finding.advice = "not_booted";
    }
  }
  finding.open.push_back(Question::kWhyNodeFailed);
}

// Nothing that failed of itself comes before it, and text that has times goes on until near it:
// survivors may wait for a lost node as long as the scheduler does before it says so.
bool ProgressedToTheEnd(const JobFeatures& f) {
  constexpr double kNodeTimeout = 300;
  return !f.timed || f.progress == 0 ||
         f.silence_seconds <= std::max(kNodeTimeout, HangTimeout(f)) + 60;
}

}  // namespace

Finding EvaluateF1(const JobFeatures& f) {
  if (PrimarySchedulerEnd(f, "node_failure") == nullptr) return {};
  Finding finding = SchedulerFinding(f, "node_failure");
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "node";
  // A node's state that met the run's end, without the job's own record.
  if (f.Primary()->incident().shape == "node_record") finding.tier = proto::TIER_C;
  if (finding.tier != proto::TIER_P) HoldToItsWord(f, finding);
  if (!ProgressedToTheEnd(f)) {
    // It stood long before the node was lost.
    finding.cap = 0.7;
    Show(f.silence_evidence, finding);
  }
  JudgeNode(f, finding);
  AddHistory(f, finding);
  AddLostWork(f, finding);
  return finding;
}
RuledOut RuleOutF1(const JobFeatures& f) {
  return NoSchedulerText(f, "no node failure");
}

namespace {

Finding JudgeReturn(const JobFeatures& f, Finding finding) {
  const Cause* const primary = f.Primary();
  const bool recorded = primary->candidate->store == proto::STORE_SCHEDULER;
  // The record has a word of its own for preemption.
  if (finding.sub == "requeue" && recorded) finding.open.push_back(Question::kWhoRequeued);
  AddHistory(f, finding);
  AddLostWork(f, finding);
  const std::string& rerun = f.scheduler.rerun;
  if (rerun == "completed") finding.advice = "recovered";
  if (rerun == "failed") finding.advice = "lost";
  return finding;
}

}  // namespace

Finding EvaluateF2(const JobFeatures& f) {
  if (PrimarySchedulerEnd(f, "preemption") != nullptr)
    return JudgeReturn(f, SchedulerFinding(f, "preemption"));
  if (PrimarySchedulerEnd(f, "requeue") != nullptr)
    return JudgeReturn(f, SchedulerFinding(f, "requeue"));
  // A job that is requeued because its time is over ended by its time limit.
  if (Notice(f, "time_limit") != nullptr) return {};
  for (const std::string_view sub : {"preemption", "requeue"}) {
    if (const Cause* notice = Notice(f, sub)) return JudgeReturn(f, NoticeFinding(f, sub, *notice));
  }
  return {};
}
RuledOut RuleOutF2(const JobFeatures& f) {
  return NoSchedulerText(f, "no preemption and no requeue");
}

}  // namespace rankscope::families
