// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// B2, X3, X5, X21, X24 and E2 as far as text decides them: hardware errors that the CUDA runtime or
// the kernel names, faults of the program's own kernels, broken transports, failing storage, a
// collapsed loss scale, a checkpoint that does not load.
#include <algorithm>

#include "detectors/families/rows.h"
#include "detectors/features/gpu_error.h"

namespace rankscope::families {
namespace {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

bool IsHardware(const logs::Incident& incident) {
  return features::OwnerOfGpuError(incident) == features::GpuErrorOwner::kHardware;
}

// cudaErrorUnknown comes from the driver; a program's own faults have names.
bool IsUnknownDriverError(const JobFeatures& f) {
  bool unknown = false;
  for (const Cause& cause : f.causes) {
    const features::GpuErrorOwner owner = features::OwnerOfGpuError(cause.incident());
    if (owner != features::GpuErrorOwner::kNone && owner != features::GpuErrorOwner::kUndecided)
      return false;
    const std::vector<KeyValue>& fields = cause.incident().fields;
    unknown = unknown || (cause.incident().kind == IncidentKind::kCudaError &&
                          std::any_of(fields.begin(), fields.end(), [](const KeyValue& field) {
                            return field.key == "error" && field.value == "unknown";
                          }));
  }
  return unknown;
}

bool IsLoadCrash(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kException &&
         incident.frame == logs::FrameKind::kCheckpointLoad;
}

bool IsScaleCollapse(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kNonFiniteLoss && incident.sub == "scale_minimum";
}

bool IsGpuError(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kCudaError || incident.kind == IncidentKind::kXid;
}

bool IsStorage(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kStorage;
}

// Why a family whose text is there is not the answer: `nothing` where it is not there.
RuledOut NotTheEnd(const JobFeatures& f, bool (*mine)(const logs::Incident&),
                   std::string_view nothing) {
  for (const Cause& cause : f.causes) {
    if (!mine(cause.incident())) continue;
    if (cause.role == Cause::Role::kRecovered)
      return Excluded("the run went on after it", {cause.evidence, f.last_progress_evidence});
    return Excluded("another event explains the end", {cause.evidence});
  }
  return NoSuchText(f, nothing);
}

const Cause* PrimaryIf(const JobFeatures& f, bool (*mine)(const logs::Incident&)) {
  const Cause* primary = f.Primary();
  return primary != nullptr && mine(primary->incident()) ? primary : nullptr;
}

}  // namespace

Finding EvaluateB2(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr) return {};
  const bool unknown =
      primary->incident().kind == IncidentKind::kCudaError && IsUnknownDriverError(f);
  if (!IsHardware(primary->incident()) && !unknown) return {};
  Finding finding = FromPrimary(f);
  finding.sub = unknown ? "driver" : primary->incident().kind == IncidentKind::kXid ? "xid" : "ecc";
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "gpu";
  if (unknown) finding.tier = proto::TIER_W;
  finding.open.push_back(Question::kHardwareOrSoftware);
  return finding;
}
RuledOut RuleOutB2(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    if (!IsHardware(cause.incident())) continue;
    if (cause.role == Cause::Role::kRecovered)
      return Excluded("the run went on after it", {cause.evidence, f.last_progress_evidence});
    return Excluded("an earlier event explains the end", {cause.evidence});
  }
  return NotDecidable(proto::STORE_GPU);
}

Finding EvaluateX3(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr) return {};
  const features::GpuErrorOwner owner = features::OwnerOfGpuError(primary->incident());
  if (owner != features::GpuErrorOwner::kProgram && owner != features::GpuErrorOwner::kUndecided)
    return {};
  if (IsUnknownDriverError(f)) return {};
  Finding finding = FromPrimary(f);
  finding.sub = primary->incident().kind == IncidentKind::kXid ? "xid" : "cuda_error";
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "gpu_kernel";
  finding.cap = 0.55;  // a failing card makes the same faults, and then on one GPU only
  if (owner == features::GpuErrorOwner::kUndecided) finding.tier = proto::TIER_W;
  finding.open.push_back(Question::kHardwareOrSoftware);
  return finding;
}
RuledOut RuleOutX3(const JobFeatures& f) {
  return NotTheEnd(f, IsGpuError, "no CUDA error");
}

Finding EvaluateX5(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr) return {};
  const logs::Incident& incident = primary->incident();
  // A group that trained, and cannot connect again.
  const bool again = incident.kind == IncidentKind::kRendezvous && f.progress > 0;
  if (incident.kind != IncidentKind::kPeerLost && !again) return {};
  if (incident.sub == "init" && f.progress == 0) return {};  // C1: it never formed
  Finding finding = FromPrimary(f);
  finding.sub = "path";
  if (incident.sub == "ib" || incident.sub == "efa") finding.sub = incident.sub;
  if (again) finding.sub = "bootstrap";
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "network";
  finding.cap = 0.55;  // a peer's death looks the same from here
  finding.open.push_back(Question::kHangTrigger);
  return finding;
}
RuledOut RuleOutX5(const JobFeatures& f) {
  if (f.world_size == 1) return Excluded("one rank has no peers");
  if (const Cause* cause = FindCause(f, IncidentKind::kPeerLost)) {
    if (f.exit_known && f.exit_code == 0)
      return Excluded("the command exited with 0", {cause->evidence, f.exit_evidence});
    return Excluded("the broken connection follows the death of a peer", {cause->evidence});
  }
  return NoSuchText(f, "no transport error");
}

Finding EvaluateX21(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr || primary->incident().kind != IncidentKind::kStorage) return {};
  Finding finding = FromPrimary(f);
  finding.sub = "full";
  for (const KeyValue& field : primary->incident().fields) {
    if (field.key == "errno" && field.value == "EIO") finding.sub = "io_error";
  }
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "storage";
  return finding;
}
RuledOut RuleOutX21(const JobFeatures& f) {
  return NotTheEnd(f, IsStorage, "no storage error");
}

Finding EvaluateX24(const JobFeatures& f) {
  if (PrimaryIf(f, IsScaleCollapse) == nullptr) return {};
  Finding finding = FromPrimary(f);
  finding.sub = "at_minimum";
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "precision";
  finding.symptom = "wrong_result";
  finding.open.push_back(Question::kDivergenceCause);
  return finding;
}
RuledOut RuleOutX24(const JobFeatures& f) {
  return NotTheEnd(f, IsScaleCollapse, "no loss scale at its minimum");
}

Finding EvaluateE2(const JobFeatures& f) {
  if (PrimaryIf(f, IsLoadCrash) == nullptr) return {};
  Finding finding = FromPrimary(f);
  finding.sub = "load_crash";
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "checkpoint";
  return finding;
}
RuledOut RuleOutE2(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    if (IsLoadCrash(cause.incident()))
      return Excluded("the checkpoint error is not what ended the run", {cause.evidence});
  }
  // Text shows a load that fails; whether a resume was meant and silently not honoured is the
  // scheduler's and the disk's.
  return NotDecidable(proto::STORE_SCHEDULER);
}

}  // namespace rankscope::families
