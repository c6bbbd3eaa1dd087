// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/governor.h"

#include <gtest/gtest.h>

#include "exporter/probes/calls/launch_windows.h"

namespace rankscope::probes {
namespace {

constexpr ProbeCosts kCheap = {0.65e-6, 0.65e-6, 0.4e-6, 1.2e-6, 11e-6};
constexpr ProbeCosts kStepped = {10e-6, 10e-6, 0.4e-6, 1.2e-6, 11e-6};
constexpr double kOnePercent = 0.01;

// What the rates look like under a plan: who has no probe is not seen.
ProbeRates Seen(ProbeRates rates, const LaunchPlan& plan) {
  if (!plan.runtime) rates.runtime = rates.below = 0;
  if (!plan.calls) rates.calls = 0;
  if (!plan.stepped_calls) rates.stepped_calls = 0;
  return rates;
}

LaunchPlan Settle(const ProbeCosts& costs, const ProbeRates& rates) {
  LaunchPlan plan;
  for (int i = 0; i < 10; ++i) plan = DecideLaunches(costs, Seen(rates, plan), kOnePercent, plan);
  return plan;
}

TEST(Governor, WhatIsCheapIsCountedWhole) {
  EXPECT_EQ(Settle(kCheap, {}), LaunchPlan{});
  EXPECT_EQ(Settle(kCheap, {5000, 5000, 5000, 500}), LaunchPlan{});
}

TEST(Governor, OneLayerIsEnoughWhereBothShowTheSame) {
  // 2 x 12,000 x 0.65 us = 1.56 % of a core; the driver's alone are 0.78 %.
  const LaunchPlan plan = Settle(kCheap, {12'000, 12'000, 12'000, 0});
  EXPECT_FALSE(plan.runtime);
  EXPECT_EQ(plan.share, 1) << "still exact";
}

TEST(Governor, BothLayersStayWhereTheRuntimeGoesPastTheDriver) {
  const LaunchPlan plan = Settle(kCheap, {12'000, 12'000, 10, 0});
  EXPECT_TRUE(plan.runtime);
  EXPECT_NEAR(plan.share, 0.01 / 0.0156, 1e-3);
}

TEST(Governor, WhatIsStillTooMuchIsCountedInWindows) {
  const LaunchPlan plan = Settle(kCheap, {50'000, 50'000, 50'000, 0});
  EXPECT_FALSE(plan.runtime);
  EXPECT_NEAR(plan.share, 0.01 / 0.0325, 1e-3);
  EXPECT_NEAR(CostOf(kCheap, {50'000, 0, 0, 0}, plan), kOnePercent, 1e-9);
}

TEST(Governor, AnInstructionThatIsSteppedIsDutyCycledMuchEarlier) {
  const LaunchPlan plan = Settle(kStepped, {0, 10'000, 0, 0});
  EXPECT_TRUE(plan.runtime);
  EXPECT_NEAR(plan.share, 0.1, 1e-3);
}

TEST(Governor, SomethingIsAlwaysLookedAt) {
  EXPECT_EQ(Settle(kStepped, {1e6, 0, 0, 0}).share, kLeastShare);
}

TEST(Governor, CallsThatCostTooMuchAreNoLongerTimed) {
  // 20,000 x 1.2 us = 2.4 % of a core: launches are seen instead.
  const LaunchPlan plan = Settle(kCheap, {1000, 0, 0, 20'000, 0});
  EXPECT_FALSE(plan.calls);
  EXPECT_FALSE(plan.times_all());
  EXPECT_EQ(plan.share, 1);
  EXPECT_LE(CostOf(kCheap, Seen({1000, 0, 0, 20'000, 0}, plan), plan), kOnePercent);
}

TEST(Governor, SteppedCallsAreGivenUpBeforeTheOthers) {
  const LaunchPlan plan = Settle(kCheap, {1000, 0, 0, 1000, 1000});
  EXPECT_FALSE(plan.stepped_calls);
  EXPECT_TRUE(plan.calls);
  EXPECT_TRUE(Settle(kCheap, {1000, 0, 0, 1000, 100}).times_all()) << "0.11 % of a core";
  EXPECT_TRUE(Settle(kCheap, {1000, 0, 0, 20'000, 0}).stepped_calls) << "nobody makes them";
}

TEST(Governor, LaunchesGiveWayToCallsThatFit) {
  // 5,000 x 1.2 us = 0.6 %, and 10,000 x 0.65 us.
  const LaunchPlan plan = Settle(kCheap, {10'000, 0, 0, 5000, 0});
  EXPECT_TRUE(plan.times_all());
  EXPECT_NEAR(plan.share, 0.004 / 0.0065, 1e-3);
}

TEST(Governor, WhatIsNotTimedDoesNotComeBackByItself) {
  const LaunchPlan off = {true, 1, false, false};
  EXPECT_EQ(DecideLaunches(kCheap, {}, kOnePercent, off), off) << "who looks again says so";
}

TEST(Governor, CountingIsExactAgainWhenTheRateFalls) {
  const LaunchPlan windows = Settle(kCheap, {50'000, 50'000, 50'000, 0});
  ASSERT_LT(windows.share, 1);
  EXPECT_EQ(DecideLaunches(kCheap, {}, kOnePercent, windows), LaunchPlan{}) << "a rank that hangs";
  EXPECT_EQ(DecideLaunches(kCheap, {3000, 0, 0, 0}, kOnePercent, windows), LaunchPlan{});
}

TEST(Governor, ARateAtTheEdgeDoesNotSwitchEachSecond) {
  // 0.98 % of a core with both layers: it may stay, and need not come back.
  const ProbeRates edge = {7540, 7540, 7540, 0};
  EXPECT_EQ(DecideLaunches(kCheap, edge, kOnePercent, {}), LaunchPlan{});
  LaunchPlan plan{false, 1};
  for (int i = 0; i < 5; ++i) {
    const LaunchPlan next = DecideLaunches(kCheap, Seen(edge, plan), kOnePercent, plan);
    EXPECT_EQ(next, plan);
    plan = next;
  }
}

TEST(Governor, WithoutAMeasuredCostNothingIsGivenUp) {
  EXPECT_EQ(DecideLaunches({}, {1e6, 1e6, 0, 1e6}, kOnePercent, {}), LaunchPlan{});
}

TEST(LaunchWindows, TheBusiestProcessDecides) {
  const CallerRuns before = {{1, {1000}}, {2, {}}};
  const CallerRuns after = {{1, {1100}}, {2, {900, 900, 890, 0, 10, 5}}, {3, {50}}};
  const ProbeRates rates = BusiestRates(kCheap, before, after, 0.5);
  EXPECT_EQ(rates.driver, 1800);
  EXPECT_EQ(rates.runtime, 1800);
  EXPECT_EQ(rates.below, 1780);
  EXPECT_EQ(rates.calls, 20);
  EXPECT_EQ(rates.stepped_calls, 10);
}

TEST(LaunchWindows, TheDearestSiteCounts) {
  SiteCosts sites{};
  sites[static_cast<size_t>(SiteClass::kPush)] = {1e-6, 2e-7};
  sites[static_cast<size_t>(SiteClass::kSingleStep)] = {1e-5, 3e-7};
  const ProbeCosts costs = CostsOf(sites, {{RS_CUDA_LAUNCH, 0, SiteClass::kPush},
                                           {RS_CUDA_LAUNCH, 1, SiteClass::kPush},
                                           {RS_CUDA_GRAPH, 1, SiteClass::kSingleStep},
                                           {RS_CUDA_SYNC, 1, SiteClass::kPush},
                                           {RS_CUDA_SYNC, 0, SiteClass::kSingleStep}});
  EXPECT_DOUBLE_EQ(costs.driver, 1e-6);
  EXPECT_DOUBLE_EQ(costs.runtime, 1e-5);
  EXPECT_DOUBLE_EQ(costs.call, 1.2e-6);
  EXPECT_DOUBLE_EQ(costs.stepped_call, 1.03e-5);
  EXPECT_DOUBLE_EQ(costs.launch_return, 3e-7);
}

}  // namespace
}  // namespace rankscope::probes
