// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A program says that it is being taken off its nodes: preempted, requeued, out of time, evicted.
// Only words that tell of it as done or begun count; that a program is prepared for it, or was
// preempted once, is told in nearly the same words.
#include <algorithm>

#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"

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
    {": this job is preempted.", "preemption"},
    {": this job is timed-out.", "time_limit"},
    {"Job has timed out. Ran ", "time_limit"},
    // NeMo; TensorFlow's PreemptionCheckpointHandler saves for nothing else.
    {"reemption detected, saving checkpoint", "preemption"},
    {"PreemptionCheckpointHandler: Starting saving", "preemption"},
    {"reemption notice received", "preemption"},
    {"eceived preemption notice", "preemption"},
    {"eceived a preemption notice", "preemption"},
    {"reemption signal received", "preemption"},
    {"eceived preemption signal", "preemption"},
    {"pot interruption notice received", "preemption"},
    {"eceived spot interruption notice", "preemption"},
    {"pot interruption notice detected", "preemption"},
    {"pot interruption detected", "preemption"},
    {"pot instance is marked for", "preemption"},
    {"pot instance is being", "preemption"},
    {"nstance was preempted", "preemption"},
    {"ob was preempted", "preemption"},
    {"ode was preempted", "preemption"},
    {"od was preempted", "preemption"},
    {"ob is being preempted", "preemption"},
    {"ode is being preempted", "preemption"},
    {"nstance is being preempted", "preemption"},
    // Kubernetes' and Kueue's events.
    {"Preempted by ", "preemption"},
    {"Preempted to accommodate a workload", "preemption"},
    {"Preempted in order to admit", "preemption"},
    {"od was evicted", "preemption"},
    // Lightning, submitit, and scripts that echo their commands.
    {"Handling auto-requeue signal", "requeue"},
    {"handling auto-requeue signal", "requeue"},
    {"Requeued SLURM job", "requeue"},
    {"requeing job ", "requeue"},
    {"Requeuing job ", "requeue"},
    {"Requeueing job ", "requeue"},
    {"requeueing job ", "requeue"},
    {"requeuing job ", "requeue"},
    {"Requeued job ", "requeue"},
    {"requeued job ", "requeue"},
    {"requeued exp ", "requeue"},
    {"+ scontrol requeue ", "requeue"},
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
