// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What Slurm's daemons log and what its commands print about the end of a job, where somebody puts
// that into a job's text or gives it as a file: slurmctld's log, sacct, "scontrol show job" and
// "scontrol show node".
#include <algorithm>

#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/ascii.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

struct StateRow {
  std::string_view state;  // sacct cuts it to ten letters and a plus
  IncidentKind kind;
  std::string_view sub;
};
// States of jobs that say by themselves why the job ended. FAILED says that the program did.
constexpr StateRow kStates[] = {
    {"NODE_FAIL", IncidentKind::kSchedulerEnd, subs::kNodeFailure},
    {"BOOT_FAIL", IncidentKind::kSchedulerEnd, subs::kNodeFailure},
    {"PREEMPTED", IncidentKind::kSchedulerEnd, subs::kPreemption},
    {"REQUEUED", IncidentKind::kSchedulerEnd, subs::kRequeue},
    {"TIMEOUT", IncidentKind::kSchedulerEnd, subs::kTimeLimit},
    {"DEADLINE", IncidentKind::kSchedulerEnd, subs::kTimeLimit},
    {"CANCELLED", IncidentKind::kSchedulerEnd, subs::kCancelled},
    {"OUT_OF_ME", IncidentKind::kHostOom, "cgroup"},
};
constexpr std::string_view kStateAnchors[] = {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REQUEUED",
                                              "TIMEOUT",   "DEADLINE",  "CANCELLED", "OUT_OF_ME"};
constexpr std::string_view kNodeAnchors[] = {"State=DOWN"};
constexpr std::string_view kDaemonAnchors[] = {" not responding, setting DOWN",
                                               " on failed node ",
                                               " due to failure of node ",
                                               " cancelled by node failure",
                                               " unexpectedly rebooted boot_time=",
                                               " missing from batch node ",
                                               "Time limit exhausted for ",
                                               " to reclaim resources for ",
                                               "REQUEST_KILL_JOB "};

const StateRow* FindState(std::string_view word) {
  const auto* row =
      std::find_if(std::begin(kStates), std::end(kStates),
                   [word](const StateRow& one) { return word.starts_with(one.state); });
  if (row == std::end(kStates)) return nullptr;
  const std::string_view rest = word.substr(row->state.size());
  const bool whole = rest.empty() || rest == "+" || (row->state == "OUT_OF_ME" && rest == "MORY");
  return whole ? row : nullptr;
}

// "0:15": the exit code as sacct prints it. A time of day has two colons or leading zeros' pairs.
bool IsExitCode(std::string_view word) {
  const size_t colon = word.find(':');
  return colon != std::string_view::npos && colon > 0 && colon < 4 &&
         IsDigits(word.substr(0, colon)) && IsDigits(word.substr(colon + 1)) &&
         word.size() - colon <= 4;
}

void Emit(const StateRow& row, std::string_view shape, std::string_view job, const CleanLine& line,
          RecordList& out) {
  Incident incident = MakeIncident(row.kind, line, shape);
  incident.sub = row.sub;
  incident.rank = -1;
  AddField(incident, "job", job);
  out.push_back(std::move(incident));
}

// A line of sacct about a job, not about a step of it: its number first, a state, an exit code.
// "71  fit  gpu  lab  64  NODE_FAIL  1:0", "71|fit|gpu|lab|64|CANCELLED by 1001|0:15".
void ParseSacct(const CleanLine& line, RecordList& out) {
  std::string_view text = Trim(line.text);
  constexpr size_t kLongest = 1000;
  if (text.size() > kLongest) return;
  std::string_view job;
  const StateRow* state = nullptr;
  bool code = false;
  for (bool first = true; !text.empty(); first = false) {
    const size_t end = text.find_first_of(" \t|");
    const std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (first) {
      job = word;
      const std::string_view number = job.substr(0, job.find_first_of("_+"));
      if (number.empty() || number.size() > 12 || !IsDigits(number)) return;
    } else if (state == nullptr) {
      state = FindState(word);
    } else {
      code = code || IsExitCode(word);
    }
  }
  if (state != nullptr && code) Emit(*state, "sacct_state", job, line, out);
}

// "   JobState=NODE_FAIL Reason=NodeDown Dependency=(null)"
void ParseJobState(const CleanLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  if (!text.starts_with("JobState=") || !Contains(text, " Reason=")) return;
  const StateRow* const state = FindState(LeadingWord(text.substr(9)));
  if (state != nullptr) Emit(*state, "scontrol_job", {}, line, out);
}

void ParseState(const CleanLine& line, RecordList& out) {
  if (Contains(line.text, "JobState=")) {
    ParseJobState(line, out);
  } else {
    ParseSacct(line, out);
  }
}

// "   State=DOWN*+CLOUD ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A": a node that is down now; a
// node that only drains finishes its jobs.
void ParseNodeState(const CleanLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  if (!text.starts_with("State=DOWN") || !Contains(text, " ThreadsPerCore=")) return;
  Incident incident = MakeIncident(IncidentKind::kSchedulerEnd, line, "scontrol_node");
  incident.sub = subs::kNodeFailure;
  incident.rank = -1;
  out.push_back(std::move(incident));
}

struct DaemonRow {
  std::string_view text;
  std::string_view before;  // must stand in front of it; empty: nothing
  std::string_view node;    // the word that a node's name follows
  std::string_view sub;
};
// slurmctld's own sentences: job_mgr.c, node_mgr.c, ping_nodes.c, preempt.c, proc_req.c.
constexpr DaemonRow kDaemon[] = {
    {" not responding, setting DOWN", "ode", "Node", subs::kNodeFailure},
    {" on failed node ", "Killing ", " on failed node ", subs::kNodeFailure},
    {" due to failure of node ", "equeue", " due to failure of node ", subs::kNodeFailure},
    {" cancelled by node failure", "Job", "", subs::kNodeFailure},
    {" unexpectedly rebooted boot_time=", "Node ", "Node ", subs::kNodeFailure},
    {" missing from batch node ", "Batch ", " missing from batch node ", subs::kNodeFailure},
    {"Time limit exhausted for ", "", "", subs::kTimeLimit},
    {" to reclaim resources for ", "preempted ", "", subs::kPreemption},
    {"REQUEST_KILL_JOB ", "_slurm_rpc_kill_job", "", subs::kCancelled},
};

// "JobId=71", "job 71".
std::string_view JobIn(std::string_view text) {
  std::string_view rest = After(text, "JobId=");
  if (rest.empty()) rest = After(text, "job ");
  return NumberText(rest);
}

void ParseDaemon(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  for (const DaemonRow& row : kDaemon) {
    if (!Contains(text, row.text)) continue;
    if (!row.before.empty() && !Contains(Before(text, row.text), row.before)) continue;
    const std::string_view job = JobIn(text);
    const bool of_job = row.node != "Node" && row.node != "Node ";
    if (of_job && job.empty()) continue;
    Incident incident = MakeIncident(IncidentKind::kSchedulerEnd, line, "slurmctld");
    incident.sub = row.sub;
    incident.rank = -1;
    if (of_job) AddField(incident, "job", job);
    if (!row.node.empty()) {
      std::string_view node = After(text, row.node);
      if (node.starts_with("s ")) node.remove_prefix(1);  // "Nodes n[1-2]"
      AddField(incident, "node", Capped(Before(Before(TrimLeft(node), " "), ","), 255));
    }
    out.push_back(std::move(incident));
    return;
  }
}

constexpr ShapeRow kRows[] = {
    {"sacct_state", "sacct or scontrol prints why Slurm ended a job", kStateAnchors, ParseState,
     "60123|pretrain|gpu|lab|512|NODE_FAIL|1:0"},
    {"scontrol_node", "scontrol prints that a node is down", kNodeAnchors, ParseNodeState,
     "   State=DOWN* ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A"},
    {"slurmctld", "slurmctld logs why it ends a job", kDaemonAnchors, ParseDaemon,
     "[2026-01-02T03:04:05.678] Killing JobId=60123 on failed node gpu-17"},
};

}  // namespace

std::span<const ShapeRow> SchedulerLogShapes() {
  return kRows;
}

}  // namespace rankscope::logs
