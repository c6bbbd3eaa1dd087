// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X3: a fault that the program's own kernel caused.
#include <algorithm>
#include <vector>

#include "detectors/families/curve.h"
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

// A kernel's own assertion is a comparison that the program made.
bool IsAssertion(const logs::Incident& incident) {
  return std::any_of(incident.fields.begin(), incident.fields.end(), [](const KeyValue& field) {
    return field.key == "error" && field.value == "device_assert";
  });
}

// What the cards of the ranks say where each counts uncorrected errors and had none under the run;
// empty where one does not count them, or had one.
std::vector<features::EvidenceRef> CleanCards(const JobFeatures& f,
                                              const std::vector<int32_t>& ranks) {
  std::vector<features::EvidenceRef> clean;
  for (const features::RunGpu& gpu : f.gpu.gpus) {
    const bool concerned =
        ranks.empty() || std::any_of(gpu.ranks.begin(), gpu.ranks.end(), [&ranks](int32_t rank) {
          return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
        });
    if (!concerned) continue;
    if (!gpu.errors_counted || gpu.errors > 0 || gpu.activity_evidence == features::kNoEvidence)
      return {};
    clean.push_back(gpu.activity_evidence);
  }
  return clean;
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
  // A failing card makes the same faults, and then on one GPU only; one that counts its errors and
  // has none is unlikely to.
  finding.cap = cap::kLookalike;
  if (const auto clean = CleanCards(f, finding.ranks); !clean.empty()) {
    Show(clean.front(), finding);
    finding.cap = cap::kUnseenSide;
  }
  if (IsAssertion(primary->incident())) finding.cap = cap::kInferred;
  if (owner == features::GpuErrorOwner::kUndecided) finding.tier = proto::TIER_W;
  finding.open.push_back(Question::kHardwareOrSoftware);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  return NotTheEnd(f, IsGpuError, "cuda_error");
}

}  // namespace rankscope::families::gpu_app_fault
