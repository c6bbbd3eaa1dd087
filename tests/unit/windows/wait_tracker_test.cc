// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/wait_tracker.h"

#include <gtest/gtest.h>

#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"

namespace rankscope::windows {
namespace {

constexpr ProcessKey kProcess{101, 7};

Speaker Rank(int32_t rank = 0) {
  return {rank, rank, {101 + rank, 7}, -1, "python3"};
}

SampleBatch Second(WaitClass main, double running, double main_runnable = 0) {
  SampleBatch batch;
  batch.samples = {{SignalId::kRunningSeconds, static_cast<double>(running)},
                   {SignalId::kMainRunnableSeconds, static_cast<double>(main_runnable)},
                   {SignalId::kMainWaitClass, static_cast<double>(main)}};
  return batch;
}

Timestamp At(double seconds) {
  return {Seconds(seconds).ns};
}

TEST(WaitTracker, ItRemembersWhenAProcessLastRan) {
  WaitTracker tracker;
  for (int i = 0; i < 5; ++i)
    tracker.OnSamples(Second(WaitClass::kRunning, 0.6 * i), Rank(), At(100 + i));
  for (int i = 5; i < 20; ++i)
    tracker.OnSamples(Second(WaitClass::kSocket, 2.4 + 0.001 * i), Rank(), At(100 + i));
  const ProcessWaits& waits = tracker.processes().at(kProcess);
  EXPECT_TRUE(waits.has_run);
  EXPECT_EQ(waits.ran, At(104)) << "timers and watchdogs are no work";
  EXPECT_EQ(waits.count(), 19u);
  EXPECT_EQ(WaitClassOf(waits.newest(0).main), WaitClass::kSocket);
}

TEST(WaitTracker, AStopBeginsWhenItBegan) {
  WaitTracker tracker;
  SampleBatch stopped = Second(WaitClass::kStopped, 1);
  stopped.samples.push_back({SignalId::kMainWaitSeconds, 30});
  tracker.OnSamples(stopped, Rank(), At(100));
  EXPECT_EQ(tracker.processes().at(kProcess).stopped_since, At(70));
  tracker.OnSamples(Second(WaitClass::kRunning, 1), Rank(), At(101));
  EXPECT_EQ(tracker.processes().at(kProcess).stopped_since.ns, 0);
}

TEST(WaitTracker, TheStateOfProcfsIsEnoughForAStop) {
  WaitTracker tracker;
  SampleBatch state;
  state.samples = {{SignalId::kProcessState, 3}};
  tracker.OnSamples(state, Rank(), At(100));
  tracker.OnSamples(state, Rank(), At(105));
  EXPECT_EQ(tracker.processes().at(kProcess).stopped_since, At(100));
  state.samples = {{SignalId::kProcessState, 1}};
  tracker.OnSamples(state, Rank(), At(106));
  EXPECT_EQ(tracker.processes().at(kProcess).stopped_since.ns, 0);
}

TEST(WaitTracker, WorkersBelongToTheirRank) {
  WaitTracker tracker;
  tracker.OnSamples(Second(WaitClass::kFutex, 0), {-1, -1, {200, 9}, 1, "python3"}, At(1));
  tracker.OnSamples(Second(WaitClass::kFutex, 0), {-1, -1, {201, 9}, -1, "torchrun"}, At(1));
  ASSERT_EQ(tracker.processes().size(), 1u) << "a launcher is nobody's";
  EXPECT_TRUE(tracker.processes().begin()->second.worker);
  EXPECT_EQ(tracker.processes().begin()->second.rank, 1);
}

TEST(WaitTracker, WhatGrewWhileNobodyListenedIsOfNoSecond) {
  WaitTracker tracker;
  for (int i = 0; i < 10; ++i)
    tracker.OnSamples(Second(WaitClass::kSocket, i), Rank(), At(100 + i));
  const size_t before = tracker.processes().begin()->second.count();
  Speaker late = Rank();
  late.unheard_until = At(140);
  tracker.OnSamples(Second(WaitClass::kSocket, 10), late, At(140));
  EXPECT_EQ(tracker.processes().begin()->second.count(), before);
  tracker.OnSamples(Second(WaitClass::kSocket, 10.5), late, At(141));
  EXPECT_EQ(tracker.processes().begin()->second.count(), before + 1);
}

TEST(WaitTracker, TheCrowdIsBounded) {
  WaitTracker tracker;
  for (int32_t i = 0; i < static_cast<int32_t>(WaitTracker::kMost) + 10; ++i)
    tracker.OnSamples(Second(WaitClass::kFutex, 0), Rank(i), At(1));
  EXPECT_EQ(tracker.processes().size(), WaitTracker::kMost);
  tracker.OnSamples(Second(WaitClass::kFutex, 0), Rank(5000), At(60));
  EXPECT_TRUE(tracker.processes().contains(Rank(5000).process)) << "who is silent makes room";
}

TEST(WaitTracker, ItSurvivesItsOwnBytesAndDamagedOnes) {
  WaitTracker tracker;
  Event event;
  event.type = WireType(EventType::kThreadSnapshot);
  event.str = {{"wchan", "pipe_read"}, {"python", std::string(4096, 'x')}};
  event.num = {{"threads", 12}};
  tracker.OnEvent(event, Rank(), At(3));
  tracker.OnSamples(Second(WaitClass::kSocket, 1), Rank(), At(4));
  EXPECT_EQ(tracker.processes().at(kProcess).snapshot.python.size(), WaitTracker::kTextCap);
  ArchiveWriter writer;
  writer(tracker);
  std::string bytes = writer.Take();
  WaitTracker again;
  ArchiveReader reader(bytes);
  reader(again);
  ASSERT_TRUE(reader.Complete());
  EXPECT_EQ(again.processes().at(kProcess).snapshot.wchan, "pipe_read");
  for (size_t i = 0; i < bytes.size(); i += 7) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
    WaitTracker other;
    ArchiveReader broken(damaged);
    broken(other);
    for (const auto& [key, waits] : other.processes()) {
      for (size_t s = 0; s < waits.count(); ++s) (void)WaitClassOf(waits.newest(s).main);
    }
  }
}

}  // namespace
}  // namespace rankscope::windows
