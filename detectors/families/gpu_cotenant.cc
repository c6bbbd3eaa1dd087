// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X2: somebody else's memory on the GPU.
#include "detectors/families/curve.h"
#include "detectors/families/gpu.h"
#include "detectors/families/gpu_memory.h"
#include "detectors/families/rows.h"

namespace rankscope::families::gpu_cotenant {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  Finding finding;
  double foreign = 0;
  int32_t rank = f.launches.failed_rank;
  if (DiedRefused(f) && OthersHeldIt(f)) {
    finding = Refused(f);
    foreign = SharedCard(f, rank)->foreign_bytes;
  } else {
    if (primary == nullptr || primary->incident().kind != IncidentKind::kCudaOom) return {};
    if (!IsCrowdedOut(f, primary->incident())) return {};
    finding = FromPrimary(f);
    foreign = ForeignBytes(f, primary->incident());
    rank = primary->incident().rank;
  }
  finding.sub = "co_tenant";
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "gpu_memory";
  finding.values.Set(FieldId::kForeign, foreign);
  if (const features::RunGpu* const shared = SharedCard(f, rank))
    Show(shared->foreign_evidence, finding);
  finding.open.push_back(Question::kMemoryKnob);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (const Cause* oom = FindCause(f, IncidentKind::kCudaOom)) {
    const double foreign = ForeignBytes(f, oom->incident());
    if (foreign < kGiB) return Excluded(Reason::kLittleForeignMemory, {oom->evidence});
    const std::optional<double> requested = Field(oom->incident(), "requested");
    if (requested && !IsCrowdedOut(f, oom->incident())) {
      return Excluded(Reason::kTooLargeAnyway, {oom->evidence},
                      {{FieldId::kRequested, *requested}, {FieldId::kForeign, foreign}});
    }
    return Excluded(Reason::kConsequence, {oom->evidence}, {{FieldId::kWhat, "allocation"}});
  }
  return NotDecidable(proto::STORE_GPU);
}

}  // namespace rankscope::families::gpu_cotenant
