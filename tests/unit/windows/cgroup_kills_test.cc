// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/cgroup_kills.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankscope::windows {
namespace {

Timestamp At(double second) {
  return Timestamp{} + Seconds(second);
}

TEST(CgroupKills, WhatTheJobsOwnCgroupHadCountedIsOfTheJob) {
  CgroupKills own, shared;
  own.OnCount(2, true, At(100));
  shared.OnCount(2, false, At(100));
  EXPECT_EQ(own.earlier(), 2);
  EXPECT_EQ(shared.earlier(), 0);
  // That it is the job's own turns out later: who was first is still not known.
  shared.OnCount(2, true, At(101));
  EXPECT_EQ(shared.earlier(), 0);
  EXPECT_TRUE(own.growths().empty() && shared.growths().empty());
}

TEST(CgroupKills, AGrowthLiesBetweenTwoSamples) {
  CgroupKills kills;
  kills.OnCount(0, true, At(100));
  kills.OnCount(0, true, At(101));
  kills.OnCount(3, true, At(102));
  ASSERT_EQ(kills.growths().size(), 1u);
  EXPECT_EQ(kills.growths().front().begin, At(101));
  EXPECT_EQ(kills.growths().front().end, At(102));
  EXPECT_EQ(kills.growths().front().kills, 3);
  EXPECT_EQ(kills.earlier(), 0);
}

TEST(CgroupKills, ACgroupThatIsMadeAnewCountsFromZero) {
  CgroupKills kills;
  kills.OnCount(5, true, At(100));
  kills.OnCount(0, true, At(101));
  EXPECT_TRUE(kills.growths().empty());
  kills.OnCount(1, true, At(102));
  ASSERT_EQ(kills.growths().size(), 1u);
  EXPECT_EQ(kills.growths().front().kills, 1);
}

TEST(CgroupKills, KeepsTheNewestAndTakesNoNonsense) {
  CgroupKills kills;
  kills.OnCount(std::nan(""), true, At(99));
  kills.OnCount(-1, true, At(99));
  for (int i = 0; i < 20; ++i) kills.OnCount(i, true, At(100 + i));
  EXPECT_EQ(kills.growths().size(), CgroupKills::kMaxGrowths);
  EXPECT_EQ(kills.growths().back().end, At(119));
}

}  // namespace
}  // namespace rankscope::windows
