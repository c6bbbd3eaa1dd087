// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a run's target (`run --target`, or the site's of a partition) says of its pace. Private to
// families; pure.
#pragma once

#include "detectors/families/curve.h"
#include "detectors/families/family.h"

namespace rankscope::families {

// Targets are round numbers, and a run that comes this near to its target reaches it.
inline constexpr double kReached = 0.95;

inline bool MissesTarget(const features::JobFeatures& f) {
  return f.target.known() && f.target.reached < kReached * f.target.target;
}

// A run that is slow by what its GPUs, its host or its storage show: how far from its target it is.
// One that reaches its target is not too slow, whatever waits for what in it; `of_rank`: whether
// the finding is about a rank that others wait for, which it stays.
inline Finding AgainstTarget(const features::JobFeatures& f, Finding finding, bool of_rank) {
  if (!finding.matched || !f.target.known()) return finding;
  if (!MissesTarget(f) && !of_rank) return {};
  Show(f.target.evidence, finding);
  return finding;
}

}  // namespace rankscope::families
