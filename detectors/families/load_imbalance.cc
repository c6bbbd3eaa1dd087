// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X17: stages of a pipeline or experts have uneven work, by what their GPUs do.
#include "detectors/families/gpu_peers.h"
#include "detectors/families/rows.h"

namespace rankscope::families::load_imbalance {

using features::JobFeatures;

Finding Evaluate(const JobFeatures& f) {
  return UnevenWork(f);
}

RuledOut RuleOut(const JobFeatures& f) {
  if (f.world_size == 1) return Excluded(Reason::kOneRank);
  // Families of a slow or idle run say nothing about one that ended by an event of its own.
  if (const features::Cause* primary = f.Primary())
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "slowness"}});
  features::EvidenceRef cited = features::kNoEvidence;
  if (const FieldValues alike = CardsAlike(f, cited); !alike.empty()) {
    RuledOut out = NotDecidable(proto::STORE_GPU, Reason::kGpusAlike, alike);
    out.evidence = {cited};
    return out;
  }
  return NotDecidable(proto::STORE_GPU);
}

}  // namespace rankscope::families::load_imbalance
