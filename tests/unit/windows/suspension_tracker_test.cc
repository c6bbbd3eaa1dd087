// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/suspension_tracker.h"

#include <gtest/gtest.h>

#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"
#include "detectors/model/wait_class.h"

namespace rankscope::windows {
namespace {

constexpr double kSleeps = 1, kStopped = 3;

Timestamp At(double seconds) {
  return {Seconds(seconds).ns};
}

// Pid 100 is the launcher, 101 ... are ranks.
Speaker Of(int32_t pid) {
  Speaker speaker;
  speaker.rank = pid == 100 ? -1 : pid - 101;
  speaker.process = {pid, 7};
  return speaker;
}

class Suspensions : public ::testing::Test {
 protected:
  void Tell(double second, int32_t pid, double state, int frozen = -1) {
    SampleBatch batch;
    batch.subject.kind = Subject::Kind::kProcess;
    batch.subject.process = {pid, 7};
    batch.samples = {{SignalId::kProcessState, state}};
    if (frozen >= 0)
      batch.samples.push_back({SignalId::kProcessFrozen, static_cast<double>(frozen)});
    tracker_.OnSamples(batch, Of(pid), At(second));
  }
  SuspendedBy By(double second) const {
    return tracker_.Suspended(At(second)) ? static_cast<SuspendedBy>(tracker_.current().by)
                                          : SuspendedBy::kNobody;
  }

  SuspensionTracker tracker_;
};

TEST_F(Suspensions, AFrozenCgroupSuspendsWhateverStateIsShown) {
  Tell(10, 101, kSleeps, 0);
  EXPECT_EQ(By(10), SuspendedBy::kNobody);
  Tell(11, 101, 0, 1);
  EXPECT_EQ(By(11), SuspendedBy::kFreezer);
  Tell(20, 101, 0, 1);
  EXPECT_EQ(tracker_.current().begin, At(11));
  EXPECT_EQ(tracker_.Within(At(0), At(18)), Seconds(7));
  Tell(21, 101, kSleeps, 0);
  EXPECT_EQ(By(21), SuspendedBy::kNobody);
  EXPECT_EQ(tracker_.Total(At(40)), Seconds(10));
  EXPECT_EQ(tracker_.Within(At(15), At(40)), Seconds(6));
  EXPECT_EQ(tracker_.times(), 1);
}

TEST_F(Suspensions, OneRankThatIsStoppedSuspendsNothing) {
  for (int pid : {100, 101, 102}) Tell(10, pid, kSleeps, 0);
  Tell(11, 101, kStopped, 0);
  EXPECT_EQ(By(11), SuspendedBy::kNobody);
  Tell(12, 101, kSleeps, 1);  // a cgroup of its own
  EXPECT_EQ(By(12), SuspendedBy::kNobody);
  EXPECT_FALSE(tracker_.Total(At(20)).ns > 0);
}

TEST_F(Suspensions, TheOnlyRankIsAloneAsLongAsItsLauncherRuns) {
  Tell(10, 100, kSleeps);
  Tell(10, 101, kStopped);
  EXPECT_EQ(By(10), SuspendedBy::kNobody);
  Tell(11, 100, kStopped);
  EXPECT_EQ(By(11), SuspendedBy::kSignal);
  EXPECT_EQ(tracker_.current().processes, 2);
  tracker_.OnProcessGone({100, 7}, At(12));
  EXPECT_EQ(By(12), SuspendedBy::kNobody) << "nobody is left to tell it from one that was stopped";
}

TEST_F(Suspensions, AllRanksThatAreStoppedAreSuspendedAndThoseThatAreTracedAreNot) {
  Tell(10, 101, kStopped);
  Tell(10, 102, kStopped);
  EXPECT_EQ(By(10), SuspendedBy::kSignal);
  Event event;
  event.process = {102, 7};
  event.type = WireType(EventType::kThreadStopped);
  event.str = {{"what", "traced"}, {"tracer", "gdb (pid 9)"}};
  tracker_.OnEvent(event, At(11));
  EXPECT_EQ(By(11), SuspendedBy::kNobody);
}

TEST_F(Suspensions, ARankThatBeginsMeanwhileRuns) {
  Tell(10, 101, kSleeps, 1);
  EXPECT_EQ(By(10), SuspendedBy::kFreezer);
  Tell(11, 102, kSleeps, 0);
  EXPECT_EQ(By(11), SuspendedBy::kNobody);
}

TEST_F(Suspensions, WhoTellsNoMoreIsNotBelieved) {
  Tell(10, 101, kSleeps, 1);
  EXPECT_EQ(By(19), SuspendedBy::kFreezer);
  EXPECT_EQ(By(30), SuspendedBy::kNobody);
  EXPECT_EQ(tracker_.Within(At(0), At(100)), Seconds(10));
}

TEST_F(Suspensions, TheNewestOfManyAreKeptAndTheSumOfAll) {
  for (int i = 0; i < 100; ++i) {
    Tell(10 * i + 1, 101, kSleeps, 1);
    Tell(10 * i + 3, 101, kSleeps, 0);
  }
  EXPECT_EQ(tracker_.past().size(), SuspensionTracker::kMostSpans);
  EXPECT_EQ(tracker_.times(), 100);
  EXPECT_EQ(tracker_.Total(At(2000)), Seconds(200));
  ArchiveWriter writer;
  writer(tracker_);
  const std::string bytes = writer.TakeSealed();
  SuspensionTracker back;
  ArchiveReader reader(*ArchiveReader::Unseal(bytes));
  reader(back);
  EXPECT_TRUE(reader.Complete());
  EXPECT_EQ(back.Total(At(2000)), Seconds(200));
}

TEST_F(Suspensions, TheTableOfProcessesIsBounded) {
  for (int i = 0; i < 5000; ++i) Tell(10, 101 + i, kSleeps, 0);
  Tell(11, 101, kSleeps, 1);
  EXPECT_EQ(By(11), SuspendedBy::kNobody);
}

}  // namespace
}  // namespace rankscope::windows
