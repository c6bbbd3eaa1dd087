// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A program says that it is being taken off its nodes: preempted, requeued, out of time, evicted.
// Only words that tell of it as done or begun count; that a program is prepared for it, or was
// preempted once, is told in nearly the same words.
#include <algorithm>

#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kNoticeAnchors[] = {"reempt",
                                               "equeued ",
                                               "equeing job ",
                                               "equeuing SLURM job ",
                                               "equeuing job ",
                                               "equeueing job ",
                                               "scontrol requeue",
                                               "auto-requeue signal",
                                               "pot interruption",
                                               "pot instance ",
                                               "victed",
                                               "this job is timed-out",
                                               "Job has timed out. Ran "};

struct NoticeRow {
  std::string_view text;
  std::string_view sub;
};
constexpr NoticeRow kNotices[] = {
    // submitit says which of the two its signal means.
    {": this job is preempted.", subs::kPreemption},
    {": this job is timed-out.", subs::kTimeLimit},
    {"Job has timed out. Ran ", subs::kTimeLimit},
    // NeMo; TensorFlow's PreemptionCheckpointHandler saves for nothing else.
    {"reemption detected, saving checkpoint", subs::kPreemption},
    {"PreemptionCheckpointHandler: Starting saving", subs::kPreemption},
    {"reemption notice received", subs::kPreemption},
    {"eceived preemption notice", subs::kPreemption},
    {"eceived a preemption notice", subs::kPreemption},
    {"reemption signal received", subs::kPreemption},
    {"eceived preemption signal", subs::kPreemption},
    {"pot interruption notice received", subs::kPreemption},
    {"eceived spot interruption notice", subs::kPreemption},
    {"pot interruption notice detected", subs::kPreemption},
    {"pot interruption detected", subs::kPreemption},
    {"pot instance is marked for", subs::kPreemption},
    {"pot instance is being", subs::kPreemption},
    {"nstance was preempted", subs::kPreemption},
    {"ob was preempted", subs::kPreemption},
    {"ode was preempted", subs::kPreemption},
    {"od was preempted", subs::kPreemption},
    {"ob is being preempted", subs::kPreemption},
    {"ode is being preempted", subs::kPreemption},
    {"nstance is being preempted", subs::kPreemption},
    // Kubernetes' and Kueue's events.
    {"Preempted by ", subs::kPreemption},
    {"Preempted to accommodate a workload", subs::kPreemption},
    {"Preempted in order to admit", subs::kPreemption},
    {"od was evicted", subs::kPreemption},
    // Lightning, submitit, and scripts that echo their commands.
    {"Handling auto-requeue signal", subs::kRequeue},
    {"handling auto-requeue signal", subs::kRequeue},
    {"Requeued SLURM job", subs::kRequeue},
    {"requeing job ", subs::kRequeue},
    {"Requeuing job ", subs::kRequeue},
    {"Requeueing job ", subs::kRequeue},
    {"requeueing job ", subs::kRequeue},
    {"requeuing job ", subs::kRequeue},
    {"Requeued job ", subs::kRequeue},
    {"requeued job ", subs::kRequeue},
    {"requeued exp ", subs::kRequeue},
    {"+ scontrol requeue ", subs::kRequeue},
};

// Conditions, preparations, denials, and what happened to an earlier run.
bool IsNoNotice(std::string_view text) {
  static constexpr std::string_view kWords[] = {
      " if ",     "If ",       "when ",    "When ",   "andler for", "andlers", "andler installed",
      "would",    "enabled",   "disabled", "revious", "esum",       "earlier", "to handle",
      "in case",  " not ",     "never",    "failed",  "imulat",     "egister", "Waiting",
      "last run", "no longer", "ast time", "estart"};
  return ContainsAny(text, kWords) || IsAdvice(text);
}

void ParseNotice(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const auto row = std::find_if(std::begin(kNotices), std::end(kNotices),
                                [text](const NoticeRow& one) { return Contains(text, one.text); });
  if (row == std::end(kNotices) || IsNoNotice(text)) return;
  Incident incident = MakeIncident(IncidentKind::kTerminated, line, "taken_off");
  incident.sub = row->sub;
  out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"taken_off", "a program says that it is preempted, requeued or out of time", kNoticeAnchors,
     ParseNotice,
     "submitit WARNING (2026-02-03 04:05:06,789) - Caught signal SIGUSR2 on gpu-7: this job is "
     "preempted."},
};

}  // namespace

std::span<const ShapeRow> NoticeShapes() {
  return kRows;
}

}  // namespace rankscope::logs
