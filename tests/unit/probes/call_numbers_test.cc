// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "exporter/probes/calls/cuda_numbers.h"
#include "exporter/probes/calls/nccl_numbers.h"

namespace rankscope::probes {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::optional<double> Of(const std::vector<Sample>& samples, SignalId signal) {
  for (const Sample& sample : samples) {
    if (sample.signal == signal) return sample.value;
  }
  return std::nullopt;
}

bool Lives(uint32_t /*thread*/) {
  return true;
}

TEST(CudaNumbers, WhatWasNeverSeenIsNotSaid) {
  CudaNumbers numbers;
  const auto samples = numbers.Take({}, 5 * kSecond, {}, Lives);
  EXPECT_EQ(Of(samples, SignalId::kKernelLaunches), 0);
  EXPECT_EQ(Of(samples, SignalId::kLastLaunchAge), std::nullopt);
  EXPECT_EQ(Of(samples, SignalId::kLargestLaunchGapSeconds), std::nullopt);
  EXPECT_EQ(Of(samples, SignalId::kLaunchSeconds), std::nullopt);
  EXPECT_EQ(Of(samples, SignalId::kLastFailedAllocationBytes), std::nullopt);
}

TEST(CudaNumbers, AGapIsToldInTheSecondInWhichItEnds) {
  CudaNumbers numbers;
  rs_cuda_counts counts{};
  counts.launches = 2;
  counts.gaps[3] = {static_cast<__u64>(2 * kSecond), static_cast<__u64>(10 * kSecond)};
  counts.last_launch_ns = 10 * kSecond;
  const auto at = [&](double seconds) {
    return *Of(numbers.Take(counts, static_cast<int64_t>(seconds * kSecond), {}, Lives),
               SignalId::kLargestLaunchGapSeconds);
  };
  EXPECT_NEAR(at(10.5), 2, 1e-6);
  EXPECT_NEAR(at(11.5), 1.5, 1e-6) << "the running one, not the old one again";
}

TEST(CudaNumbers, WhatBeganWithoutAProbeIsNoGap) {
  CudaNumbers numbers;
  rs_cuda_counts counts{};
  counts.launches = 2;
  counts.gaps[0] = {static_cast<__u64>(kSecond / 2), static_cast<__u64>(10 * kSecond)};
  counts.last_launch_ns = 10 * kSecond + 1000;
  const LaunchWatch watch{0.1, 10 * kSecond - kSecond / 10, 10 * kSecond + kSecond / 10};
  const auto samples = numbers.Take(counts, 11 * kSecond, watch, Lives);
  EXPECT_NEAR(*Of(samples, SignalId::kLargestLaunchGapSeconds), 0.1, 1e-3);
  EXPECT_NEAR(*Of(samples, SignalId::kLastLaunchAge), 0.1, 1e-3);
  EXPECT_NEAR(*Of(samples, SignalId::kCountedShare), 0.1, 1e-6);
}

TEST(CudaNumbers, GapsAreToldByLengthWhereTheyRose) {
  CudaNumbers numbers;
  rs_cuda_counts counts{};
  EXPECT_EQ(Of(numbers.Take(counts, kSecond, {}, Lives), SignalId::kLaunchGapSeconds), std::nullopt)
      << "nothing was launched";
  counts.launches = 4;
  counts.unwatched_ns = 2 * kSecond;
  counts.last_launch_ns = 4 * kSecond;
  counts.gap_counts[0] = 2;
  counts.gap_counts[11] = 1;
  auto samples = numbers.Take(counts, 5 * kSecond, {}, Lives);
  EXPECT_NEAR(*Of(samples, SignalId::kLaunchGapSeconds), 2, 1e-6);
  EXPECT_EQ(Of(samples, SignalId::kLaunchGaps1Ms), 2);
  EXPECT_EQ(Of(samples, SignalId::kLaunchGaps2Ms), 0) << "each has a number from the first on";
  EXPECT_EQ(Of(samples, SignalId::kLaunchGaps2S), 1);
  EXPECT_EQ(Of(samples, SignalId::kLaunchGapsLonger), 0);

  counts.gap_counts[17] = 1;
  counts.last_launch_ns = 104 * kSecond;
  samples = numbers.Take(counts, 105 * kSecond, {}, Lives);
  EXPECT_NEAR(*Of(samples, SignalId::kLaunchGapSeconds), 102, 1e-4);
  EXPECT_EQ(Of(samples, SignalId::kLaunchGapsLonger), 1);
  EXPECT_EQ(Of(samples, SignalId::kLaunchGaps1Ms), std::nullopt) << "did not rise";

  counts.unwatched_ns = 0;  // read while it was written
  counts.last_launch_ns = 105 * kSecond;
  samples = numbers.Take(counts, 106 * kSecond, {}, Lives);
  EXPECT_EQ(Of(samples, SignalId::kLaunchGapSeconds), std::nullopt)
      << "no sum, rather than a false one";
  for (int look = 0; look < 57; ++look) numbers.Take(counts, 107 * kSecond, {}, Lives);
  samples = numbers.Take(counts, 108 * kSecond, {}, Lives);
  EXPECT_EQ(Of(samples, SignalId::kLaunchGaps1Ms), 2) << "all of them again, each minute";
  EXPECT_NEAR(*Of(samples, SignalId::kLaunchGapSeconds), 102, 1e-4) << "a sum never falls";
}

TEST(CudaNumbers, OnlyWhatNeedsADeviceIsWork) {
  rs_cuda_counts counts{};
  EXPECT_FALSE(CudaNumbers::HasWorked(counts));
  counts.syncs = 3;  // may have failed for want of one
  counts.errors = 3;
  EXPECT_FALSE(CudaNumbers::HasWorked(counts));
  counts.graphs = 1;
  EXPECT_TRUE(CudaNumbers::HasWorked(counts));
}

TEST(CudaNumbers, WhatWasEnteredBeforeTimingBeganHasReturnedUnseen) {
  CudaNumbers numbers;
  rs_cuda_counts counts{};
  counts.sync_ns = kSecond;
  counts.syncing[2].start_ns = 5 * kSecond;
  LaunchWatch watch;
  auto samples = numbers.Take(counts, 8 * kSecond, watch, Lives);
  EXPECT_NEAR(*Of(samples, SignalId::kOldestSyncSeconds), 3, 1e-6);
  EXPECT_NEAR(*Of(samples, SignalId::kCudaSyncSeconds), 4, 1e-6);
  EXPECT_EQ(Of(samples, SignalId::kTimedShare), 1);
  watch.timed = false;
  samples = numbers.Take(counts, 9 * kSecond, watch, Lives);
  EXPECT_EQ(Of(samples, SignalId::kOldestSyncSeconds), 0);
  EXPECT_NEAR(*Of(samples, SignalId::kCudaSyncSeconds), 4, 1e-6) << "a total never falls";
  EXPECT_EQ(Of(samples, SignalId::kTimedShare), 0);
  watch.timed = true;
  watch.timed_since_ns = 10 * kSecond;
  samples = numbers.Take(counts, 11 * kSecond, watch, Lives);
  EXPECT_EQ(Of(samples, SignalId::kOldestSyncSeconds), 0);
  EXPECT_EQ(Of(samples, SignalId::kTimedShare), 1);
}

TEST(CudaNumbers, LaunchesBetweenTimedWindowsLastAsLong) {
  CudaNumbers numbers;
  rs_cuda_counts counts{};
  counts.launches = 100;
  EXPECT_EQ(Of(numbers.Take(counts, kSecond, {}, Lives), SignalId::kLaunchSeconds), std::nullopt);
  counts.launches = 200;
  counts.timed_launches = 50;
  counts.launch_ns = 50 * 10'000;
  EXPECT_NEAR(*Of(numbers.Take(counts, 2 * kSecond, {}, Lives), SignalId::kLaunchSeconds),
              100 * 10e-6, 1e-9);
  counts.launches = 1200;
  EXPECT_NEAR(*Of(numbers.Take(counts, 3 * kSecond, {}, Lives), SignalId::kLaunchSeconds),
              1100 * 10e-6, 1e-8);
}

TEST(CudaNumbers, WhereTheDriverIsBypassedItsOwnLaunchesCountToo) {
  CudaNumbers seen;
  rs_cuda_counts counts{};
  counts.launches = 1000;
  counts.below = 990;
  counts.alone = 10;
  EXPECT_EQ(Of(seen.Take(counts, kSecond, {}, Lives), SignalId::kKernelLaunches), 1000);
  CudaNumbers bypassed;
  counts.below = 100;
  counts.alone = 900;
  EXPECT_EQ(Of(bypassed.Take(counts, kSecond, {}, Lives), SignalId::kKernelLaunches), 1100);
}

TEST(CudaNumbers, ASynchronisationCountsWhileItLasts) {
  CudaNumbers numbers;
  rs_cuda_counts counts{};
  counts.sync_ns = 2 * kSecond;
  counts.syncing[1].start_ns = 5 * kSecond;
  counts.syncing[1].thread = 7;
  const auto alive = numbers.Take(counts, 30 * kSecond, {}, Lives);
  EXPECT_NEAR(*Of(alive, SignalId::kOldestSyncSeconds), 25, 1e-4);
  EXPECT_NEAR(*Of(alive, SignalId::kCudaSyncSeconds), 27, 1e-4);
  // Its thread has ended inside.
  const auto dead = numbers.Take(counts, 30 * kSecond, {}, [](uint32_t) { return false; });
  EXPECT_EQ(*Of(dead, SignalId::kOldestSyncSeconds), 0);
}

TEST(NcclNumbers, TheWorldIsTheCommunicatorsOfTheMostRanks) {
  NcclView view;
  EXPECT_EQ(CollectiveSequence(view), std::nullopt);
  view.communicators = {{1, 500, 2, 0}, {2, 70, 8, 3}, {3, 5, 8, 3}, {0, 900, 0, 0}};
  EXPECT_EQ(CollectiveSequence(view), 75u);
  view.counts.gone_ranks = 8;
  view.counts.gone_collectives = 25;
  EXPECT_EQ(CollectiveSequence(view), 100u);
  view.counts.gone_ranks = 4;
  EXPECT_EQ(CollectiveSequence(view), 75u);
}

TEST(NcclNumbers, WorkInFlightIsWhatTheWatchdogStillAsksFor) {
  NcclView view;
  const auto silent = NcclSamples(view, 100 * kSecond, Lives);
  EXPECT_EQ(Of(silent, SignalId::kCollectivesCompleted), std::nullopt);
  view.counts.queries = 10;
  view.counts.completed = 4;
  view.asked = {
      {90 * kSecond, 99 * kSecond}, {80 * kSecond, 99 * kSecond}, {1 * kSecond, 2 * kSecond}};
  const auto samples = NcclSamples(view, 100 * kSecond, Lives);
  EXPECT_EQ(Of(samples, SignalId::kCollectivesCompleted), 4);
  EXPECT_EQ(Of(samples, SignalId::kCollectivesInFlight), 2);
  EXPECT_NEAR(*Of(samples, SignalId::kOldestCollectiveSeconds), 20, 1e-4);
}

TEST(NcclNumbers, InitsInFlightHaveAnAge) {
  NcclView view;
  view.counts.initialising[0].start_ns = 60 * kSecond;
  view.counts.initialising[3].start_ns = 90 * kSecond;
  const auto samples = NcclSamples(view, 100 * kSecond, Lives);
  EXPECT_EQ(Of(samples, SignalId::kInitsInFlight), 2);
  EXPECT_NEAR(*Of(samples, SignalId::kCommunicatorInitSeconds), 40, 1e-4);
}

TEST(NcclNumbers, OfTheOperationsThatAProcessHasUsed) {
  NcclView view;
  view.counts.kinds[RS_ALL_REDUCE - 1] = {10, 4000, 6000, static_cast<__u64>(kSecond / 4)};
  view.counts.kinds[RS_SEND - 1] = {3, 300, 0, 0};
  const auto samples = NcclSamples(view, 100 * kSecond, Lives);
  EXPECT_EQ(Of(samples, SignalId::kAllReduceBytes), 4000);
  EXPECT_EQ(Of(samples, SignalId::kAllReduceSeconds), 0.25);
  EXPECT_EQ(Of(samples, SignalId::kAllReduceBusBytes), 6000);
  EXPECT_EQ(Of(samples, SignalId::kSendBytes), 300);
  EXPECT_EQ(Of(samples, SignalId::kSendBusBytes), std::nullopt) << "not known, and not 0";
  EXPECT_EQ(Of(samples, SignalId::kBroadcastBytes), std::nullopt);
}

}  // namespace
}  // namespace rankscope::probes
