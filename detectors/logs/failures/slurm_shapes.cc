// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

struct EndRow {
  std::string_view text;
  std::string_view sub;
};

// slurmstepd's own words (_send_job_complete_msg and signal handling in slurmstepd/req.c). The
// plain CANCELLED comes last: the others contain it.
constexpr EndRow kEnds[] = {
    {"DUE TO TIME LIMIT", subs::kTimeLimit},
    {"DUE TO PREEMPTION", subs::kPreemption},
    {"DUE TO NODE FAILURE", subs::kNodeFailure},
    {"DUE TO JOB REQUEUE", subs::kRequeue},
    {"UNCORRECTABLE MEMORY ERROR", "memory_error"},
    {"FAILED (non-zero exit code or other failure mode)", subs::kFailed},
    {"DUE TO TASK FAILURE", subs::kFailed},
    {"JOB NOT ENDING WITH SIGNALS", subs::kFailed},
    {"CANCELLED AT", subs::kCancelled},
};

constexpr std::string_view kEndAnchors[] = {"*** JOB ", "*** STEP ", "*** StepId=", "*** JobId="};
constexpr std::string_view kOomAnchors[] = {"oom-kill event",
                                            "oom_kill event",
                                            "Exceeded job memory limit",
                                            "Exceeded step memory limit",
                                            "exceeded memory limit",
                                            "exceeded virtual memory limit"};
constexpr std::string_view kTaskAnchors[] = {": task ", ": tasks "};
constexpr std::string_view kNodeAnchors[] = {"Node failure on "};
constexpr std::string_view kLaunchAnchors[] = {"Task launch for "};
constexpr std::string_view kBatchAnchors[] = {"=>> PBS: job killed", "TERM_RUNLIMIT",
                                              "TERM_MEMLIMIT",       "TERM_OWNER",
                                              "TERM_PREEMPT",        "OOMKilled"};
constexpr std::string_view kRefusalAnchors[] = {
    "Unable to create step for job ",
    "Unable to allocate resources: ", "Batch job submission failed: ", "execve(): "};
constexpr std::string_view kDirectoryAnchors[] = {"couldn't chdir to `"};
constexpr std::string_view kWaitAnchors[] = {"srun: First task exited "};
constexpr std::string_view kStateAnchors[] = {"srun: StepId="};
constexpr std::string_view kTerminatingAnchors[] = {"srun: Terminating StepId=",
                                                    "srun: Terminating job step "};
constexpr std::string_view kForceAnchors[] = {"Force Terminated "};
constexpr std::string_view kInterruptAnchors[] = {"srun: sending Ctrl-C to "};

// A job id with its array or step part: digits, '.', '_', '+' and the step's name.
std::string_view IdText(std::string_view text) {
  return text.substr(0, text.find_first_of(" ,:*"));
}

// "*** STEP 8841.0 ON n1 CANCELLED AT 2026-.. DUE TO TIME LIMIT ***"
void ParseEnd(const CleanLine& line, RecordList& out) {
  for (const EndRow& row : kEnds) {
    if (!Contains(line.text, row.text)) continue;
    Incident incident = MakeIncident(IncidentKind::kSchedulerEnd, line, "slurmstepd");
    incident.sub = row.sub;
    // A step that failed is the scheduler's report of the program's end.
    if (row.sub == subs::kFailed) incident.role = Role::kWrapper;
    AddField(incident, "job", IdText(After(line.text, "*** JOB ")));
    AddField(incident, "job", IdText(After(line.text, "*** JobId=")));
    AddField(incident, "step", IdText(After(line.text, "*** STEP ")));
    AddField(incident, "step", IdText(After(line.text, "*** StepId=")));
    AddField(incident, "node", LeadingWord(After(line.text, " ON ")));
    AddField(incident, "at", LeadingWord(After(line.text, " AT ")));
    AddField(incident, "reason", Trim(Before(After(line.text, "REASON: "), "***")));
    out.push_back(std::move(incident));
    return;
  }
}

// Three generations: "in StepId=1.0", "in step 1.batch cgroup", "Exceeded job memory limit".
void ParseOom(const CleanLine& line, RecordList& out) {
  if (!ContainsAny(line.text, {"slurmstepd", "srun", "Detected ", "StepId", "step "})) return;
  Incident incident = MakeIncident(IncidentKind::kHostOom, line, "slurm_oom");
  incident.sub = "cgroup";
  if (const auto events = IntAfter(line.text, "Detected "); events) {
    if (*events == 0) return;
    AddField(incident, "events", *events);
  }
  std::string_view step = IdText(After(line.text, "StepId="));
  if (step.empty()) step = IdText(After(line.text, "in step "));
  while (step.ends_with(".")) step.remove_suffix(1);
  AddField(incident, "step", step);
  out.push_back(std::move(incident));
}

// "srun: error: n1: task 0: Out Of Memory", "srun: error: n1: tasks 0-3: Exited with exit code 1"
void ParseTask(const CleanLine& line, RecordList& out) {
  if (!ContainsAny(line.text, {"srun: error:", "srun:"})) return;
  std::string_view rest = After(line.text, ": task ");
  const bool one = !rest.empty();
  if (!one) rest = After(line.text, ": tasks ");
  const std::string_view tasks = Before(rest, ":");
  const std::string_view words = Trim(After(rest, ":"));
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, "srun_task");
  incident.role = Role::kWrapper;
  incident.rank = -1;
  const int32_t signal = SignalOfDescription(words);
  if (words.starts_with("Out Of Memory")) {
    incident.kind = IncidentKind::kHostOom;
    incident.role = Role::kInitiating;
    incident.sub = "cgroup";
  } else if (words.starts_with("Exited with exit code ")) {
    const auto code = IntAfter(words, "exit code ");
    if (!code || *code < -255 || *code > 255 || *code == 0) return;
    incident.exit_code = static_cast<int32_t>(*code);
    if (incident.exit_code == 143) incident.role = Role::kCascade;
    // A shell's word for the death of its child, where the task is a shell.
    if (const int32_t died = CrashOfExitCode(incident.exit_code); died != 0) {
      incident.kind = IncidentKind::kSignalDeath;
      incident.role = Role::kInitiating;
      SetSignal(incident, died);
    }
  } else if (signal != 0) {
    incident.kind = IncidentKind::kSignalDeath;
    SetSignal(incident, signal);
    if (signal == 15) incident.role = Role::kCascade;
  } else {
    return;
  }
  const auto task = LeadingInt(tasks);
  if (one && task && *task >= 0 && *task < (1 << 24)) incident.rank = static_cast<int32_t>(*task);
  AddField(incident, "tasks", Capped(tasks, 120));
  std::string_view node = After(line.text, "error: ");
  AddField(incident, "node", LeadingWord(Before(node, ":")));
  out.push_back(std::move(incident));
}

// "srun: error: Node failure on gpu-11"
void ParseNode(const CleanLine& line, RecordList& out) {
  if (!ContainsAny(line.text, {"srun: error:", "salloc: error:", "slurmstepd"})) return;
  Incident incident = MakeIncident(IncidentKind::kSchedulerEnd, line, "srun_node_failure");
  incident.sub = subs::kNodeFailure;
  incident.rank = -1;
  AddField(incident, "node", LeadingWord(After(line.text, "Node failure on ")));
  out.push_back(std::move(incident));
}

// "srun: error: Task launch for StepId=7.0 failed on node n4: Communication connection failure":
// what slurmd there refuses (credentials, a working directory) is another matter.
void ParseLaunch(const CleanLine& line, RecordList& out) {
  if (!Contains(line.text, "srun: error:")) return;
  if (!ContainsAny(line.text, {"Communication connection failure", "Socket timed out",
                               "Zero Bytes were transmitted or received"}))
    return;
  Incident incident = MakeIncident(IncidentKind::kSchedulerEnd, line, "srun_launch");
  incident.sub = subs::kNodeFailure;
  incident.rank = -1;
  AddField(incident, "node", Before(LeadingWord(After(line.text, " on node ")), ":"));
  out.push_back(std::move(incident));
}

struct BatchRow {
  std::string_view text;
  IncidentKind kind;
  std::string_view sub;
};

// The words of PBS, LSF and Kubernetes for the same acts.
constexpr BatchRow kBatch[] = {
    {"=>> PBS: job killed: walltime", IncidentKind::kSchedulerEnd, subs::kTimeLimit},
    {"=>> PBS: job killed: mem", IncidentKind::kHostOom, "cgroup"},
    {"=>> PBS: job killed: vmem", IncidentKind::kHostOom, "cgroup"},
    {"TERM_RUNLIMIT: job killed", IncidentKind::kSchedulerEnd, subs::kTimeLimit},
    {"TERM_MEMLIMIT: job killed", IncidentKind::kHostOom, "cgroup"},
    {"TERM_OWNER: job killed", IncidentKind::kSchedulerEnd, subs::kCancelled},
    {"TERM_PREEMPT: job killed", IncidentKind::kSchedulerEnd, subs::kPreemption},
    {"OOMKilled", IncidentKind::kHostOom, "cgroup"},
};

void ParseBatch(const CleanLine& line, RecordList& out) {
  for (const BatchRow& row : kBatch) {
    if (!Contains(line.text, row.text)) continue;
    if (row.text == "OOMKilled" &&
        !ContainsAny(line.text, {"Reason", "reason", "status", "Status"}))
      return;
    Incident incident = MakeIncident(row.kind, line, "batch_system");
    incident.sub = row.sub;
    out.push_back(std::move(incident));
    return;
  }
}

// What Slurm refuses before anything runs: "srun: error: Unable to create step for job 7: More
// processors requested than permitted", "slurmstepd: error: execve(): fit.sh: Permission denied".
void ParseRefusal(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const bool execve = Contains(text, "execve(): ");
  // Where a node's name is not its host's, it stands in that of its daemons: "slurmstepd-n1".
  const bool daemon = execve && text.starts_with("slurmstepd") && Contains(text, ": error: ");
  if (!daemon &&
      !ContainsAny(text,
                   {"srun: error:", "sbatch: error:", "salloc: error:", "slurmstepd: error:"}))
    return;
  if (IsRetry(text) || Contains(text, "temporarily disabled")) return;
  Incident incident = MakeIncident(IncidentKind::kUsageError, line, "slurm_refusal");
  incident.frame = FrameKind::kConfig;
  incident.rank = -1;
  incident.sub = !execve                               ? subs::kRefused
                 : Contains(text, "Permission denied") ? "not_executable"
                 : Contains(text, "Exec format error") ? "not_a_program"
                                                       : "no_file";
  incident.message = Capped(After(text, "error: "), kMessageCap);
  out.push_back(std::move(incident));
}

// "slurmstepd: error: couldn't chdir to `/no/such/dir': No such file or directory: going to /tmp
// instead": the task runs there, and may need no file of its directory.
void ParseDirectory(const CleanLine& line, RecordList& out) {
  const std::string_view elsewhere = Before(After(line.text, ": going to "), " instead");
  if (!line.text.starts_with("slurmstepd") || elsewhere.empty()) return;
  Incident incident = MakeIncident(IncidentKind::kUsageError, line, "slurm_chdir");
  incident.role = Role::kCascade;
  incident.rank = -1;
  incident.message = Capped(After(line.text, "error: "), kMessageCap);
  AddField(incident, "directory", Capped(elsewhere, 255));
  out.push_back(std::move(incident));
}

// srun's --wait has run out. It prints what its tasks do, and ends the step; the task that had
// ended first is what is amiss, and not these words.
void ParseWait(const CleanLine& line, RecordList& out) {
  const auto seconds = IntAfter(line.text, "First task exited ");
  if (!seconds || *seconds < 0) return;
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, "srun_wait");
  incident.role = Role::kAdvice;
  incident.rank = -1;
  AddField(incident, "seconds", *seconds);
  out.push_back(std::move(incident));
}

// "srun: StepId=7.0 task 1: exited", "srun: StepId=7.0 tasks 1-3: exited": only one is named.
void ParseState(const CleanLine& line, RecordList& out) {
  std::string_view rest = After(line.text, " task ");
  const bool one = !rest.empty();
  if (!one) rest = After(line.text, " tasks ");
  const auto task = LeadingInt(rest);
  if (!task || *task < 0 || *task >= (1 << 24) || Trim(After(rest, ":")) != "exited") return;
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, "srun_state");
  incident.role = Role::kAdvice;
  incident.rank = one ? static_cast<int32_t>(*task) : -1;
  out.push_back(std::move(incident));
}

// "srun: Terminating StepId=7.0", "srun: Terminating job step 7.0": srun ends the step itself, for
// a task that failed (--kill-on-bad-exit) or did not end (--wait). Of a step that somebody else
// cancels it says "Job step aborted".
void ParseTerminating(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kSchedulerEnd, line, "srun_terminating");
  incident.role = Role::kCascade;
  incident.rank = -1;
  incident.sub = subs::kCancelled;
  // Not as "step": this line is no word of that step's end.
  const std::string_view step = After(line.text, "StepId=");
  AddField(incident, "of_step",
           IdText(step.empty() ? After(line.text, "Terminating job step ") : step));
  out.push_back(std::move(incident));
}

void ParseForce(const CleanLine& line, RecordList& out) {
  if (!Contains(line.text, "srun")) return;
  Incident incident = MakeIncident(IncidentKind::kSchedulerEnd, line, "srun_force");
  incident.role = Role::kCascade;
  incident.sub = subs::kCancelled;
  AddField(incident, "step", IdText(After(line.text, "StepId=")));
  out.push_back(std::move(incident));
}

// The second Ctrl-C at srun's terminal; the first one only makes it print the state of its tasks.
void ParseInterrupt(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kTerminated, line, "srun_interrupt");
  incident.rank = -1;
  SetSignal(incident, 2);
  AddField(incident, "step", IdText(After(line.text, "StepId=")));
  out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"slurmstepd", "slurmstepd says why it ends a job or a step", kEndAnchors, ParseEnd,
     "slurmstepd: error: *** STEP 60123.2 ON gpu-17 CANCELLED AT 2025-05-06T07:08:09 DUE TO "
     "PREEMPTION ***"},
    {"slurm_oom", "Slurm saw the out-of-memory killer in its cgroup", kOomAnchors, ParseOom,
     "slurmstepd: error: Detected 3 oom_kill events in StepId=71.batch. Some of the step tasks "
     "have been OOM Killed."},
    {"srun_task", "srun reports a task's end", kTaskAnchors, ParseTask,
     "srun: error: gpu-03: task 6: Segmentation fault (core dumped)"},
    {"srun_node_failure", "srun lost a node", kNodeAnchors, ParseNode,
     "srun: error: Node failure on gpu-11"},
    {"srun_launch", "srun reaches no slurmd on a node", kLaunchAnchors, ParseLaunch,
     "srun: error: Task launch for StepId=71.0 failed on node g7: Communication connection "
     "failure"},
    {"batch_system", "PBS, LSF or Kubernetes ends a job", kBatchAnchors, ParseBatch,
     "=>> PBS: job killed: walltime 7261 exceeded limit 7200"},
    {"slurm_refusal", "Slurm cannot start what it was asked to", kRefusalAnchors, ParseRefusal,
     "slurmstepd: error: execve(): train_all.sh: Permission denied"},
    {"slurm_chdir", "Slurm starts a task in another directory than was asked for",
     kDirectoryAnchors, ParseDirectory,
     "slurmstepd: error: couldn't chdir to `/home/u/run7': No such file or directory: going to "
     "/tmp instead"},
    {"srun_wait", "srun ends a step of which a task had ended (--wait)", kWaitAnchors, ParseWait,
     "srun: First task exited 30s ago"},
    {"srun_state", "srun says what a task does", kStateAnchors, ParseState,
     "srun: StepId=4242.0 task 3: exited"},
    {"srun_terminating", "srun ends a step for one of its tasks", kTerminatingAnchors,
     ParseTerminating, "srun: Terminating StepId=4242.0"},
    {"srun_force", "srun ends the step", kForceAnchors, ParseForce,
     "srun: Force Terminated StepId=4242.0"},
    {"srun_interrupt", "somebody interrupts srun at its terminal", kInterruptAnchors,
     ParseInterrupt, "srun: sending Ctrl-C to StepId=4242.0"},
};

}  // namespace

std::span<const ShapeRow> SlurmShapes() {
  return kRows;
}

}  // namespace rankscope::logs
