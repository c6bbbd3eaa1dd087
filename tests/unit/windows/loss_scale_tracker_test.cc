// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/loss_scale_tracker.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankscope::windows {
namespace {

void Lower(LossScaleTracker& tracker, double scale, int64_t records) {
  tracker.OnLowered(scale, records, static_cast<double>(records), 1, records, "line", {records});
}

TEST(LossScaleTracker, CountsFallsInARow) {
  LossScaleTracker tracker;
  EXPECT_EQ(tracker.falls(), 0);
  EXPECT_TRUE(std::isnan(tracker.scale()));
  for (int i = 0; i < 5; ++i) Lower(tracker, 1024 / std::pow(2, i), 100 + i);
  EXPECT_EQ(tracker.falls(), 5);
  EXPECT_EQ(tracker.scale(), 64);
  EXPECT_EQ(tracker.records_at_first(), 100);
  EXPECT_EQ(tracker.records_at_last(), 104);
  EXPECT_EQ(tracker.first().value, 1024);
  EXPECT_EQ(tracker.last().value, 64);
}

TEST(LossScaleTracker, TheSameFallOfAnotherRankCountsOnce) {
  LossScaleTracker tracker;
  for (const double scale : {512.0, 512.0, 512.0, 256.0, 256.0}) Lower(tracker, scale, 9);
  EXPECT_EQ(tracker.falls(), 2);
}

TEST(LossScaleTracker, ARiseBeginsAnew) {
  LossScaleTracker tracker;
  for (const double scale : {512.0, 256.0, 128.0}) Lower(tracker, scale, 9);
  Lower(tracker, 256, 2000);
  EXPECT_EQ(tracker.falls(), 1);
  EXPECT_EQ(tracker.records_at_first(), 2000);
}

TEST(LossScaleTracker, NoNumberIsNoFall) {
  LossScaleTracker tracker;
  Lower(tracker, NAN, 3);
  EXPECT_EQ(tracker.falls(), 0);
}

}  // namespace
}  // namespace rankscope::windows
