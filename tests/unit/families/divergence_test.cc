// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/features/loss_features.h"

namespace rankscope::families {
namespace {

using features::JobFeatures;

// A finished run of `points` records: a level, a little noise, and what stands beside the loss.
struct Curve {
  int points = 60;
  double first = 0;  // of the first record; 0: as the others
  double level = 0;
  double rate = 1e-3;
  double grad_norm = logs::kAbsent;
};

JobFeatures Of(const Curve& curve) {
  windows::LossTracker tracker;
  for (int i = 0; i < curve.points; ++i) {
    logs::Progress progress;
    progress.step = i + 1;
    progress.loss = curve.level * (1 + 0.05 * std::sin(7.0 * i));
    if (i == 0 && curve.first > 0) progress.loss = curve.first;
    progress.learning_rate = curve.rate;
    progress.grad_norm = curve.grad_norm;
    progress.loss_text = progress.learning_rate_text = "x";
    if (std::isfinite(curve.grad_norm)) progress.grad_norm_text = "x";
    tracker.Add(progress, 1, i, "line", {i});
  }
  JobFeatures f;
  f.running = false;
  f.recognised = true;
  f.loss = features::BuildLossFeatures(tracker);
  return f;
}

TEST(Exploded, AtARateThatNobodyUses) {
  const Finding finding = loss_divergence::Evaluate(Of({.level = 4e9, .rate = 1e9}));
  EXPECT_EQ(finding.sub, "exploded");
  EXPECT_EQ(finding.tier, proto::TIER_S);
  EXPECT_EQ(finding.cap, proto::GROUND_RECORD);
  const FieldValue rate = {FieldId::kLearningRate, 1e9};
  EXPECT_EQ(*finding.values.Find(FieldId::kLearningRate), rate);
  EXPECT_FALSE(finding.values.Has(FieldId::kGradNorm));
  EXPECT_TRUE(finding.open.empty());
}

TEST(Exploded, SizeAloneIsNotEnoughUntilFloatsEnd) {
  EXPECT_FALSE(loss_divergence::Evaluate(Of({.level = 1e6})).matched);
  EXPECT_FALSE(loss_divergence::Evaluate(Of({.level = 1e11})).matched);
  const Finding finding = loss_divergence::Evaluate(Of({.level = 1e13}));
  EXPECT_EQ(finding.sub, "exploded");
  EXPECT_EQ(finding.tier, proto::TIER_W);
}

TEST(Exploded, GrowthByOrdersOfMagnitudeWithinTheFirstRecords) {
  const Finding far = loss_divergence::Evaluate(Of({.first = 2.3, .level = 4e5}));
  EXPECT_EQ(far.sub, "exploded");
  EXPECT_EQ(far.tier, proto::TIER_S);
  EXPECT_EQ(far.cap, cap::kEvenOdds);
  const Finding near = loss_divergence::Evaluate(Of({.first = 2e4, .level = 4e5}));
  EXPECT_EQ(near.sub, "exploded");
  EXPECT_EQ(near.tier, proto::TIER_W);
  EXPECT_FALSE(loss_divergence::Evaluate(Of({.first = 2.3, .level = 60}))
                   .matched);  // a game's value may do that
}

TEST(Exploded, GradientsThatAreGoneOrBeyondMeasure) {
  EXPECT_EQ(loss_divergence::Evaluate(Of({.level = 4e5, .grad_norm = 0})).sub, "exploded");
  EXPECT_EQ(loss_divergence::Evaluate(Of({.level = 4e5, .grad_norm = 3e11})).cap, cap::kEvenOdds);
  // Of a scaled loss in half precision.
  EXPECT_FALSE(loss_divergence::Evaluate(Of({.level = 4e5, .grad_norm = 180000})).matched);
}

TEST(Exploded, NotOfRewardsNorOfAFewRecordsNorOfABeginning) {
  JobFeatures rewards = Of({.level = 4e9, .rate = 1e9});
  rewards.reward_objective = true;
  EXPECT_FALSE(loss_divergence::Evaluate(rewards).matched);
  EXPECT_FALSE(loss_divergence::Evaluate(Of({.points = 5, .level = 4e9, .rate = 1e9})).matched);
  JobFeatures beginning = Of({.points = 20, .level = 4e9, .rate = 1e9});
  beginning.running = true;
  EXPECT_FALSE(loss_divergence::Evaluate(beginning).matched);
}

TEST(RuleOutE1, DoesNotSayThatALossWhichRisesDoesNot) {
  JobFeatures f = Of({.level = 3});
  f.loss.start = 3;
  f.loss.end = 3.1;
  RuledOut out = loss_divergence::RuleOut(f);
  EXPECT_EQ(out.by, Reason::kLossStays);
  EXPECT_EQ(out.values.Text(FieldId::kWhat), "rises");
  f.loss.end = 2.99;
  out = loss_divergence::RuleOut(f);
  EXPECT_EQ(out.by, Reason::kLossStays);
  EXPECT_EQ(out.values.Text(FieldId::kWhat), "level");
}

TEST(Nonfinite, FromTheFirstRecordOnThereIsNothingToReturnTo) {
  const auto never_finite = [](double first) {
    const Finding finding =
        loss_divergence::Evaluate(Of({.points = 12, .first = first, .level = std::nan("")}));
    EXPECT_EQ(finding.sub, "nonfinite");
    return finding.values.Has(FieldId::kNeverFinite);
  };
  EXPECT_TRUE(never_finite(0));
  EXPECT_FALSE(never_finite(2.5));
}

TEST(Nonfinite, AtAnAbsurdRateTheCauseIsNotOpen) {
  EXPECT_TRUE(loss_divergence::Evaluate(Of({.level = std::nan(""), .rate = 1e9})).open.empty());
  EXPECT_FALSE(loss_divergence::Evaluate(Of({.level = std::nan(""), .rate = 30})).open.empty());
}

}  // namespace
}  // namespace rankscope::families
