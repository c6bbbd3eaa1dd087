// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/sender.h"

#include <csignal>
#include <set>

#include "detectors/families/disposition.h"

namespace rankscope::families {
namespace {

using features::Cause;
using features::JobFeatures;

struct SenderRow {
  std::string_view kind;  // windows/signal_sender.h
  proto::Domain domain;
  std::string_view component;
  std::string_view advice;
};
constexpr SenderRow kSenders[] = {
    {"job", proto::DOMAIN_WORKLOAD, "launcher", "killed_by_job"},
    {"launcher", proto::DOMAIN_UNKNOWN, "launcher", "killed_by_launcher"},
    {"scheduler", proto::DOMAIN_SCHEDULER, "scheduler", "killed_by_scheduler"},
    {"runtime", proto::DOMAIN_INFRASTRUCTURE, "container_runtime", "killed_by_runtime"},
    {"oom_daemon", proto::DOMAIN_INFRASTRUCTURE, "host_memory", "killed_by_oom_daemon"},
    {"other_user", proto::DOMAIN_INFRASTRUCTURE, "external_process", "killed_by_other_user"},
    {"same_user", proto::DOMAIN_UNKNOWN, "external_process", "killed_by_same_user"},
};

}  // namespace

std::string_view FieldOf(const Cause& cause, std::string_view key) {
  for (const KeyValue& field : cause.incident().fields) {
    if (field.key == key) return field.value;
  }
  return {};
}

// The kernel's record of the signal that the primary cause speaks of.
const Cause* FindSender(const JobFeatures& f, const Cause& primary) {
  for (const Cause& cause : f.causes) {
    if (cause.incident().shape != "signal_sent") continue;
    if (&cause == &primary || cause.role == Cause::Role::kSupport) return &cause;
  }
  return nullptr;
}

bool IsCleanUp(const Cause& sent) {
  const std::string_view by = FieldOf(sent, "sent_by");
  return by == "scheduler" || by == "launcher";
}

bool KilledTheRun(const JobFeatures& f, const Cause& primary) {
  const Cause* const sent = FindSender(f, primary);
  const int32_t signal = primary.incident().signal;
  const std::string_view by = sent == nullptr ? std::string_view() : FieldOf(*sent, "sent_by");
  const bool outside = by == "other_user" || by == "same_user" || by == "runtime";
  // A terminal that is closed hangs up all that was started from it.
  const bool hung_up = signal == SIGHUP && (sent == nullptr || by == "kernel");
  if (!hung_up && !(outside && (signal == SIGKILL || signal == SIGHUP))) return false;
  std::set<int32_t> killed;
  for (const Cause& cause : f.causes) {
    const logs::Incident& incident = cause.incident();
    if (incident.kind != logs::IncidentKind::kSignalDeath || incident.signal != signal ||
        incident.rank < 0 || cause.candidate->store == proto::STORE_LOG)
      continue;
    const bool same = sent != nullptr && incident.shape == "signal_sent" &&
                      FieldOf(cause, "sender_pid") == FieldOf(*sent, "sender_pid");
    if (hung_up || same) killed.insert(incident.rank);
  }
  return killed.size() >= 2 && killed.size() >= f.rank_pids.size();
}

std::string_view Canceller(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    if (cause.incident().kind != logs::IncidentKind::kSchedulerEnd) continue;
    if (const std::string_view by = FieldOf(cause, "by"); !by.empty()) return by;
  }
  return {};
}

bool CancellerIsOpen(const JobFeatures& f) {
  if (!Canceller(f).empty()) return false;
  const Disposition how = DispositionOf(f);
  switch (how.kind) {
    case DispositionKind::kTimeLimit:
    case DispositionKind::kPreempted:
    case DispositionKind::kRequeued:
    case DispositionKind::kNodeLost:
      return false;
    default:
      return how.kind != DispositionKind::kKilled || how.by.empty();
  }
}

void JudgeSender(const JobFeatures& f, const Cause& sent, Finding& finding) {
  const std::string_view by = FieldOf(sent, "sent_by");
  for (const SenderRow& row : kSenders) {
    if (row.kind != by) continue;
    finding.domain = row.domain;
    finding.component = row.component;
    finding.advice = row.advice;
  }
  if (by == "scheduler" && CancellerIsOpen(f)) finding.open.push_back(Question::kWhoCancelled);
  for (const std::string_view key : {"sender", "sender_pid", "sender_uid", "sender_cgroup"}) {
    if (std::optional<FieldValue> value = FromCaptured(key, FieldOf(sent, key)))
      finding.values.Set(std::move(*value));
  }
}

}  // namespace rankscope::families
