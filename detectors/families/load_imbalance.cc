// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X17: uneven stages, sequences or experts. No store of this build can show it yet.
#include "detectors/families/rows.h"

namespace rankscope::families::load_imbalance {
namespace {

// Families of a slow or idle run say nothing about one that ended by an event of its own.
RuledOut SlowFamily(const features::JobFeatures& f, proto::Store needs) {
  if (const features::Cause* primary = f.Primary()) {
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "slowness"}});
  }
  return NotDecidable(needs);
}

}  // namespace

Finding Evaluate(const features::JobFeatures&) {
  return {};
}

RuledOut RuleOut(const features::JobFeatures& f) {
  if (f.world_size == 1) return Excluded(Reason::kOneRank);
  return SlowFamily(f, proto::STORE_NCCL);
}

}  // namespace rankscope::families::load_imbalance
