// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/reward_tracker.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankscope::windows {
namespace {

void Add(RewardTracker& tracker, double reward, double spread, double kl = logs::kAbsent) {
  logs::Progress progress;
  progress.reward = reward;
  progress.reward_std = spread;
  progress.kl = kl;
  tracker.Add(progress, 1, tracker.records(), "line", {1});
}

TEST(RewardTracker, OtherTrainingsHaveNoRewards) {
  RewardTracker tracker;
  logs::Progress progress;
  progress.loss = 2;
  progress.kl = 0.1;  // distillation prints one too
  tracker.Add(progress, 1, 0, "line", {1});
  EXPECT_EQ(tracker.records(), 0);
  EXPECT_EQ(tracker.kl_records(), 0);
}

TEST(RewardTracker, CountsRecordsWithoutADifferenceAtTheEnd) {
  RewardTracker tracker;
  for (int i = 0; i < 5; ++i) Add(tracker, 0.5, 0);
  Add(tracker, 0.5, 0.2);
  for (int i = 0; i < 3; ++i) Add(tracker, 0.1, 0);
  EXPECT_EQ(tracker.trailing_flat(), 3);
  EXPECT_TRUE(tracker.ever_differed());
  EXPECT_EQ(tracker.flat().index, 6);
}

TEST(RewardTracker, TheShareOfGroupsDecidesWhereItIsPrinted) {
  RewardTracker tracker;
  logs::Progress progress;
  progress.reward = 0.5;
  progress.reward_std = 0.3;
  progress.zero_std_share = 0.95;
  tracker.Add(progress, 1, 0, "line", {1});
  EXPECT_EQ(tracker.trailing_flat(), 1);
  progress.zero_std_share = 0.5;
  tracker.Add(progress, 1, 1, "line", {1});
  EXPECT_EQ(tracker.trailing_flat(), 0);
}

TEST(RewardTracker, MediansOfTheEnds) {
  RewardTracker tracker;
  EXPECT_TRUE(std::isnan(tracker.first_reward()));
  for (int i = 0; i < 100; ++i) Add(tracker, i, 0.1, i < 70 ? 0.01 : 1.5);
  EXPECT_DOUBLE_EQ(tracker.first_reward(), 4.5);
  EXPECT_DOUBLE_EQ(tracker.last_reward(), 94.5);
  EXPECT_DOUBLE_EQ(tracker.best_reward(), 99);
  EXPECT_DOUBLE_EQ(tracker.usual_kl(), 0.01);
  EXPECT_DOUBLE_EQ(tracker.last_kl(), 1.5);
  EXPECT_EQ(tracker.highest_kl().index, 70);
}

TEST(RewardTracker, AnEarlyRiseLeavesWhatWasUsualBefore) {
  RewardTracker tracker;
  for (int i = 0; i < 64; ++i) Add(tracker, 0.5, 0.1, i < 20 ? 0.01 : 1.5);
  EXPECT_TRUE(tracker.rose_early());
  EXPECT_DOUBLE_EQ(tracker.usual_kl(), 0.01);
}

TEST(RewardTracker, WhatGrowsFromNothingDoesNotRise) {
  for (const double power : {1.0, 2.0, 4.0}) {
    RewardTracker tracker;
    for (int i = 1; i <= 100; ++i) Add(tracker, 0.5, 0.1, std::pow(i / 20.0, power));
    EXPECT_FALSE(tracker.rose_early()) << power;
  }
}

TEST(RewardTracker, AnEarlySpikeIsNoRise) {
  RewardTracker tracker;
  for (int i = 0; i < 64; ++i) Add(tracker, 0.5, 0.1, i == 32 ? 50 : 0.01);
  EXPECT_FALSE(tracker.rose_early());
}

}  // namespace
}  // namespace rankscope::windows
