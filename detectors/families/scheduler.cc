// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// F1, F2, F3 and X20: somebody other than the program ended the run. A time limit is a disposition,
// not a cause: it is the answer only when nothing failed and nothing hung.
#include <algorithm>
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/families/sender.h"
#include "detectors/families/standstill.h"

namespace rankscope::families {
namespace {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

constexpr int32_t kLeave = 88;  // of causes that are requests to stop, and none but them
constexpr double kTheProgramsWord = 0.65;

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
  if (f.Primary()->candidate->store == proto::STORE_SCHEDULER) finding.tier = proto::TIER_P;
  Show(f.last_progress_evidence, finding);
  Show(f.leave.save, finding);
  Show(f.leave.evaluation, finding);
  return finding;
}

// A program that says why it was told to stop; the request itself may have come first.
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

// One voice, and the program's: it may have taken any signal for a preemption.
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

}  // namespace

Finding EvaluateF1(const JobFeatures& f) {
  if (PrimarySchedulerEnd(f, "node_failure") == nullptr) return {};
  Finding finding = SchedulerFinding(f, "node_failure");
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "node";
  return finding;
}
RuledOut RuleOutF1(const JobFeatures& f) {
  return NoSchedulerText(f, "no node failure");
}

Finding EvaluateF2(const JobFeatures& f) {
  if (PrimarySchedulerEnd(f, "preemption") != nullptr) return SchedulerFinding(f, "preemption");
  if (PrimarySchedulerEnd(f, "requeue") != nullptr) return SchedulerFinding(f, "requeue");
  // A job that is requeued because its time is over ended by its time limit.
  if (Notice(f, "time_limit") != nullptr) return {};
  for (const std::string_view sub : {"preemption", "requeue"}) {
    if (const Cause* notice = Notice(f, sub)) return NoticeFinding(f, sub, *notice);
  }
  return {};
}
RuledOut RuleOutF2(const JobFeatures& f) {
  return NoSchedulerText(f, "no preemption and no requeue");
}

Finding EvaluateF3(const JobFeatures& f) {
  const Cause* notice = Notice(f, "time_limit");
  if (notice == nullptr && PrimarySchedulerEnd(f, "time_limit") == nullptr) return {};
  Finding finding =
      notice != nullptr ? NoticeFinding(f, "unknown", *notice) : SchedulerFinding(f, "unknown");
  if (f.timed && f.progress > 0) {
    finding.sub = f.silence_seconds < HangTimeout(f) ? "slow" : "stalled";
    finding.shows.push_back(f.silence_evidence);
  } else if (CallsCounted(f)) {
    // No word of it, but its calls say whether it still moved.
    finding.sub = Advances(f) ? "slow" : "stalled";
    Show(f.collectives.advance_evidence, finding);
    Show(f.launches.idle_evidence, finding);
  } else if (f.progress > 0) {
    finding.sub = "slow";
    finding.open.push_back(Question::kHungOrSlow);
  } else {
    finding.open.push_back(Question::kHungOrSlow);
  }
  if (std::isfinite(f.total_steps) && std::isfinite(f.step_seconds) && f.steps_known &&
      f.total_steps > f.steps) {
    finding.values.push_back(
        {"remaining_seconds", Number((f.total_steps - f.steps) * f.step_seconds)});
  }
  return finding;
}
RuledOut RuleOutF3(const JobFeatures& f) {
  return NoSchedulerText(f, "no time limit");
}

Finding EvaluateX20(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr) {
    // Killed from outside without a word: only the wait status speaks.
    if (!f.ended || !f.exit_known || (f.exit_code != 143 && f.exit_code != 130)) return {};
    Finding finding;
    finding.matched = true;
    finding.sub = f.exit_code == 143 ? "sigterm" : "sigint";
    finding.signal = f.exit_code - 128;
    finding.tier = f.exit_signal != 0 ? proto::TIER_P : proto::TIER_S;
    finding.cap = 0.85;  // the signal is proved, that it came from outside is inferred
    finding.symptom = "ended_by_scheduler";
    finding.component = "external";
    finding.shows = finding.root = {f.exit_evidence};
    if (f.last_progress_evidence != features::kNoEvidence)
      finding.shows.push_back(f.last_progress_evidence);
    finding.open.push_back(Question::kWhoCancelled);
    return finding;
  }
  const logs::Incident& incident = primary->incident();
  const bool cancelled =
      incident.kind == IncidentKind::kSchedulerEnd && incident.sub == "cancelled";
  const bool told = incident.kind == IncidentKind::kTerminated ||
                    (incident.kind == IncidentKind::kSignalDeath &&
                     (incident.signal == 15 || incident.signal == 2));
  if (!cancelled && !told) return {};
  Finding finding = cancelled ? SchedulerFinding(f, "cancelled") : FromPrimary(f);
  if (told) {
    finding.sub = incident.signal == 2 ? "sigint" : "sigterm";
    if (finding.signal == 0) finding.signal = 15;
    finding.symptom = "ended_by_scheduler";
    finding.component = "external";
    finding.domain = proto::DOMAIN_UNKNOWN;
    // A lone word may have been printed by anything.
    finding.cap = incident.sub == "bare" && finding.tier == proto::TIER_S ? 0.5 : 0.85;
    if (f.last_progress_evidence != features::kNoEvidence)
      finding.shows.push_back(f.last_progress_evidence);
    const Cause* const sent = FindSender(f, *primary);
    const std::string_view by = sent == nullptr ? std::string_view() : FieldOf(*sent, "sent_by");
    if (!by.empty() && by != "kernel" && by != "itself") {
      JudgeSender(*sent, by, finding);
      return finding;
    }
  }
  if (const std::string_view by = FieldOf(*primary, "by"); cancelled && !by.empty()) {
    finding.advice = "cancelled_by";
    finding.values.push_back({"by", std::string(by)});
  } else {
    finding.open.push_back(Question::kWhoCancelled);
  }
  return finding;
}

RuledOut RuleOutX20(const JobFeatures& f) {
  if (f.running) return Excluded("the run is going on");
  if (f.exit_known && f.exit_code == 0)
    return Excluded("the command exited with 0", {f.exit_evidence});
  for (const Cause& cause : f.causes) {
    if (cause.role == Cause::Role::kCascade && cause.precedence >= 80) {
      return Excluded("the termination follows an earlier failure", {cause.evidence});
    }
  }
  return NoSuchText(f, "no cancellation and no termination signal");
}

}  // namespace rankscope::families
