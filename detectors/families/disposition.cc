// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/disposition.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <iterator>

#include "detectors/families/sender.h"
#include "detectors/families/training_end.h"
#include "detectors/model/subs.h"

namespace rankscope::families {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

constexpr std::array<std::string_view, static_cast<size_t>(DispositionKind::kUnknown) + 1> kNames =
    {"",         "completed", "failed",       "cancelled",   "time_limit", "preempted",
     "requeued", "node_lost", "by_scheduler", "by_launcher", "killed",     "unknown"};

struct SubRow {
  std::string_view sub;
  DispositionKind kind;
};
constexpr SubRow kSchedulerSubs[] = {{subs::kTimeLimit, DispositionKind::kTimeLimit},
                                     {subs::kCancelled, DispositionKind::kCancelled},
                                     {subs::kPreemption, DispositionKind::kPreempted},
                                     {subs::kRequeue, DispositionKind::kRequeued},
                                     {subs::kNodeFailure, DispositionKind::kNodeLost},
                                     {subs::kFailed, DispositionKind::kFailed}};

struct SenderRow {
  std::string_view sent_by;
  DispositionKind kind;
};
constexpr SenderRow kSenders[] = {{"scheduler", DispositionKind::kByScheduler},
                                  {"launcher", DispositionKind::kByLauncher},
                                  {"job", DispositionKind::kFailed},
                                  {"runtime", DispositionKind::kKilled},
                                  {"oom_daemon", DispositionKind::kKilled},
                                  {"other_user", DispositionKind::kKilled},
                                  {"same_user", DispositionKind::kKilled}};

template <class Rows, class Key>
const auto* FindRow(const Rows& rows, Key matches) {
  const auto found = std::find_if(std::begin(rows), std::end(rows), matches);
  return found == std::end(rows) ? nullptr : &*found;
}

const SubRow* RowOfSub(std::string_view sub) {
  return FindRow(kSchedulerSubs, [sub](const SubRow& row) { return row.sub == sub; });
}

const SenderRow* RowOfSender(std::string_view sent_by) {
  return FindRow(kSenders, [sent_by](const SenderRow& row) { return row.sent_by == sent_by; });
}

// "uid 1042", "1042" or a name.
int64_t UidIn(std::string_view by) {
  constexpr std::string_view kWord = "uid ";
  if (by.starts_with(kWord)) by.remove_prefix(kWord.size());
  int64_t uid = -1;
  const auto [end, error] = std::from_chars(by.data(), by.data() + by.size(), uid);
  return error == std::errc() && end == by.data() + by.size() ? uid : -1;
}

// slurmstepd says of a step that srun ends for a task of its own what it says of one that somebody
// cancels. srun announces it first.
bool EndedBySrun(const JobFeatures& f, const Cause& word) {
  const logs::Incident& incident = word.incident();
  if (incident.shape != "slurmstepd" || incident.sub != subs::kCancelled) return false;
  return std::any_of(f.causes.begin(), f.causes.end(), [&](const Cause& cause) {
    const logs::Incident& said = cause.incident();
    return said.shape == "srun_terminating" && said.offset < incident.offset &&
           FieldOf(cause, "of_step") == FieldOf(word, "step");
  });
}

// The scheduler's record, else its daemon's line, or the notice that the program had of it.
const Cause* SchedulersWord(const JobFeatures& f) {
  const Cause* found = nullptr;
  for (const Cause& cause : f.causes) {
    const logs::Incident& incident = cause.incident();
    const bool end = incident.kind == IncidentKind::kSchedulerEnd;
    const bool notice = incident.kind == IncidentKind::kTerminated && !incident.sub.empty();
    if ((!end && !notice) || RowOfSub(incident.sub) == nullptr) continue;
    if (cause.role == Cause::Role::kRecovered || cause.role == Cause::Role::kDenied) continue;
    const bool record = cause.candidate->store == proto::STORE_SCHEDULER;
    // srun cancels a step of which a task has failed.
    if (!record && (cause.role == Cause::Role::kCascade || EndedBySrun(f, cause))) continue;
    // Of two records of one end, the one that names who asked for it.
    const bool better = found == nullptr ||
                        (record && found->candidate->store != proto::STORE_SCHEDULER) ||
                        (record && found->incident().sub == incident.sub &&
                         FieldOf(*found, "by").empty() && !FieldOf(cause, "by").empty());
    if (better) found = &cause;
  }
  return found;
}

// The kernel's record of a signal that somebody else sent to a process of the run.
const Cause* SignalFromElsewhere(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    if (cause.incident().shape == "signal_sent" &&
        RowOfSender(FieldOf(cause, "sent_by")) != nullptr)
      return &cause;
  }
  return nullptr;
}

Disposition ByScheduler(const Cause& word) {
  Disposition out;
  out.kind = RowOfSub(word.incident().sub)->kind;
  out.by = FieldOf(word, "by");
  const std::string_view uid = FieldOf(word, "by_uid");
  out.uid = UidIn(uid.empty() ? std::string_view(out.by) : uid);
  out.reason = FieldOf(word, "value");
  out.at = word.incident().t;
  out.evidence = word.evidence;
  return out;
}

Disposition BySignal(const Cause& sent) {
  Disposition out;
  out.kind = RowOfSender(FieldOf(sent, "sent_by"))->kind;
  out.by = FieldOf(sent, "sender");
  out.uid = UidIn(FieldOf(sent, "sender_uid"));
  out.at = sent.incident().t;
  out.evidence = sent.evidence;
  return out;
}

}  // namespace

std::string_view DispositionName(DispositionKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

Disposition DispositionOf(const JobFeatures& f) {
  if (f.running) return {};
  if (const Cause* word = SchedulersWord(f)) return ByScheduler(*word);
  const Cause* const primary = f.Primary();
  const bool later_failed = f.later_step_evidence != features::kNoEvidence;
  const int32_t exit_code = f.command_exit_known ? f.command_exit_code : f.exit_code;
  const bool completed = (f.command_exit_known || f.exit_known) && exit_code == 0 && !later_failed;
  const bool failed = primary != nullptr && IsFailure(primary->event);
  const Cause* sent = nullptr;
  if (failed) {
    sent = FindSender(f, *primary);
  } else if (primary != nullptr || !completed) {
    sent = SignalFromElsewhere(f);
  }
  if (sent != nullptr && RowOfSender(FieldOf(*sent, "sent_by")) != nullptr) return BySignal(*sent);
  Disposition out;
  out.evidence = f.command_exit_known ? f.command_exit_evidence : f.exit_evidence;
  if (later_failed) {
    out.at = f.later_step_end;
    out.evidence = f.later_step_evidence;
  }
  if (primary != nullptr) {
    out.at = primary->incident().t;
    out.evidence = primary->evidence;
  }
  constexpr int32_t kTerminated = 128 + SIGTERM, kInterrupted = 128 + SIGINT;
  const bool asked = exit_code == kTerminated || exit_code == kInterrupted ||
                     (primary != nullptr && primary->event == features::CauseClass::kStopRequest);
  if (completed) {
    out.kind = DispositionKind::kCompleted;
  } else if (asked) {
    out.kind = DispositionKind::kKilled;
  } else if (f.command_exit_known || f.exit_known || primary != nullptr) {
    out.kind = DispositionKind::kFailed;
    out.reason = f.scheduler.end_state;
  } else if (const Cause* const reported = ReportedFailure(f)) {
    out.kind = DispositionKind::kFailed;
    out.at = reported->incident().t;
    out.evidence = reported->evidence;
  } else {
    out.kind = DispositionKind::kUnknown;
    if (f.train_end) {
      out.reason = "training finished";
      out.evidence = f.train_end_evidence;
    }
  }
  return out;
}

EndKind KindOfEnd(std::string_view code, const Finding& finding, const JobFeatures& f) {
  constexpr std::string_view kDispositions[] = {"F2", "F3", "X20"};
  const auto among = [code](const auto& list) {
    return std::find(std::begin(list), std::end(list), code) != std::end(list);
  };
  if (among(kDispositions)) return EndKind::kForced;
  const bool completed = f.exit_known && f.exit_code == 0;
  if (code == "G1") return EndKind::kQuiet;
  // Else nothing in the end says why.
  if (code == "U0") return f.running || completed ? EndKind::kQuiet : EndKind::kForced;
  if (code != "A2" || finding.sub == subs::kHostOom) return EndKind::kCause;
  const Cause* const primary = f.Primary();
  const Cause* const sent = primary == nullptr ? nullptr : FindSender(f, *primary);
  if (sent != nullptr && FieldOf(*sent, "sent_by") != "itself") {
    return RowOfSender(FieldOf(*sent, "sent_by")) != nullptr ? EndKind::kForced : EndKind::kCause;
  }
  // Who hangs is killed by whoever noticed, or aborts itself once its watchdog has.
  const bool unclear = finding.signal == SIGKILL || finding.signal == SIGABRT;
  return unclear ? EndKind::kUnclear : EndKind::kCause;
}

}  // namespace rankscope::families
