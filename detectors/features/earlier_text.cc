// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/earlier_text.h"

#include <algorithm>
#include <csignal>
#include <string_view>

#include "detectors/features/cause_relations.h"

namespace rankscope::features {
namespace {

using logs::FrameKind;
using logs::Incident;
using logs::IncidentKind;
using Role = Cause::Role;

// The number of the job that a line of Slurm's about an end names: "8841" of "8841.0"; empty: none.
std::string_view JobOfEnd(const Incident& incident) {
  if (incident.kind != IncidentKind::kSchedulerEnd) return {};
  for (const KeyValue& field : incident.fields) {
    if (field.key != "job" && field.key != "step") continue;
    const std::string_view id = field.value;
    return id.substr(0, id.find_first_of(".+"));
  }
  return {};
}

bool IsInterrupt(const Incident& incident) {
  return incident.signal == SIGINT && incident.shape != "told_to_stop";
}

// Behind such a line nothing of the program that it is about is printed any more: a shell has seen
// it end, it has refused its arguments, or it was interrupted.
bool EndsARun(const Incident& incident) {
  switch (incident.kind) {
    case IncidentKind::kSchedulerEnd:
    case IncidentKind::kUsageError:
      return true;
    case IncidentKind::kSignalDeath:
      return incident.shape == "shell_signal" || incident.shape == "zsh_signal" ||
             incident.shape == "terminated_by";
    case IncidentKind::kTerminated:
      return IsInterrupt(incident);
    default:
      return false;
  }
}

bool IsOfATool(const Incident& incident) {
  return std::any_of(incident.fields.begin(), incident.fields.end(),
                     [](const KeyValue& field) { return field.key == "tool"; });
}

}  // namespace

void SetEarlierRunsAside(std::vector<Cause>& causes, const JobFeatures& f,
                         const TrainedOn& trained_on) {
  const bool told = std::any_of(causes.begin(), causes.end(), [](const Cause& cause) {
    return cause.incident().kind == IncidentKind::kTerminated && !IsInterrupt(cause.incident());
  });
  const Cause* border = nullptr;
  const Cause* last = nullptr;  // end of a job that has a number
  for (const Cause& cause : causes) {
    if (cause.candidate->store != proto::STORE_LOG) continue;
    const std::string_view job = JobOfEnd(cause.incident());
    if (!job.empty() && !f.timed) {
      if (last != nullptr && JobOfEnd(last->incident()) != job) border = last;
      last = &cause;
    }
    // A program that was told to stop may finish what it does.
    const bool may_end =
        cause.incident().kind != IncidentKind::kSchedulerEnd || (!told && !f.timed);
    if (may_end && EndsARun(cause.incident()) && trained_on(*cause.candidate)) border = &cause;
  }
  if (border == nullptr) return;
  const windows::Candidate& end = *border->candidate;
  for (Cause& cause : causes) {
    const windows::Candidate& said = *cause.candidate;
    if (said.stream == end.stream && said.order <= end.order) cause.role = Role::kRecovered;
  }
}

void SetToolsAside(std::vector<Cause>& causes, const JobFeatures& f) {
  for (Cause& tool : causes) {
    if (tool.role != Role::kInitiating || !IsOfATool(tool.incident())) continue;
    // What cannot be imported then is the tool's doing.
    const bool later = AnyInitiating(causes, [&tool](const Cause& cause) {
      return cause.candidate->order > tool.candidate->order &&
             cause.incident().frame != FrameKind::kImport;
    });
    if (later || f.progress > tool.candidate->progress_before) tool.role = Role::kRecovered;
  }
}

void SetOldXidsAside(std::vector<Cause>& causes) {
  for (Cause& xid : causes) {
    const windows::Candidate& said = *xid.candidate;
    if (xid.role != Role::kInitiating || xid.incident().kind != IncidentKind::kXid) continue;
    if (said.store != proto::STORE_LOG || said.progress_before > 0) continue;
    const bool other = AnyInitiating(causes, [&](const Cause& cause) {
      const Incident& incident = cause.incident();
      const bool words =
          (incident.kind == IncidentKind::kException && !incident.shape.starts_with("cpp_")) ||
          incident.kind == IncidentKind::kUsageError || incident.kind == IncidentKind::kCudaOom ||
          incident.kind == IncidentKind::kStorage || incident.kind == IncidentKind::kRendezvous;
      return words && cause.candidate->order > said.order;
    });
    if (other) xid.role = Role::kRecovered;
  }
}

}  // namespace rankscope::features
