// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the families of the training curve share: how a loss is judged and which of a run's
// landmarks a verdict shows. Private to families; pure.
#pragma once

#include <string_view>

#include "detectors/families/family.h"

namespace rankscope::families {

// Below this many points a curve has no shape.
inline constexpr int64_t kShapePoints = 8;
// 5 % of a two-sided test on Mann-Kendall's z.
inline constexpr double kTrendZ = 1.96;

// Rewards, preferences and adversaries make losses that may do anything.
bool LossMustFall(const features::JobFeatures& f);
// E1's sub where the curve itself is wrong; empty: it is not.
std::string_view Divergence(const features::JobFeatures& f);
// Whether hundreds of losses show no trend, and nothing says why: a warning, for a model that knows
// its task already and one that learns slowly show the same.
// Whoever ended the run, its loss had not been a number for ten records: the end is its
// disposition.
bool EndedWithoutALoss(const features::JobFeatures& f, const features::Cause& end);
bool HasNotMoved(const features::JobFeatures& f);
bool Learned(const features::JobFeatures& f);
// Of reinforcement learning, whose loss may do anything: the reward is finite and fell by a tenth
// of its size at most.
bool RewardHolds(const features::JobFeatures& f);
// The curve speaks against learning, without being wrong enough for a failure: it rose by half of
// itself, or it stands at zero, which it did not reach by falling.
bool SpeaksAgainstLearning(const features::JobFeatures& f);

// Adds evidence that is there and not shown yet.
void Show(features::EvidenceRef ref, Finding& finding);
// First and last of the loss.
void ShowCurve(const features::JobFeatures& f, Finding& finding);
// How the run took its leave, in its own words: last evaluation, last save, final metrics, that it
// completed, its last line.
void ShowLeave(const features::JobFeatures& f, Finding& finding);

}  // namespace rankscope::families
