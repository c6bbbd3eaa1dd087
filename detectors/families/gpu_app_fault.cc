// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X3: a fault that the program's own kernel caused.
#include <algorithm>

#include "detectors/families/curve.h"
#include "detectors/families/gpu_error_end.h"
#include "detectors/families/node_fault.h"
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

bool SaysError(const logs::Incident& incident, std::string_view error) {
  return std::any_of(
      incident.fields.begin(), incident.fields.end(),
      [error](const KeyValue& field) { return field.key == "error" && field.value == error; });
}

// What GPUs of this node count says nothing of one on another node.
bool IsOnAnotherNode(const JobFeatures& f, int32_t rank) {
  if (rank < 0 || !f.gpu.known()) return false;
  return std::none_of(f.gpu.gpus.begin(), f.gpu.gpus.end(), [rank](const features::RunGpu& gpu) {
    return std::find(gpu.ranks.begin(), gpu.ranks.end(), rank) != gpu.ranks.end();
  });
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
  if (FollowsALostCard(f, *primary, finding.ranks)) return {};
  finding.sub = primary->incident().kind == IncidentKind::kXid ? "xid" : "cuda_error";
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "gpu_kernel";
  // A failing card makes the same faults, and then on one GPU only; one that counts its errors and
  // has none is unlikely to.
  finding.cap = cap::kLookalike;
  if (f.gpu.clean_evidence != features::kNoEvidence &&
      !IsOnAnotherNode(f, primary->incident().rank)) {
    Show(f.gpu.clean_evidence, finding);
    finding.cap = cap::kUnseenSide;
  }
  // A kernel's own assertion is a comparison that the program made. A launch failure names no fault
  // of the program: a GPU that is lost causes it, and only its own node sees that.
  if (SaysError(primary->incident(), "device_assert")) finding.cap = cap::kInferred;
  if (SaysError(primary->incident(), "launch_failure") &&
      IsOnAnotherNode(f, primary->incident().rank))
    finding.cap = cap::kEvenOdds;
  if (owner == features::GpuErrorOwner::kUndecided) finding.tier = proto::TIER_W;
  finding.open.push_back(Question::kHardwareOrSoftware);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  return NotTheEnd(f, IsGpuError, "cuda_error");
}

}  // namespace rankscope::families::gpu_app_fault
