// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/launch_tracker.h"

#include <gtest/gtest.h>

#include <cmath>

#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"

namespace rankscope::windows {
namespace {

constexpr Speaker kRank{3, 3, {103, 1030}};

Timestamp At(double seconds) {
  return Timestamp{} + Seconds(seconds);
}

class LaunchTrackerTest : public testing::Test {
 protected:
  void Say(double t, std::vector<Sample> samples, const Speaker& speaker = kRank) {
    SampleBatch batch;
    batch.subject.kind = Subject::Kind::kProcess;
    batch.subject.process = speaker.process;
    batch.samples = std::move(samples);
    tracker_.OnSamples(batch, speaker, At(t));
  }
  // A second of a rank that launches `rate` kernels and waits for the card `sync` of it.
  void Run(double from, int seconds, double rate, double sync) {
    for (int i = 0; i < seconds; ++i) {
      launches_ += rate;
      sync_ += sync;
      syncs_ += rate / 40;
      Say(from + i, {{SignalId::kKernelLaunches, launches_},
                     {SignalId::kCudaSyncSeconds, sync_},
                     {SignalId::kOldestSyncSeconds, 0},
                     {SignalId::kSyncCalls, syncs_},
                     {SignalId::kLastLaunchAge, 0.01f}});
    }
  }
  const RankCalls& rank() const { return tracker_.ranks().at(3); }

  LaunchTracker tracker_;
  double launches_ = 1e6;  // counting began long before this rank was heard
  double sync_ = 500;
  double syncs_ = 25'000;
};

TEST_F(LaunchTrackerTest, CountsWhatIsLaunchedSinceItIsHeard) {
  Run(100, 1, 40, 0.1f);
  EXPECT_EQ(rank().launches(), 0) << "the first total is where it begins";
  Run(101, 9, 40, 0.1f);
  EXPECT_EQ(rank().launches(), 360);
  EXPECT_TRUE(rank().launched());
  EXPECT_NEAR((At(109) - rank().last_launch()).seconds(), 0.01, 1e-6);
}

TEST_F(LaunchTrackerTest, ATotalThatFallsBeginsAnew) {
  Run(100, 10, 40, 0.1f);
  launches_ = 0;
  Run(110, 1, 40, 0.1f);
  EXPECT_EQ(rank().launches(), 360);
  Run(111, 1, 40, 0.1f);
  EXPECT_EQ(rank().launches(), 400);
}

TEST_F(LaunchTrackerTest, AnotherProcessOfTheRankHasNothingOfTheFirst) {
  Run(100, 10, 40, 0.1f);
  Say(111, {{SignalId::kKernelLaunches, 5}}, {3, 3, {203, 2030}});
  EXPECT_EQ(rank().launches(), 0);
  EXPECT_EQ(rank().process().pid, 203);
}

TEST_F(LaunchTrackerTest, PiecesOfTenSecondsHoldSharesOfTheWall) {
  Run(100, 21, 400, 0.25f);
  ASSERT_EQ(rank().pieces().size(), 2u);
  const LaunchPiece& piece = rank().pieces()[1];
  EXPECT_EQ(piece.index, 11);
  EXPECT_FLOAT_EQ(piece.wall_seconds, 10);
  EXPECT_FLOAT_EQ(piece.launches, 4000);
  EXPECT_NEAR(piece.sync_seconds, 2.5, 0.01);
  EXPECT_FLOAT_EQ(piece.sync_calls, 100);
}

TEST_F(LaunchTrackerTest, LaunchesCountedPartOfTheTimeStandForAllOfIt) {
  for (int i = 0; i < 21; ++i) {
    Say(100 + i, {{SignalId::kKernelLaunches, static_cast<double>(100 * i)},
                  {SignalId::kCountedShare, 0.1f}});
  }
  EXPECT_EQ(rank().launches(), 2000) << "as counted";
  ASSERT_EQ(rank().pieces().size(), 2u);
  EXPECT_NEAR(rank().pieces()[1].launches, 10'000, 1);
  EXPECT_NEAR(rank().pieces()[1].counted_share, 0.1, 1e-6);
  EXPECT_EQ(rank().pieces()[1].timed_share, 1);
}

TEST_F(LaunchTrackerTest, APieceIsTimedOnlyWhereAllOfItIs) {
  for (int i = 0; i < 21; ++i) {
    Say(100 + i, {{SignalId::kKernelLaunches, static_cast<double>(i)},
                  {SignalId::kTimedShare, i == 15 ? 0.0f : 1.0f}});
  }
  ASSERT_EQ(rank().pieces().size(), 2u);
  EXPECT_EQ(rank().pieces()[0].timed_share, 1);
  EXPECT_EQ(rank().pieces()[1].timed_share, 0);
}

TEST_F(LaunchTrackerTest, ASynchronisationThatDoesNotComeBackCountsWhileItLasts) {
  Run(100, 10, 40, 0.1f);
  EXPECT_EQ(rank().SyncSeconds(At(110)), 0);
  for (int i = 1; i <= 30; ++i) {
    Say(109 + i, {{SignalId::kKernelLaunches, launches_},
                  {SignalId::kCudaSyncSeconds, sync_ + static_cast<double>(i)},
                  {SignalId::kOldestSyncSeconds, static_cast<double>(i)}});
  }
  EXPECT_NEAR(rank().SyncSeconds(At(141)), 32, 0.01) << "and grows between two batches";
  EXPECT_NEAR(rank().pieces()[1].sync_seconds, 10, 0.1);
  // It comes back: its time was counted already.
  sync_ += 31;
  Say(141, {{SignalId::kKernelLaunches, launches_ + 40},
            {SignalId::kCudaSyncSeconds, sync_},
            {SignalId::kOldestSyncSeconds, 0},
            {SignalId::kLastLaunchAge, 0}});
  EXPECT_EQ(rank().SyncSeconds(At(141)), 0);
  EXPECT_EQ(rank().current().stalls, 0) << "waiting for the card is no stall of the host";
  EXPECT_NEAR(rank().pauses().longest, 31, 1.1);
}

TEST_F(LaunchTrackerTest, APauseInNoCallIsAStall) {
  Run(100, 10, 40, 0.1f);
  for (int i = 0; i < 4; ++i) Say(110 + i, {{SignalId::kKernelLaunches, launches_}});
  Run(114, 1, 40, 0.1f);
  EXPECT_EQ(rank().current().stalls, 1);
  EXPECT_NEAR(rank().current().stall_seconds, 4, 0.3);
}

TEST_F(LaunchTrackerTest, AGapWithinASecondIsSeenByItsOwnNumber) {
  Run(100, 10, 40, 0.1f);
  launches_ += 40;
  Say(112.5, {{SignalId::kKernelLaunches, launches_},
              {SignalId::kLastLaunchAge, 0.1f},
              {SignalId::kLargestLaunchGapSeconds, 3.2f}});
  EXPECT_EQ(rank().current().stalls, 1);
  EXPECT_NEAR(rank().pauses().longest, 3.2, 0.01);
  // The largest gap there ever was is no pause of now.
  launches_ += 40;
  Say(113.5, {{SignalId::kKernelLaunches, launches_},
              {SignalId::kLastLaunchAge, 0.1f},
              {SignalId::kLargestLaunchGapSeconds, 3.2f}});
  EXPECT_EQ(rank().current().stalls, 1);
}

TEST_F(LaunchTrackerTest, ARefusedAllocationBeforeItWasHeardIsOne) {
  Say(100, {{SignalId::kKernelLaunches, 5},
            {SignalId::kAllocationFailures, 1},
            {SignalId::kLastFailedAllocationBytes, 96636764160.f}});
  EXPECT_EQ(rank().allocation_failures(), 1);
  EXPECT_EQ(rank().last_failed_bytes(), 96636764160.0);
  EXPECT_EQ(rank().launches_since_failure(), 0);
  Say(101, {{SignalId::kKernelLaunches, 45}, {SignalId::kAllocationFailures, 1}});
  EXPECT_EQ(rank().launches_since_failure(), 40) << "it went on";
}

TEST_F(LaunchTrackerTest, AnEventNamesTheCall) {
  Event event;
  event.type = WireType(EventType::kAllocationFailed);
  event.str = {{"call", "cuMemAlloc_v2"}};
  event.num = {{"bytes", 17179869184}, {"result", 2}};
  tracker_.OnEvent(event, kRank, At(100));
  EXPECT_EQ(rank().failed_call(), "cuMemAlloc_v2");
  EXPECT_EQ(rank().last_failed_bytes(), 17179869184.0);
  EXPECT_EQ(rank().allocation_failures(), 1);
  Say(101, {{SignalId::kKernelLaunches, 5}, {SignalId::kAllocationFailures, 1}});
  EXPECT_EQ(rank().allocation_failures(), 1) << "the total tells of the same one";
}

TEST_F(LaunchTrackerTest, NumbersThatAreNoneAreLeftOut) {
  Run(100, 10, 40, 0.1f);
  Say(110, {{SignalId::kKernelLaunches, NAN},
            {SignalId::kOldestSyncSeconds, -1},
            {SignalId::kCudaSyncSeconds, INFINITY}});
  EXPECT_EQ(rank().launches(), 360);
  EXPECT_EQ(rank().SyncSeconds(At(111)), 0);
  Say(110, {{SignalId::kKernelLaunches, 5}}, {-1, -1, {99, 990}});
  EXPECT_EQ(tracker_.ranks().size(), 1u) << "a process that is no rank";
}

TEST_F(LaunchTrackerTest, IsBounded) {
  for (int rank = 0; rank < 5000; ++rank)
    Say(100, {{SignalId::kKernelLaunches, 5}}, {rank, rank, {1000 + rank, 1}});
  EXPECT_EQ(tracker_.ranks().size(), LaunchTracker::kMaxRanks);
}

TEST_F(LaunchTrackerTest, GoesOnAfterARestore) {
  Run(100, 25, 40, 0.3f);
  ArchiveWriter writer;
  writer(tracker_);
  LaunchTracker restored;
  const std::string bytes = writer.Take();
  ArchiveReader reader(bytes);
  reader(restored);
  EXPECT_TRUE(reader.Complete());
  tracker_ = restored;
  Run(125, 5, 40, 0.3f);
  EXPECT_EQ(rank().launches(), 29 * 40);
  EXPECT_EQ(rank().pieces().size(), 2u);
}

}  // namespace
}  // namespace rankscope::windows
