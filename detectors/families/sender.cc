// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/sender.h"

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

void JudgeSender(const Cause& sent, std::string_view by, Finding& finding) {
  for (const SenderRow& row : kSenders) {
    if (row.kind != by) continue;
    finding.domain = row.domain;
    finding.component = row.component;
    finding.advice = row.advice;
  }
  if (by == "scheduler") finding.open.push_back(Question::kWhoCancelled);
  for (const std::string_view key : {"sender", "sender_pid", "sender_uid", "sender_cgroup"}) {
    if (std::optional<FieldValue> value = FromCaptured(key, FieldOf(sent, key)))
      finding.values.Set(std::move(*value));
  }
}

}  // namespace rankscope::families
