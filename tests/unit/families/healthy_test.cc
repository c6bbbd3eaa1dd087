// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// G1 of a run that goes on: its curve is looked at with each record.
#include <gtest/gtest.h>

#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

features::JobFeatures Falling(double trend_z) {
  features::JobFeatures f;
  f.now = {int64_t{10'000} * 1'000'000'000};
  f.running = f.timed = f.recognised = true;
  f.lines = 40;
  f.progress = 40;
  f.steps = 400;
  f.steps_known = true;
  f.usual_record_seconds = 2;
  f.silence_seconds = 1;
  f.loss.points = 40;
  f.loss.start = 3;
  f.loss.end = 2.8;
  f.loss.slope_per_point = -0.01;
  f.loss.trend_z = trend_z;
  return f;
}

TEST(Healthy, NeedsATrendThatDoesNotComeAndGoWhileItRuns) {
  EXPECT_TRUE(healthy::Evaluate(Falling(-3.5)).matched);
  EXPECT_FALSE(healthy::Evaluate(Falling(-2.5)).matched)
      << "one of many looks finds that by chance";
  EXPECT_FALSE(healthy::Evaluate(Falling(-1.5)).matched);
}

TEST(Healthy, LooksOnceAtTheCurveOfARunThatIsOver) {
  features::JobFeatures f = Falling(-2.5);
  f.running = false;
  f.ended = f.exit_known = true;
  EXPECT_EQ(healthy::Evaluate(f).sub, "healthy");
}

}  // namespace
}  // namespace rankscope::families
