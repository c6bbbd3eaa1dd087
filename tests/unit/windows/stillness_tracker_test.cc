// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/stillness_tracker.h"

#include <gtest/gtest.h>

#include <cmath>

#include "detectors/model/event_types.h"

namespace rankscope::windows {
namespace {

Speaker Rank(int32_t rank) {
  Speaker speaker;
  speaker.rank = rank;
  speaker.process = {100 + rank, 1};
  return speaker;
}

SampleBatch Cpu(double seconds) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kProcess;
  batch.samples = {{SignalId::kCpuSeconds, seconds}};
  return batch;
}

Timestamp At(double second) {
  return {static_cast<int64_t>(second * 1e9)};
}

// Two ranks use `cores` for a minute, `meanwhile` seconds in a gap of 40 s, and the same as before.
StillSpan After(double cores, double meanwhile) {
  StillnessTracker tracker;
  for (int i = 0; i < 60; ++i) {
    for (int32_t rank = 0; rank < 2; ++rank)
      tracker.OnSamples(Cpu(cores * i), Rank(rank), At(100 + i + 0.01 * rank));
  }
  EXPECT_FALSE(tracker.newest().present());
  for (int32_t rank = 0; rank < 2; ++rank)
    tracker.OnSamples(Cpu(cores * 59 + meanwhile), Rank(rank), At(200 + 0.01 * rank));
  return tracker.newest();
}

TEST(StillnessTracker, RanksThatUsedNoCpuMeanwhileStoodStill) {
  const StillSpan span = After(1, 0.5);
  ASSERT_TRUE(span.present());
  EXPECT_EQ(span.ranks, 2);
  EXPECT_EQ(span.still, 2);
  EXPECT_NEAR(span.seconds(), 41, 0.1);
  EXPECT_NEAR(span.cpu_seconds, 1, 1e-9);
}

TEST(StillnessTracker, RanksThatWentOnDidNot) {
  EXPECT_EQ(After(1, 41).still, 0);
  EXPECT_EQ(After(1, 10).still, 0) << "they were slower";
}

TEST(StillnessTracker, RanksThatHardlyUseACpuTellNothing) {
  EXPECT_EQ(After(0.1, 0).ranks, 0);
}

TEST(StillnessTracker, AnotherProcessOfTheRankBeginsAnew) {
  StillnessTracker tracker;
  for (int i = 0; i < 60; ++i) tracker.OnSamples(Cpu(i), Rank(0), At(100 + i));
  Speaker next = Rank(0);
  next.process = {500, 1};
  tracker.OnSamples(Cpu(0), next, At(200));
  EXPECT_FALSE(tracker.newest().present());
}

TEST(StillnessTracker, TheKernelsWordOfTheNodeIsKept) {
  StillnessTracker tracker;
  Event event;
  event.type = WireType(EventType::kNodeGap);
  event.num = {{"elapsed_ms", 70000}, {"slept_ms", 2000}, {"switches", 9}};
  tracker.OnEvent(event, At(100));
  EXPECT_NEAR(tracker.node().seconds(), 70, 1e-9);
  EXPECT_NEAR(tracker.node().slept, 2, 1e-9);
  EXPECT_EQ(tracker.node().switches, 9);
  EXPECT_TRUE(std::isnan(tracker.node().usual));
}

// Fifty steps of 2 s, the last one at `end`.
StepClock Trained(Timestamp end) {
  StepClock clock;
  logs::Progress record;
  for (int step = 1; step <= 50; ++step) {
    record.step = step;
    record.step_text = std::to_string(step);
    clock.Add(record, end - Seconds(2 * (50 - step)));
  }
  return clock;
}

// After a gap all that was written in it comes at once.
TEST(StillnessTracker, StepsThatWentOnAreCounted) {
  StillnessTracker tracker;
  const StepClock clock = Trained(At(200));
  tracker.OnStep(51, clock, Seconds(1), At(202));
  EXPECT_FALSE(tracker.steps().present());
  tracker.OnStep(51, clock, Seconds(60), At(260));
  EXPECT_EQ(tracker.steps().seconds, 2);
  tracker.OnStep(80, clock, {}, At(260.1));
  EXPECT_EQ(tracker.steps().seconds, 60);
  tracker.OnStep(90, clock, {}, At(270));
  EXPECT_EQ(tracker.steps().seconds, 60);
}

}  // namespace
}  // namespace rankscope::windows
