// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Against values worked out by hand.
#include "detectors/windows/series/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace rankscope::windows {
namespace {

using ::testing::ElementsAre;
using Values = std::vector<double>;

TEST(Median, OddEvenOneAndNone) {
  EXPECT_DOUBLE_EQ(Median(Values{9, 1, 5}), 5);
  EXPECT_DOUBLE_EQ(Median(Values{4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(Median(Values{7}), 7);
  EXPECT_TRUE(std::isnan(Median(Values{})));
}

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  const Values values{40, 10, 30, 20, 50};
  EXPECT_DOUBLE_EQ(Quantile(values, 0), 10);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.25), 20);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.9), 46);  // position 3.6: 40 + 0.6 x 10
  EXPECT_DOUBLE_EQ(Quantile(values, 1), 50);
  EXPECT_TRUE(std::isnan(Quantile(Values{}, 0.5)));
}

TEST(NoiseSigma, OfAStraightLineIsZeroHoweverSteep) {
  EXPECT_DOUBLE_EQ(NoiseSigma(Values{1, 3, 5, 7, 9, 11}), 0);
  EXPECT_DOUBLE_EQ(NoiseSigma(Values{1, 2}), 0);
}

TEST(NoiseSigma, OfKnownDifferences) {
  // Differences 1 -1 3 -1 1 -3: median 0, absolute 1 1 3 1 1 3, their median 1.
  EXPECT_NEAR(NoiseSigma(Values{0, 1, 0, 3, 2, 3, 0}), 1.4826 / std::sqrt(2.0), 1e-12);
}

TEST(NoiseSigma, FindsTheSigmaOfNormalNoiseOnATrend) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.2);
  Values values;
  for (int i = 0; i < 4000; ++i) values.push_back(10 - 0.01 * i + noise(random));
  EXPECT_NEAR(NoiseSigma(values), 0.2, 0.02);
}

TEST(Quantile, IsThatOfTheSortedValues) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> value(0, 40);
  for (size_t n = 1; n < 70; ++n) {
    Values values(n);
    for (double& each : values) each = value(random);
    Values sorted = values;
    std::sort(sorted.begin(), sorted.end());
    for (const double q : {0.0, 0.1, 0.25, 0.5, 0.9, 0.99, 1.0}) {
      const double position = q * static_cast<double>(n - 1);
      const auto below = static_cast<size_t>(position);
      const double rest = position - static_cast<double>(below);
      const double above = sorted[std::min(below + 1, n - 1)];
      EXPECT_EQ(Quantile(values, q), sorted[below] * (1 - rest) + above * rest);
    }
  }
}

TEST(MonotonicTrend, OfFiveRisingValues) {
  // S = 10, variance = 5 x 4 x 15 / 18 = 16.6667, z = 9 / 4.08248.
  const Trend trend = MonotonicTrend(Values{1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(trend.slope_per_index, 1);
  EXPECT_NEAR(trend.z, 2.204541, 1e-6);
  EXPECT_NEAR(MonotonicTrend(Values{5, 4, 3, 2, 1}).z, -2.204541, 1e-6);
}

TEST(MonotonicTrend, CorrectsForTies) {
  // 1 1 2 2 3: pairs 0 of two ties, 8 rising: S = 8. Variance (300 - 2 x 18) / 18 = 14.6667.
  const Trend trend = MonotonicTrend(Values{1, 1, 2, 2, 3});
  EXPECT_NEAR(trend.z, 7 / std::sqrt(264.0 / 18), 1e-12);
}

TEST(MonotonicTrend, OfConstantsAndOfTooFewIsNothing) {
  EXPECT_DOUBLE_EQ(MonotonicTrend(Values{2, 2, 2, 2}).z, 0);
  EXPECT_DOUBLE_EQ(MonotonicTrend(Values{1, 2}).z, 0);
  EXPECT_DOUBLE_EQ(MonotonicTrend(Values{1, 2}).slope_per_index, 0);
}

TEST(MonotonicTrend, ItsZAloneIsTheSame) {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> value(0, 9);
  for (size_t n = 0; n < 64; ++n) {
    Values values(n);
    for (double& each : values) each = value(random);
    EXPECT_EQ(TrendZ(values), MonotonicTrend(values).z);
  }
}

TEST(MonotonicTrend, OneOutlierTurnsNoSlope) {
  EXPECT_DOUBLE_EQ(MonotonicTrend(Values{1, 2, 3, 1000, 5, 6, 7}).slope_per_index, 1);
}

TEST(Decimate, KeepsBothEnds) {
  EXPECT_THAT(Decimate(Values{0, 1, 2, 3, 4, 5, 6, 7, 8}, 3), ElementsAre(0, 4, 8));
  EXPECT_THAT(Decimate(Values{1, 2}, 5), ElementsAre(1, 2));
  const Values long_series(1000, 1.0);
  EXPECT_EQ(Decimate(long_series, 64).size(), 64u);
}

}  // namespace
}  // namespace rankscope::windows
