// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Families that no source of this build decides yet (uneven load): never raised, and each says what
// it would need, so that their absence from a verdict is never taken for their absence from the
// run.
#include "detectors/families/rows.h"

namespace rankscope::families {

Finding EvaluateNever(const features::JobFeatures&) {
  return {};
}

namespace {

// Families of a slow or idle run say nothing about one that ended by an event of its own.
RuledOut SlowFamily(const features::JobFeatures& f, proto::Store needs) {
  if (const features::Cause* primary = f.Primary()) {
    return Excluded("the run was ended by an event, not by slowness", {primary->evidence});
  }
  return NotDecidable(needs);
}

}  // namespace

RuledOut RuleOutX17(const features::JobFeatures& f) {
  if (f.world_size == 1) return Excluded("one rank has no peers");
  return SlowFamily(f, proto::STORE_NCCL);
}

}  // namespace rankscope::families
