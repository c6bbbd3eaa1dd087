// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X3: a fault that the program's own kernel caused.
#include "detectors/families/gpu_error_end.h"
#include "detectors/families/rows.h"
#include "detectors/features/gpu_error.h"

namespace rankscope::families::gpu_app_fault {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

bool IsGpuError(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kCudaError || incident.kind == IncidentKind::kXid;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr) return {};
  const features::GpuErrorOwner owner = features::OwnerOfGpuError(primary->incident());
  if (owner != features::GpuErrorOwner::kProgram && owner != features::GpuErrorOwner::kUndecided)
    return {};
  if (IsUnknownDriverError(f) || IsPeerAccess(primary->incident())) return {};
  Finding finding = FromPrimary(f);
  finding.sub = primary->incident().kind == IncidentKind::kXid ? "xid" : "cuda_error";
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "gpu_kernel";
  finding.cap = cap::kLookalike;  // a failing card makes the same faults, and then on one GPU only
  if (owner == features::GpuErrorOwner::kUndecided) finding.tier = proto::TIER_W;
  finding.open.push_back(Question::kHardwareOrSoftware);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  return NotTheEnd(f, IsGpuError, "cuda_error");
}

}  // namespace rankscope::families::gpu_app_fault
