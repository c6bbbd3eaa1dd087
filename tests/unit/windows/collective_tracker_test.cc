// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/collective_tracker.h"

#include <gtest/gtest.h>

#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"

namespace rankscope::windows {
namespace {

constexpr Speaker kRank{1, 1, {102, 1020}};

Timestamp At(double seconds) {
  return Timestamp{} + Seconds(seconds);
}

class CollectiveTrackerTest : public testing::Test {
 protected:
  void Say(double t, std::vector<Sample> samples, const Speaker& speaker = kRank) {
    SampleBatch batch;
    batch.subject.kind = Subject::Kind::kProcess;
    batch.subject.process = speaker.process;
    batch.samples = std::move(samples);
    tracker_.OnSamples(batch, speaker, At(t));
  }
  void Communicator(std::string what, int64_t ranks) {
    Event event;
    event.type = WireType(EventType::kCommunicator);
    event.str = {{"what", what}};
    event.num = {{"id", 7}, {"rank", 1}, {"nranks", ranks}};
    tracker_.OnEvent(event, kRank, At(1));
  }
  const RankCollective& rank() const { return tracker_.ranks().at(1); }

  CollectiveTracker tracker_;
};

TEST_F(CollectiveTrackerTest, CountsAndDatesWhatIsEnteredSinceItIsHeard) {
  Say(10, {{SignalId::kCollectivesEnqueued, 5000}, {SignalId::kCollectivesCompleted, 4990}});
  EXPECT_EQ(rank().entered(), 0);
  Say(11, {{SignalId::kCollectivesEnqueued, 5020}, {SignalId::kCollectivesCompleted, 5010}});
  Say(12, {{SignalId::kCollectivesEnqueued, 5020}, {SignalId::kCollectivesCompleted, 5020}});
  Say(13, {{SignalId::kCollectivesEnqueued, 5020}, {SignalId::kCollectivesCompleted, 5020}});
  EXPECT_EQ(rank().entered(), 20);
  EXPECT_EQ(rank().completed(), 30);
  EXPECT_EQ(rank().last_entered(), At(11));
  EXPECT_EQ(rank().last_advance(), At(12)) << "what was in flight ended";
}

TEST_F(CollectiveTrackerTest, PausesAreTimesBetweenAdvances) {
  double entered = 0;
  for (double t = 0; t < 60; t += 1) Say(t, {{SignalId::kCollectivesEnqueued, entered += 2}});
  Say(80, {{SignalId::kCollectivesEnqueued, entered += 2}});
  Say(81, {{SignalId::kCollectivesEnqueued, entered += 2}});
  EXPECT_NEAR(rank().pauses().longest, 21, 0.01);
  EXPECT_NEAR(rank().pauses().second, 1, 0.01) << "once is no habit";
  Say(99, {{SignalId::kCollectivesEnqueued, entered += 2}});
  EXPECT_NEAR(rank().pauses().second, 18, 0.01);
  EXPECT_NEAR(rank().pauses().Median(), 1, 0.01);
}

TEST_F(CollectiveTrackerTest, TheOldestInFlightAges) {
  Say(10, {{SignalId::kCollectivesInFlight, 2}, {SignalId::kOldestCollectiveSeconds, 0.3f}});
  EXPECT_NEAR(rank().FlightSeconds(At(40)), 30.3, 0.01);
  Say(41, {{SignalId::kCollectivesInFlight, 0}});
  EXPECT_EQ(rank().FlightSeconds(At(60)), 0);
}

TEST_F(CollectiveTrackerTest, AWatchdogAsksWhileItsQuestionsRise) {
  Say(10, {{SignalId::kEventQueries, 100}});
  EXPECT_FALSE(rank().ever_asked());
  Say(11, {{SignalId::kEventQueries, 110}});
  EXPECT_TRUE(rank().ever_asked());
  Say(20, {{SignalId::kEventQueries, 110}});
  EXPECT_EQ(rank().last_asked(), At(11));
}

TEST_F(CollectiveTrackerTest, ASequenceIsOnlyWhatTheNewestBatchSays) {
  Say(10, {{SignalId::kCollectivesEnqueued, 10}});
  EXPECT_LT(rank().sequence(), 0) << "its communicator's beginning was not seen";
  Say(11, {{SignalId::kCollectivesEnqueued, 12}, {SignalId::kCollectiveSequence, 20}});
  EXPECT_EQ(rank().sequence(), 20);
  Say(12, {{SignalId::kCollectivesEnqueued, 14}});
  EXPECT_LT(rank().sequence(), 0);
  Communicator("begun", 64);
  EXPECT_EQ(rank().ranks_of_largest(), 0) << "it may never come about";
  Communicator("created", 8);
  Communicator("created", 2);
  EXPECT_EQ(rank().ranks_of_largest(), 8);
}

TEST_F(CollectiveTrackerTest, WhatItWritesSinceItsLastCollective) {
  Say(10, {{SignalId::kCollectivesEnqueued, 10}});
  Say(10, {{SignalId::kWriteBytes, 1e9f}, {SignalId::kCpuSeconds, 70}});
  EXPECT_EQ(rank().written_since(), 0) << "written long before";
  Say(11, {{SignalId::kCollectivesEnqueued, 12}});
  Say(20, {{SignalId::kWriteBytes, 1.5e9f}, {SignalId::kCpuSeconds, 78}});
  EXPECT_NEAR(rank().written_since(), 0.5e9, 100);
  EXPECT_NEAR(rank().cpu_since(), 8, 0.01);
  Say(21, {{SignalId::kCollectivesEnqueued, 14}});
  EXPECT_EQ(rank().written_since(), 0);
}

TEST_F(CollectiveTrackerTest, IsBoundedAndGoesOnAfterARestore) {
  for (int rank = 0; rank < 5000; ++rank)
    Say(10, {{SignalId::kCollectivesEnqueued, 5}}, {rank, rank, {1000 + rank, 1}});
  EXPECT_EQ(tracker_.ranks().size(), CollectiveTracker::kMaxRanks);
  ArchiveWriter writer;
  writer(tracker_);
  CollectiveTracker restored;
  const std::string bytes = writer.Take();
  ArchiveReader reader(bytes);
  reader(restored);
  EXPECT_TRUE(reader.Complete());
  tracker_ = restored;
  Say(11, {{SignalId::kCollectivesEnqueued, 9}}, {1, 1, {1001, 1}});
  EXPECT_EQ(rank().entered(), 4);
  tracker_.OnProcessExit({1001, 1});
  EXPECT_FALSE(rank().alive());
}

TEST_F(CollectiveTrackerTest, AGapInObservingIsNoPause) {
  double entered = 0;
  for (double t = 0; t < 10; t += 1) Say(t, {{SignalId::kCollectivesEnqueued, entered += 2}});
  Speaker late = kRank;
  late.unheard_until = At(90);
  Say(90, {{SignalId::kCollectivesEnqueued, entered += 2}}, late);
  Say(91, {{SignalId::kCollectivesEnqueued, entered += 2}}, late);
  EXPECT_NEAR(rank().pauses().longest, 1, 0.01);
}

TEST_F(CollectiveTrackerTest, WhatIsInFlightIsUnknownUntilTheFirstIsSeenToBegin) {
  Say(10, {{SignalId::kCollectivesEnqueued, 0}, {SignalId::kCollectivesInFlight, 0}});
  Say(11, {{SignalId::kCollectivesEnqueued, 0}, {SignalId::kCollectivesInFlight, 0}});
  EXPECT_FALSE(rank().flight_known()) << "it may have stood in one when the probes came";
  Say(12, {{SignalId::kCollectivesEnqueued, 1}, {SignalId::kCollectivesInFlight, 1}});
  EXPECT_TRUE(rank().flight_known());
}

TEST_F(CollectiveTrackerTest, WhatWasInFlightStillIsWhenTheDaemonComesBack) {
  Say(10, {{SignalId::kCollectivesEnqueued, 70}, {SignalId::kCollectivesInFlight, 0}});
  Say(11, {{SignalId::kCollectivesEnqueued, 71},
           {SignalId::kCollectivesInFlight, 1},
           {SignalId::kOldestCollectiveSeconds, 0.5}});
  // Counted anew from here on.
  Say(60, {{SignalId::kCollectivesEnqueued, 0},
           {SignalId::kCollectivesInFlight, 0},
           {SignalId::kOldestCollectiveSeconds, 0}});
  EXPECT_EQ(rank().in_flight(), 1);
  EXPECT_NEAR(rank().FlightSeconds(At(61)), 50.5, 1e-6);
  Say(62, {{SignalId::kCollectivesEnqueued, 1},
           {SignalId::kCollectivesInFlight, 0},
           {SignalId::kOldestCollectiveSeconds, 0}});
  EXPECT_EQ(rank().in_flight(), 0) << "it has gone on";
}

}  // namespace
}  // namespace rankscope::windows
