// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/loss_tracker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "detectors/model/archive.h"

namespace rankscope::windows {
namespace {

// One record with a loss, and a gradient norm unless it is absent.
logs::Progress Record(double loss, double grad_norm = logs::kAbsent, bool has_grad = false) {
  logs::Progress progress;
  progress.loss_text = "x";
  progress.loss = loss;
  if (has_grad || !std::isnan(grad_norm)) {
    progress.grad_norm_text = "x";
    progress.grad_norm = grad_norm;
  }
  return progress;
}

class LossTrackerTest : public ::testing::Test {
 protected:
  void Add(const logs::Progress& progress, std::string_view line = "line") {
    tracker_.Add(progress, 1, 10 * added_, line, {added_ * 1'000'000'000});
    ++added_;
  }
  LossTracker tracker_;
  int64_t added_ = 0;
};

TEST_F(LossTrackerTest, KeepsShortCurvesWhole) {
  for (int i = 0; i < 512; ++i) Add(Record(i));
  EXPECT_EQ(tracker_.curve().size(), 512u);
  EXPECT_EQ(tracker_.curve_stride(), 1);
  EXPECT_EQ(tracker_.curve().front(), 0);
  EXPECT_EQ(tracker_.curve().back(), 511);
}

TEST_F(LossTrackerTest, DecimatesEvenlyAndKeepsTheTailExact) {
  for (int i = 0; i < 5000; ++i) Add(Record(i));
  ASSERT_LE(tracker_.curve().size(), LossTracker::kCurve);
  ASSERT_GE(tracker_.curve().size(), LossTracker::kCurve / 2);
  for (size_t i = 0; i < tracker_.curve().size(); ++i)
    ASSERT_EQ(tracker_.curve()[i],
              static_cast<double>(i) * static_cast<double>(tracker_.curve_stride()));
  const std::vector<double> tail = tracker_.Tail();
  ASSERT_EQ(tail.size(), LossTracker::kTail);
  for (size_t i = 0; i < tail.size(); ++i)
    ASSERT_EQ(tail[i], 5000.0 - 128 + static_cast<double>(i));
}

TEST_F(LossTrackerTest, AMillionPointsStayBounded) {
  for (int i = 0; i < 1'000'000; ++i) Add(Record(1 + 1.0 / (1 + i), 0.5));
  EXPECT_EQ(tracker_.points(), 1'000'000);
  EXPECT_LE(tracker_.curve().size(), LossTracker::kCurve);
  ArchiveWriter archive;
  archive(tracker_);
  EXPECT_LT(archive.Take().size(), 16u << 10);  // curve 4 kB, tail 1 kB, two rings, seven quotes
}

TEST_F(LossTrackerTest, LandmarksQuoteTheirLines) {
  Add(Record(3), "first");
  Add(Record(1), "lowest");
  Add(Record(9), "highest");
  Add(Record(2), std::string(1000, 'q'));
  EXPECT_EQ(tracker_.first().line, "first");
  EXPECT_EQ(tracker_.lowest().line, "lowest");
  EXPECT_EQ(tracker_.lowest().offset, 10);
  EXPECT_EQ(tracker_.highest().line, "highest");
  EXPECT_EQ(tracker_.last().value, 2);
  EXPECT_EQ(tracker_.last().line.size(), logs::kCitationCap);
  EXPECT_FALSE(tracker_.first_nonfinite().present());
}

TEST_F(LossTrackerTest, TrailingNonFiniteStartsAgainAfterARecovery) {
  Add(Record(2));
  Add(Record(NAN), "early nan");
  Add(Record(2));
  EXPECT_EQ(tracker_.nonfinite(), 1);
  EXPECT_EQ(tracker_.trailing_nonfinite(), 0);
  Add(Record(INFINITY), "late inf");
  Add(Record(NAN));
  EXPECT_EQ(tracker_.nonfinite(), 3);
  EXPECT_EQ(tracker_.trailing_nonfinite(), 2);
  EXPECT_EQ(tracker_.first_nonfinite().line, "late inf");
  EXPECT_EQ(tracker_.curve().size(), 2u) << "the curve is of finite values";
}

TEST_F(LossTrackerTest, ZeroWithANaNGradientIsASilentNaN) {
  Add(Record(2, 0.5));
  Add(Record(0, NAN, true), "silent");
  Add(Record(0, NAN, true));
  EXPECT_EQ(tracker_.silent_nan(), 2);
  EXPECT_EQ(tracker_.first_silent_nan().line, "silent");
  EXPECT_EQ(tracker_.lowest().value, 2) << "a masked NaN is no lowest loss";
  Add(Record(1.9, 0.5));
  EXPECT_EQ(tracker_.silent_nan(), 0);
}

TEST_F(LossTrackerTest, ZeroWithAFiniteGradientIsALoss) {
  Add(Record(0, 0.5));
  Add(Record(0));
  EXPECT_EQ(tracker_.silent_nan(), 0);
  EXPECT_EQ(tracker_.lowest().value, 0);
}

TEST_F(LossTrackerTest, AMissingLossKeyIsSilentOnlyWhenIterationsWereSkipped) {
  logs::Progress missing;
  missing.loss_key_missing = true;
  Add(Record(2.5));
  Add(missing);
  EXPECT_EQ(tracker_.silent_nan(), 0);
  missing.skipped_iterations = 1;
  Add(missing);
  missing.skipped_iterations = logs::kAbsent;
  missing.nan_iterations = 2;
  Add(missing);
  EXPECT_EQ(tracker_.silent_nan(), 2);
  EXPECT_EQ(tracker_.points(), 1);
}

TEST_F(LossTrackerTest, TheSearchForALossScaleHasNoLosses) {
  logs::Progress missing;
  missing.loss_key_missing = true;
  missing.skipped_iterations = 1;
  for (int i = 0; i < 30; ++i) Add(missing);
  EXPECT_EQ(tracker_.silent_nan(), 0);
  for (int i = 0; i < 60; ++i) Add(missing);
  EXPECT_GT(tracker_.silent_nan(), 0) << "no scale is searched for that long";
}

TEST_F(LossTrackerTest, SpikesAreCountedAndRecoveryIsSeen) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, 0.02);
  for (int i = 0; i < 60; ++i) Add(Record(2.2 + noise(random)));
  EXPECT_EQ(tracker_.spikes(), 0);
  Add(Record(5.1), "spike");
  Add(Record(2.2));
  for (int i = 0; i < 60; ++i) Add(Record(2.2 + noise(random)));
  EXPECT_EQ(tracker_.spikes(), 1);
  EXPECT_EQ(tracker_.last_spike().line, "spike");
  Add(Record(5.0), "again");
  EXPECT_EQ(tracker_.spikes(), 2) << "one spike must not hide the next";
}

TEST_F(LossTrackerTest, TheBeginningOfARunHasNoSpikes) {
  for (const double loss : {10.0, 400.0, 9.0, 8.0}) Add(Record(loss));
  EXPECT_EQ(tracker_.spikes(), 0);
}

TEST_F(LossTrackerTest, EarlyGradientNormIsOfTheFirstTen) {
  for (int i = 1; i <= 10; ++i) Add(Record(2, i));
  for (int i = 0; i < 100; ++i) Add(Record(2, 1000));
  EXPECT_DOUBLE_EQ(tracker_.early_grad_norm(), 5.5);
  EXPECT_EQ(tracker_.GradNorms().size(), 64u);
}

}  // namespace
}  // namespace rankscope::windows
