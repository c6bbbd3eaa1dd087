// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The books of a job's checkpoints: what one save is, when the newest whole one was, what a failure
// would cost.
#include "detectors/windows/trackers/checkpoint_tracker.h"

#include <gtest/gtest.h>

#include <cmath>

#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"
#include "detectors/windows/checkpoint_summary.h"
#include "tests/unit/windows/fed_job.h"

namespace rankscope::windows {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;

Event Written(const std::string& name, int64_t bytes, double seconds, bool complete = true) {
  Event event;
  event.type = WireType(EventType::kCheckpointWritten);
  event.str = {{"name", name}};
  event.num = {{"bytes", bytes},
               {"microseconds", static_cast<int64_t>(seconds * 1e6)},
               {"complete", complete ? 1 : 0}};
  return event;
}

Timestamp At(double second) {
  return {static_cast<int64_t>((1000 + second) * 1e9)};
}

SampleBatch Free(double bytes) {
  SampleBatch batch;
  batch.samples = {{SignalId::kCheckpointFreeBytes, static_cast<double>(bytes)}};
  return batch;
}

TEST(CheckpointTracker, OneSaveOfManyFilesAndRanks) {
  CheckpointTracker tracker;
  for (int rank = 0; rank < 4; ++rank) {
    tracker.OnEvent(Written("iter_500/mp_rank_0" + std::to_string(rank), kGigabyte, 8), {rank},
                    At(10 + rank));
  }
  tracker.OnEvent(Written("latest.txt", 4, 0.001), {0}, At(14));
  EXPECT_EQ(tracker.saves(), 1);
  EXPECT_EQ(tracker.newest().files, 5);
  EXPECT_EQ(tracker.newest().bytes, 4 * kGigabyte + 4);
  EXPECT_DOUBLE_EQ(tracker.newest().seconds(), 12);
  EXPECT_TRUE(tracker.under_way(At(15)));
  EXPECT_FALSE(tracker.newest_whole(At(15)).present()) << "more may come";
  EXPECT_TRUE(tracker.newest_whole(At(17)).present());
}

TEST(CheckpointTracker, AFileIsKnownByItsFolderToo) {
  CheckpointTracker tracker;
  for (const char* folder : {"checkpoint-500", "checkpoint-1000"}) {
    Event event = Written("model.safetensors", kGigabyte, 1);
    event.str.push_back({"directory", folder});
    tracker.OnEvent(event, {0}, At(folder[11] == '5' ? 10 : 70));
  }
  EXPECT_EQ(tracker.newest().name, "checkpoint-1000/model.safetensors");
  EXPECT_NE(tracker.before().name, tracker.newest().name);
}

TEST(CheckpointTracker, IntervalsFromBeginToBegin) {
  CheckpointTracker tracker;
  EXPECT_TRUE(std::isnan(tracker.IntervalSeconds()));
  for (int save = 0; save < 5; ++save) {
    tracker.OnEvent(Written("step_" + std::to_string(save), kGigabyte, 5), {0},
                    At(100 * save + 5 + save % 2));
  }
  EXPECT_EQ(tracker.saves(), 5);
  EXPECT_NEAR(tracker.IntervalSeconds(), 100, 1.1);
}

// A file that was not finished leaves the save before it as the newest whole one.
TEST(CheckpointTracker, ATornFileIsNoCheckpoint) {
  CheckpointTracker tracker;
  tracker.OnEvent(Written("a.pt", kGigabyte, 1), {0}, At(10));
  tracker.OnEvent(Written("b.pt", kGigabyte / 2, 1, false), {3}, At(60));
  EXPECT_EQ(tracker.newest_whole(At(70)).name, "a.pt");
  EXPECT_TRUE(tracker.torn().present());
  EXPECT_EQ(tracker.torn().rank, 3);
  EXPECT_EQ(tracker.torn().bytes, kGigabyte / 2);
  tracker.OnEvent(Written("b.pt", kGigabyte, 1), {3}, At(120));
  EXPECT_FALSE(tracker.torn().present()) << "written anew";
}

// What old checkpoints give back when they are deleted is not lost.
TEST(CheckpointTracker, TheFileSystemFillsOrDoesNot) {
  CheckpointTracker fills, turns;
  for (int save = 0; save < 6; ++save) {
    const Timestamp t = At(60 * save + 1);
    fills.OnSamples(Free(100e9 - 10e9 * save), {}, t);
    fills.OnEvent(Written("step_" + std::to_string(save), 10 * kGigabyte, 1), {0}, t);
    turns.OnSamples(Free(save < 2 ? 100e9 - 10e9 * save : 80e9), {}, t);
    turns.OnEvent(Written("step_" + std::to_string(save), 10 * kGigabyte, 1), {0}, t);
  }
  EXPECT_NEAR(fills.LossPerInterval(), 10e9, 1e6);
  EXPECT_NEAR(turns.LossPerInterval(), 0, 1e6);
}

TEST(CheckpointTracker, StrangeNumbersStayInRange) {
  CheckpointTracker tracker;
  for (const int64_t number : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
    Event event = Written(std::string(100'000, 'x'), number, 0);
    event.num.push_back({"seconds", number});
    event.num[1].value = number;
    tracker.OnEvent(event, {0}, At(1));
  }
  tracker.OnSamples(Free(-5), {}, At(2));
  tracker.OnSamples(Free(NAN), {}, At(2));
  EXPECT_EQ(tracker.free_bytes(), -1);
  EXPECT_GE(tracker.newest().bytes, 0);
  EXPECT_LE(tracker.newest().name.size(), 1025u);
}

TEST(CheckpointTracker, IsTheSameWhenRestored) {
  CheckpointTracker tracker;
  for (int save = 0; save < 3; ++save)
    tracker.OnEvent(Written("s" + std::to_string(save), kGigabyte, 1), {0}, At(50 * save + 1));
  ArchiveWriter writer;
  writer(tracker);
  const std::string bytes = writer.Take();
  CheckpointTracker restored;
  ArchiveReader reader(bytes);
  reader(restored);
  EXPECT_TRUE(reader.Complete());
  EXPECT_EQ(restored.saves(), 3);
  EXPECT_EQ(restored.newest().name, "s2");
  EXPECT_DOUBLE_EQ(restored.IntervalSeconds(), tracker.IntervalSeconds());
}

class CheckpointSummaryTest : public JobWindowTest {
 protected:
  void Write(double second, const std::string& name, int64_t bytes = kGigabyte) {
    job_.OnEvent(Written(name, bytes, 1), {0}, At(second));
  }
};

TEST_F(CheckpointSummaryTest, WorkAtRiskIsSinceTheLastSaveTimesRanks) {
  StartRank(0, 11, 0, 0);
  StartRank(0, 12, 1, 0);
  ASSERT_EQ(job_.world_size(), 2);
  EXPECT_TRUE(std::isnan(SummarizeCheckpoints(job_, At(5)).work_at_risk_seconds));
  Say(10, Steps(1, 3));
  EXPECT_NEAR(SummarizeCheckpoints(job_, At(40)).work_at_risk_seconds, 60, 1e-6);
  Write(51, "step_3.pt");
  Say(60, Steps(4, 5));
  const CheckpointSummary summary = SummarizeCheckpoints(job_, At(90));
  EXPECT_TRUE(summary.files);
  EXPECT_TRUE(summary.saved);
  EXPECT_NEAR(summary.work_at_risk_seconds, 80, 1e-6) << "what it holds is of when it was begun";
  EXPECT_DOUBLE_EQ(summary.bytes, kGigabyte);
}

TEST_F(CheckpointSummaryTest, TextKnowsTimesAndNoBytes) {
  Say(10, Steps(1, 3));
  Say(20, "saving checkpoint to /scratch/run/step_3.pt\n");
  CheckpointSummary summary = SummarizeCheckpoints(job_, At(21));
  EXPECT_FALSE(summary.saved) << "begun, and nothing since";
  Say(26, "saved checkpoint to /scratch/run/step_3.pt at step 3\n");
  Say(30, Steps(4, 6));
  summary = SummarizeCheckpoints(job_, At(40));
  EXPECT_TRUE(summary.saved);
  EXPECT_FALSE(summary.files);
  EXPECT_NEAR(summary.seconds, 6, 1e-6);
  EXPECT_TRUE(std::isnan(summary.bytes));
  EXPECT_NEAR(summary.work_at_risk_seconds, 20, 1e-6);
}

}  // namespace
}  // namespace rankscope::windows
