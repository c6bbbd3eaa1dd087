// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/clean_up.h"

#include <algorithm>
#include <csignal>
#include <string_view>

#include "detectors/features/cause_relations.h"
#include "detectors/features/left_early.h"
#include "detectors/model/subs.h"

namespace rankscope::features {
namespace {

using logs::Incident;
using logs::IncidentKind;
using Role = Cause::Role;

bool IsKill(const Incident& incident) {
  return incident.kind == IncidentKind::kSignalDeath && incident.signal == SIGKILL;
}

bool MayExplain(const Cause& cause) {
  return cause.role == Role::kInitiating || cause.role == Role::kWrapper;
}

// Nobody saw who sent the signal, or it was who cleans up.
bool MayBeCleanUp(const std::vector<Cause>& causes, const Cause& death) {
  const std::string_view sender = SenderOf(causes, death);
  return sender.empty() || sender == "scheduler" || sender == "launcher";
}

// slurmstepd's line of a cancelled step or job.
bool IsCancelInText(const Cause& cause) {
  const Incident& incident = cause.incident();
  return incident.kind == IncidentKind::kSchedulerEnd && incident.sub == subs::kCancelled &&
         incident.shape == "slurmstepd" && cause.candidate->store == proto::STORE_LOG;
}

bool StandsBefore(const Cause& a, const Cause& b) {
  const Incident& x = a.incident();
  const Incident& y = b.incident();
  return x.t < y.t || (x.t == y.t && x.offset < y.offset);
}

// Something had failed before, and the step was cancelled for that.
bool HadFailed(const std::vector<Cause>& causes, const Cause& cancel) {
  return std::any_of(causes.begin(), causes.end(), [&cancel](const Cause& cause) {
    // srun cancels the step after a task failed, or called MPI_Abort().
    const std::string_view shape = cause.incident().shape;
    if (shape == "srun_task" || shape == "mpi_abort") return StandsBefore(cause, cancel);
    const IncidentKind kind = cause.incident().kind;
    return cause.role == Role::kInitiating && IsFailure(cause.event) &&
           kind != IncidentKind::kSignalDeath;
  });
}

// NCCL's watchdog ends its own process when a peer is gone: std::terminate with the loss in its
// what(), then SIGABRT. A rank that died by itself left no such words.
void DemoteAbortsOfSurvivors(std::vector<Cause>& causes) {
  // The shell's exit code tells the signal and not whose it was.
  const auto may_be_same = [](const Incident& abort, const Incident& said) {
    return abort.rank < 0 || said.rank < 0 || abort.rank == said.rank || abort.shape == "exit_code";
  };
  for (Cause& abort : causes) {
    if (abort.role != Role::kInitiating || abort.incident().signal != SIGABRT) continue;
    if (abort.incident().kind != IncidentKind::kSignalDeath) continue;
    const bool survivor = std::any_of(causes.begin(), causes.end(), [&](const Cause& said) {
      return said.incident().kind == IncidentKind::kPeerLost &&
             said.incident().shape.starts_with("cpp_") &&
             said.candidate->order < abort.candidate->order &&
             may_be_same(abort.incident(), said.incident());
    });
    if (survivor) abort.role = Role::kCascade;
  }
}

// srun ends the step a while after the first of its tasks has ended (--wait): what it prints of
// that is what it prints of a cancelled step.
void DemoteWhatSrunDidToWhoStayed(std::vector<Cause>& causes) {
  const bool left = std::any_of(causes.begin(), causes.end(), [](const Cause& cause) {
    return cause.incident().shape == kLeftBeforeWait;
  });
  if (!left) return;
  for (Cause& cause : causes) {
    const bool ended =
        IsKill(cause.incident()) || IsTakedown(cause.incident()) || IsCancelInText(cause);
    if (ended && MayExplain(cause) && MayBeCleanUp(causes, cause)) cause.role = Role::kCascade;
  }
}

// A call of MPI failed, or the program called MPI_Abort(): the launcher then kills all ranks. One
// that had died before the others is what the error is about, and stays.
void DemoteWhatFollowsAnMpiAbort(std::vector<Cause>& causes) {
  constexpr Duration kTextIsLate = Seconds(2);
  constexpr Duration kTogether = Seconds(1);
  constexpr Duration kLongestWait = Seconds(90);
  const auto abort = std::find_if(causes.begin(), causes.end(), [](const Cause& cause) {
    const std::string_view shape = cause.incident().shape;
    return shape == "mpi_abort" || shape == "mpi_error";
  });
  if (abort == causes.end()) return;
  // Who died before the others is what MPI's error is about.
  Timestamp first{INT64_MAX}, last;
  for (const Cause& death : causes) {
    if (!IsKill(death.incident()) || death.incident().shape != "wait_status") continue;
    first = std::min(first, death.incident().t);
    last = std::max(last, death.incident().t);
  }
  const bool together = first <= last && last - first <= kTogether &&
                        first - abort->incident().t >= Duration{-kTextIsLate.ns};
  for (Cause& cause : causes) {
    const bool follows =
        StandsBefore(*abort, cause) || (together && cause.incident().shape == "wait_status");
    if (!follows || cause.incident().t - abort->incident().t > kLongestWait) continue;
    const bool killed = IsKill(cause.incident()) && MayBeCleanUp(causes, cause);
    if ((killed || IsCancelInText(cause)) && MayExplain(cause)) cause.role = Role::kCascade;
  }
}

// A step that is cancelled is killed at once, or after KillWait. Where srun had already reported
// that a task had ended, the cancellation is what followed.
void DemoteWhatFollowsACancel(std::vector<Cause>& causes) {
  // Text comes through srun, later than what the kernel tells of the death itself.
  constexpr Duration kTextIsLate = Seconds(2);
  constexpr Duration kLongestWait = Seconds(90);
  const auto cancel = std::find_if(causes.begin(), causes.end(), [](const Cause& cause) {
    return cause.role == Role::kInitiating && IsCancelInText(cause);
  });
  if (cancel == causes.end() || HadFailed(causes, *cancel)) return;
  const Timestamp at = cancel->incident().t;
  for (Cause& death : causes) {
    if (!IsKill(death.incident()) || !MayExplain(death) || !MayBeCleanUp(causes, death)) continue;
    const Duration after = death.incident().t - at;
    if (after >= Duration{-kTextIsLate.ns} && after <= kLongestWait) death.role = Role::kCascade;
  }
}

// srun itself was killed: the shell that started it says so. slurmstepd then ends the ranks, and
// calls the step cancelled.
void DemoteWhatFollowsSrunsDeath(std::vector<Cause>& causes) {
  constexpr Duration kTextIsLate = Seconds(2);
  constexpr Duration kLongestWait = Seconds(90);
  const auto srun = std::find_if(causes.begin(), causes.end(), [](const Cause& cause) {
    const std::vector<KeyValue>& fields = cause.incident().fields;
    return IsKill(cause.incident()) && cause.incident().shape == "shell_signal" &&
           cause.role == Role::kInitiating &&
           std::any_of(fields.begin(), fields.end(), [](const KeyValue& field) {
             return field.key == "program" && field.value == "srun";
           });
  });
  if (srun == causes.end()) return;
  for (Cause& cause : causes) {
    const bool killed = IsKill(cause.incident()) && MayBeCleanUp(causes, cause);
    if (&cause == &*srun || !MayExplain(cause) || !(killed || IsCancelInText(cause))) continue;
    const Duration after = cause.incident().t - srun->incident().t;
    if (after >= Duration{-kTextIsLate.ns} && after <= kLongestWait) cause.role = Role::kCascade;
  }
}

}  // namespace

void DemoteCleanUp(std::vector<Cause>& causes) {
  DemoteAbortsOfSurvivors(causes);
  DemoteWhatSrunDidToWhoStayed(causes);
  DemoteWhatFollowsAnMpiAbort(causes);
  DemoteWhatFollowsSrunsDeath(causes);
  DemoteWhatFollowsACancel(causes);
}

void DemoteARequeueAfterAFailure(std::vector<Cause>& causes, const windows::StepTable& steps) {
  constexpr Duration kWholeSecond = Seconds(1);  // a record's times are cut to these
  const windows::StepSeen* const trained = steps.FailedTraining();
  if (trained == nullptr || trained->state != "FAILED") return;
  const auto raised = std::find_if(causes.begin(), causes.end(), [](const Cause& cause) {
    const IncidentKind kind = cause.incident().kind;
    return cause.role == Role::kInitiating &&
           (kind == IncidentKind::kException || kind == IncidentKind::kCudaOom);
  });
  if (raised == causes.end()) return;
  // Who is asked to stop may raise because of that.
  const bool asked = std::any_of(causes.begin(), causes.end(), [&raised](const Cause& cause) {
    const Incident& incident = cause.incident();
    const bool word =
        incident.kind == IncidentKind::kSchedulerEnd && cause.candidate->store == proto::STORE_LOG;
    return (word || IsTakedown(incident)) && StandsBefore(cause, *raised);
  });
  if (asked) return;
  for (Cause& act : causes) {
    const Incident& incident = act.incident();
    if (act.role == Role::kInitiating && incident.kind == IncidentKind::kSchedulerEnd &&
        incident.sub == subs::kRequeue && raised->incident().t <= incident.t + kWholeSecond)
      act.role = Role::kCascade;
  }
}

}  // namespace rankscope::features
