// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X20: somebody outside asked the run to stop: a user, a script, an operator.
#include <algorithm>
#include <csignal>
#include <string>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/families/scheduler.h"
#include "detectors/families/sender.h"
#include "detectors/model/subs.h"

namespace rankscope::families::external_cancel {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

// srun ends the step of which a task has failed (--kill-on-bad-exit), and slurmstepd prints of that
// what it prints of a cancelled step. The record says which it was; before it comes, that the task
// had failed first.
bool FailedElsewhere(const JobFeatures& f, const logs::Incident& cancelled) {
  const features::SchedulerFeatures& s = f.scheduler;
  if (s.judged >= 0 && static_cast<size_t>(s.judged) < s.runs.size()) {
    const std::string& state = s.runs[static_cast<size_t>(s.judged)].state;
    if (state == "FAILED" || state == "NODE_FAIL" || state == "OUT_OF_MEMORY") return true;
    if (state.starts_with("CANCELLED")) return false;
  }
  return std::any_of(f.causes.begin(), f.causes.end(), [&cancelled](const Cause& cause) {
    const logs::Incident& exit = cause.incident();
    constexpr int32_t kSignalled = 128;
    return exit.kind == IncidentKind::kNonZeroExit && exit.shape == "srun_task" &&
           exit.exit_code > 0 && exit.exit_code < kSignalled &&
           (exit.t < cancelled.t || (exit.t == cancelled.t && exit.offset < cancelled.offset));
  });
}

// Whether it shows that somebody or something asked the run to stop.
bool AsksToStop(const Cause& cause) {
  const logs::Incident& incident = cause.incident();
  return incident.kind == IncidentKind::kTerminated ||
         (incident.kind == IncidentKind::kSchedulerEnd && incident.sub == subs::kCancelled) ||
         (incident.kind == IncidentKind::kSignalDeath &&
          (incident.signal == SIGTERM || incident.signal == SIGINT));
}

std::string_view SubOf(int32_t signal) {
  if (signal == SIGINT) return "sigint";
  if (signal == SIGKILL) return "sigkill";
  if (signal == SIGHUP) return "sighup";
  return "sigterm";
}

Finding EndedFromOutside(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr) {
    // Killed from outside without a word: only the wait status speaks.
    if (!f.ended || !f.exit_known || (f.exit_code != 143 && f.exit_code != 130)) return {};
    Finding finding;
    finding.matched = true;
    finding.sub = f.exit_code == 143 ? "sigterm" : "sigint";
    finding.signal = f.exit_code - 128;
    finding.tier = f.exit_signal != 0 ? proto::TIER_P : proto::TIER_S;
    finding.cap = cap::kInferred;  // the signal is proved, that it came from outside is inferred
    finding.symptom = "ended_by_scheduler";
    finding.component = "external";
    finding.shows = finding.root = {f.exit_evidence};
    if (f.last_progress_evidence != features::kNoEvidence)
      finding.shows.push_back(f.last_progress_evidence);
    if (CancellerIsOpen(f)) finding.open.push_back(Question::kWhoCancelled);
    return finding;
  }
  if (EndedWithoutALoss(f, *primary)) return {};
  const logs::Incident& incident = primary->incident();
  const bool cancelled =
      incident.kind == IncidentKind::kSchedulerEnd && incident.sub == subs::kCancelled;
  const bool killed = KilledTheRun(f, *primary);
  const bool told = incident.kind == IncidentKind::kTerminated ||
                    (incident.kind == IncidentKind::kSignalDeath &&
                     (incident.signal == SIGTERM || incident.signal == SIGINT)) ||
                    killed;
  if (!cancelled && !told) return {};
  if (cancelled && primary->candidate->store == proto::STORE_LOG && FailedElsewhere(f, incident))
    return {};
  const Cause* const sent = told ? FindSender(f, *primary) : nullptr;
  // No scheduler ends a run with SIGINT unless it is asked to: scancel --signal, or Ctrl-C in srun.
  const bool asked =
      incident.signal == SIGINT && sent != nullptr && FieldOf(*sent, "sent_by") == "scheduler";
  if (sent != nullptr && IsCleanUp(*sent) && !asked) return {};
  Finding finding = cancelled ? SchedulerFinding(f, subs::kCancelled) : FromPrimary(f);
  if (told) {
    finding.sub = SubOf(incident.signal);
    if (finding.signal == 0) finding.signal = SIGTERM;
    if (killed) finding.ranks.clear();  // all alike
    finding.symptom = "ended_by_scheduler";
    finding.component = "external";
    finding.domain = proto::DOMAIN_UNKNOWN;
    // A lone word may have been printed by anything.
    finding.cap = incident.sub == subs::kBare && finding.tier == proto::TIER_S ? cap::kEvenOdds
                                                                               : cap::kInferred;
    if (f.last_progress_evidence != features::kNoEvidence)
      finding.shows.push_back(f.last_progress_evidence);
    const std::string_view by = sent == nullptr ? std::string_view() : FieldOf(*sent, "sent_by");
    if (!by.empty() && by != "kernel" && by != "itself") {
      JudgeSender(f, *sent, finding);
      if (incident.signal == SIGHUP && by == "same_user") finding.advice = "hung_up";
      return finding;
    }
    if (incident.signal == SIGHUP) finding.advice = "hung_up";
  }
  // Who cancels a run mostly has seen that it stood.
  if (!f.timed && f.silence_evidence != features::kNoEvidence &&
      f.silence_seconds >= HangTimeout(f)) {
    Show(f.silence_evidence, finding);
    finding.values.Set(FieldId::kSilence, f.silence_seconds);
  }
  if (const std::string_view by = Canceller(f); !by.empty()) {
    finding.advice = "cancelled_by";
    finding.values.Set(FieldId::kBy, by);
  } else if (CancellerIsOpen(f)) {
    finding.open.push_back(Question::kWhoCancelled);
  }
  return finding;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  Finding finding = EndedFromOutside(f);
  CapByWhatWasSeen(f, finding);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (f.running) return Excluded(Reason::kGoesOn);
  if (f.exit_known && f.exit_code == 0) return Exited(f, {f.exit_evidence});
  for (const Cause& cause : f.causes) {
    if (cause.role == Cause::Role::kCascade && IsDisposition(cause.event)) {
      return Excluded(Reason::kConsequence, {cause.evidence}, {{FieldId::kWhat, "termination"}});
    }
    // It was asked to stop, and nothing says for whom.
    if (cause.event == features::CauseClass::kStopRequest)
      return NotDecidable(proto::STORE_SCHEDULER);
  }
  const auto asks = std::find_if(f.causes.begin(), f.causes.end(), AsksToStop);
  const Cause* const primary = f.Primary();
  if (asks == f.causes.end()) {
    // Only the command's status tells of it.
    const bool asked = f.exit_known && (f.exit_signal == SIGTERM || f.exit_signal == SIGINT);
    if (!asked) return NoSuchText(f, "cancellation");
    if (primary == nullptr) return NotDecidable(proto::STORE_SCHEDULER);
    return Excluded(Reason::kOtherEvent, {primary->evidence, f.exit_evidence},
                    {{FieldId::kWhat, "running"}});
  }
  if (asks->role == Cause::Role::kRecovered)
    return Excluded(Reason::kWentOn, {asks->evidence, f.last_progress_evidence});
  if (primary == nullptr || AsksToStop(*primary)) return NotDecidable(proto::STORE_SCHEDULER);
  return Excluded(Reason::kOtherEvent, {primary->evidence, asks->evidence},
                  {{FieldId::kWhat, "running"}});
}

}  // namespace rankscope::families::external_cancel
