// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/loss_features.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankscope::features {
namespace {

LossFeatures Of(int points, double (*loss)(int)) {
  windows::LossTracker tracker;
  for (int i = 0; i < points; ++i) {
    logs::Progress progress;
    progress.loss_text = "x";
    progress.loss = loss(i);
    tracker.Add(progress, 1, i, "line", {i});
  }
  return BuildLossFeatures(tracker);
}

TEST(LossFeatures, OfNothing) {
  const LossFeatures f = BuildLossFeatures(windows::LossTracker());
  EXPECT_EQ(f.points, 0);
  EXPECT_TRUE(std::isnan(f.start));
  EXPECT_TRUE(std::isnan(f.end));
}

TEST(LossFeatures, EndsAreMediansNotSinglePoints) {
  const LossFeatures f = Of(200, [](int i) { return i == 0 || i == 199 ? 1000.0 : 200.0 - i; });
  EXPECT_DOUBLE_EQ(f.start, 195.5);  // median of 1000 199 198 .. 191
  EXPECT_DOUBLE_EQ(f.end, 11.5);     // median of 20 19 .. 2 1000
  EXPECT_EQ(f.start_points, 10);
  EXPECT_EQ(f.end_points, 20);
  EXPECT_LT(f.trend_z, -1.96);
  EXPECT_NEAR(f.slope_per_point, -1, 0.01);
}

TEST(LossFeatures, AConstantHasNeitherNoiseNorTrend) {
  const LossFeatures f = Of(100, [](int) { return 2.0; });
  EXPECT_DOUBLE_EQ(f.noise, 0);
  EXPECT_DOUBLE_EQ(f.trend_z, 0);
  EXPECT_DOUBLE_EQ(f.lowest, 2);
}

TEST(LossFeatures, TheLowestIsALevelAndItsDistanceIsInRecords) {
  const LossFeatures f =
      Of(2000, [](int i) { return i < 1000 ? 10 - 0.009 * i : 1 + 0.009 * (i - 1000); });
  EXPECT_NEAR(f.lowest, 1, 0.5);
  EXPECT_NEAR(static_cast<double>(f.points_since_lowest), 1000, 100);
  EXPECT_GT(f.late_trend_z, 1.96);
}

TEST(LossFeatures, LogarithmsOnlyOfPositiveLosses) {
  EXPECT_GT(Of(50, [](int i) { return 2.0 + 0.1 * (i % 3); }).log_noise, 0);
  EXPECT_DOUBLE_EQ(Of(50, [](int i) { return -2.0 + 0.1 * (i % 3); }).log_noise, 0);
}

TEST(LossFeatures, LongCurvesKeepTheirSlopePerRecord) {
  const LossFeatures f = Of(50'000, [](int i) { return 100 - 0.001 * i; });
  EXPECT_NEAR(f.slope_per_point, -0.001, 1e-5);
  EXPECT_NEAR(f.end, 50, 0.2) << "the exact tail";
}

TEST(LossFeatures, AJumpIsCountedFromTheEnd) {
  const LossFeatures f = Of(20, [](int i) { return i < 13 ? 2.2 - 0.1 * i : 2.1; });
  EXPECT_EQ(f.points_above, 7);
  EXPECT_NEAR(f.peak_after_lowest, 2.1, 1e-9);
  EXPECT_DOUBLE_EQ(f.first, 2.2);
  EXPECT_DOUBLE_EQ(f.last, 2.1);
}

TEST(LossFeatures, AValueThatDoesNotMove) {
  EXPECT_EQ(Of(60, [](int i) { return i < 10 ? 3.0 : 2.3; }).points_still, 50);
  EXPECT_LT(Of(60, [](int i) { return 2.3 + 0.05 * (i % 2); }).points_still, 2);
}

TEST(LossFeatures, AClimbAtTheVeryEnd) {
  const LossFeatures f = Of(60, [](int i) { return i < 56 ? 1.3 : 1.3 * (i - 53); });
  EXPECT_EQ(f.points_climbing, 4);
  EXPECT_DOUBLE_EQ(f.end, 1.3);
}

LossFeatures WithRates(double (*rate)(int)) {
  windows::LossTracker tracker;
  for (int i = 0; i < 40; ++i) {
    logs::Progress progress;
    progress.loss_text = progress.learning_rate_text = "x";
    progress.loss = 2;
    progress.learning_rate = rate(i);
    tracker.Add(progress, 1, i, "line", {i});
  }
  return BuildLossFeatures(tracker);
}

TEST(LossFeatures, ARangeTestIsNoWarmUp) {
  EXPECT_TRUE(WithRates([](int i) { return 1e-7 * std::pow(1.4, i); }).rate_sweep);
  EXPECT_FALSE(WithRates([](int i) { return 1e-5 * (i + 1); }).rate_sweep);
  EXPECT_FALSE(WithRates([](int) { return 1e-4; }).rate_sweep);
  EXPECT_TRUE(WithRates([](int i) { return 1e-5 * (i + 1); }).rate_climbs);
  EXPECT_FALSE(WithRates([](int i) { return 1e-3 / (i + 1); }).rate_climbs);
}

TEST(LossFeatures, RatesOfExactlyZeroAtTheEnd) {
  EXPECT_EQ(WithRates([](int i) { return i < 30 ? 1e-4 : 0; }).trailing_zero_rates, 10);
  EXPECT_EQ(WithRates([](int i) { return i == 39 ? 0 : 1e-4; }).trailing_zero_rates, 1);
}

}  // namespace
}  // namespace rankscope::features
