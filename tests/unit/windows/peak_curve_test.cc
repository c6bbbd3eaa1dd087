// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/series/peak_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope::windows {
namespace {

Timestamp At(double seconds) {
  return Timestamp{Seconds(1000 + seconds).ns};
}

TEST(PeakCurve, KeepsTheHighestOfEachBin) {
  PeakCurve curve;
  EXPECT_TRUE(curve.Peaks().empty());
  curve.Add(3, At(0));
  curve.Add(5, At(0.4));
  curve.Add(4, At(0.9));
  curve.Add(1, At(2));
  const std::vector<double> peaks = curve.Peaks();
  ASSERT_EQ(peaks.size(), 3u);
  EXPECT_EQ(peaks[0], 5);
  EXPECT_TRUE(std::isnan(peaks[1])) << "nothing was seen, which is not 0";
  EXPECT_EQ(peaks[2], 1);
}

TEST(PeakCurve, DoublesItsBinsAndLosesNoPeak) {
  PeakCurve curve;
  for (int second = 0; second < 1000; ++second) curve.Add(second == 130 ? 99.0F : 1.0F, At(second));
  EXPECT_EQ(curve.width(), Seconds(16));
  const std::vector<double> peaks = curve.Peaks();
  EXPECT_EQ(peaks.size(), 63u);
  EXPECT_EQ(std::count(peaks.begin(), peaks.end(), 99.0), 1);
  EXPECT_EQ(peaks[130 / 16], 99);
}

TEST(PeakCurve, SurvivesALeapAndAClockThatGoesBack) {
  PeakCurve curve;
  curve.Add(2, At(0));
  curve.Add(7, At(86400.0 * 365));
  EXPECT_LE(curve.Peaks().size(), PeakCurve::kBins);
  EXPECT_EQ(curve.Peaks().back(), 7);
  curve.Add(9, At(-500));
  EXPECT_EQ(curve.Peaks().back(), 9);
  EXPECT_EQ(curve.Peaks().front(), 2);
}

}  // namespace
}  // namespace rankscope::windows
