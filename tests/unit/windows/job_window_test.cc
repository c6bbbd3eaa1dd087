// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Where one attempt ends and the next begins, told from text, from processes, and from both.
#include "tests/unit/windows/fed_job.h"

namespace rankscope::windows {
namespace {

TEST_F(JobWindowTest, OneRunIsOneAttempt) {
  Say(1, kBanner + Steps(1, 20));
  EXPECT_EQ(job_.attempt().ordinal, 1);
  EXPECT_EQ(job_.now().progress, 20);
  EXPECT_FALSE(job_.attempt_ended());
}

TEST_F(JobWindowTest, TheLaunchersRestartIsAnAttempt) {
  Say(1, kBanner + Steps(1, 9));
  Say(4, kRestart, 2);
  EXPECT_EQ(job_.attempt().ordinal, 2);
  ASSERT_TRUE(job_.attempt_ended());
  EXPECT_EQ(job_.previous().progress, 9);
  EXPECT_EQ(job_.previous_attempt().ordinal, 1);
  EXPECT_EQ(job_.previous_end(), At(4));
  EXPECT_EQ(job_.now().progress, 0);
}

TEST_F(JobWindowTest, RestartsBetweenTwoTicksAreAllRemembered) {
  for (int i = 0; i < 3; ++i) Say(i, Steps(1, 3 + i) + kRestart);
  EXPECT_EQ(job_.attempt().ordinal, 4);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(job_.attempt_ended());
    EXPECT_EQ(job_.previous_attempt().ordinal, i + 1);
    EXPECT_EQ(job_.previous().progress, 3 + i);
    job_.TakeEndedAttempt();
  }
  EXPECT_FALSE(job_.attempt_ended());
}

TEST_F(JobWindowTest, AStormOfRestartsIsBounded) {
  for (int i = 0; i < 1000; ++i) Say(i, kRestart);
  EXPECT_EQ(job_.attempt().ordinal, 1001);
  size_t kept = 0;
  for (; job_.attempt_ended(); ++kept) job_.TakeEndedAttempt();
  EXPECT_EQ(kept, Attempts::kMaxEnded);
}

// stderr is not buffered and stdout is: the dead program's beginning comes after its end.
TEST_F(JobWindowTest, BufferedTextAfterATracebackIsTheSameAttempt) {
  Say(1, kTraceback, 2);
  Flush(1.5);
  Say(2, kBanner + Steps(1, 9), 1);
  EXPECT_EQ(job_.attempt().ordinal, 1);
  EXPECT_EQ(job_.now().progress, 9);
}

TEST_F(JobWindowTest, ATrainingAfterAReportedDeathIsAnother) {
  Say(1, kBanner + Steps(1, 9));
  Say(2, kTraceback);
  Say(3, kSlurmKilled);
  Say(60, kBanner + Steps(1, 4));
  EXPECT_EQ(job_.attempt().ordinal, 2);
  EXPECT_EQ(job_.now().progress, 4);
}

TEST_F(JobWindowTest, ATrainingThatWasSeenBeforeAndBeginsAgainIsAnother) {
  Say(1, kBanner + Steps(1, 9) + kTraceback);
  Flush(4);  // silence, then the next training
  Say(5, kBanner + Steps(1, 1));
  EXPECT_EQ(job_.attempt().ordinal, 2);
  EXPECT_EQ(job_.now().progress, 1);
  ASSERT_TRUE(job_.attempt_ended());
  EXPECT_GE(job_.previous().progress, 9);
}

TEST_F(JobWindowTest, TwoTrainingsInOneFile) {
  Say(0, kBanner + Steps(1, 9) + kTraceback + kBanner + Steps(1, 12));
  EXPECT_EQ(job_.attempt().ordinal, 2);
  EXPECT_GE(job_.now().progress, 8) << "but for those that came while the exception was open";
  EXPECT_EQ(job_.incidents().all().front().attempt, 1);
}

TEST_F(JobWindowTest, ABannerAloneAfterADeathChangesNothing) {
  Say(1, Steps(1, 9) + kTraceback);
  Say(2, kBanner);
  EXPECT_EQ(job_.attempt().ordinal, 1);
  EXPECT_EQ(job_.now().progress, 9);
}

TEST_F(JobWindowTest, ASurvivedErrorIsNoEnd) {
  Say(1, kBanner + Steps(1, 9) + kTraceback + Steps(10, 30));
  EXPECT_EQ(job_.attempt().ordinal, 1);
  EXPECT_EQ(job_.now().progress, 30);
}

// What the launcher said of the first attempt must not be held against the second.
TEST_F(JobWindowTest, ReportsOfASuspectedAttemptStayWithTheOneThatDied) {
  Say(1, kTraceback, 2);
  Flush(1.2);
  Say(1.5, kBanner, 1);
  Say(2,
      "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 "
      "(pid: 402) of binary: /usr/bin/python3\n",
      2);
  Say(2.5, kRestart, 2);
  Flush(3);
  EXPECT_EQ(job_.attempt().ordinal, 2);
  ASSERT_FALSE(job_.incidents().all().empty());
  for (const Candidate& candidate : job_.incidents().all())
    EXPECT_EQ(candidate.attempt, 1) << candidate.incident.line;
}

// An exception is complete only lines after it was said; the restart may come first.
TEST_F(JobWindowTest, AnExceptionRightBeforeTheRestartBelongsToTheOneThatDied) {
  Say(1, kBanner + Steps(1, 5));
  Say(2, kTraceback + std::string(kRestart));
  Say(3, kBanner + Steps(1, 20));
  Flush(9);
  EXPECT_EQ(job_.attempt().ordinal, 2);
  ASSERT_EQ(job_.incidents().all().size(), 1u);
  EXPECT_EQ(job_.incidents().all()[0].attempt, 1);
  EXPECT_EQ(job_.incidents().all()[0].incident.t, At(2)) << "when it was said";
}

TEST_F(JobWindowTest, TextAndEnvironmentTellOfTheSameRestart) {
  StartRank(0.1, 401, 0, 0);
  StartRank(0.1, 402, 1, 0);
  Say(1, Steps(1, 5));
  Say(2, kRestart);
  StartRank(3, 411, 0, 1);
  StartRank(3, 412, 1, 1);
  EXPECT_EQ(job_.attempt().ordinal, 2);
  EXPECT_EQ(job_.attempt().elastic_restart, 1);
  Say(4, Steps(1, 5));
  StartRank(6, 421, 0, 2);  // this time the processes are seen first
  StartRank(6, 422, 1, 2);
  Say(7, kRestart);
  EXPECT_EQ(job_.attempt().ordinal, 3);
  EXPECT_EQ(job_.attempt().elastic_restart, 2);
}

TEST_F(JobWindowTest, EitherAloneTellsOfARestart) {
  StartRank(0.1, 401, 0, 0);
  StartRank(3, 411, 0, 1);
  StartRank(5, 421, 0, 2);
  EXPECT_EQ(job_.attempt().ordinal, 3);
  StartRank(7, 431, 0, 2, 1);
  EXPECT_EQ(job_.attempt().ordinal, 4) << "Slurm's requeue";
  EXPECT_EQ(job_.attempt().slurm_restart, 1);
}

TEST_F(JobWindowTest, AJobMetInTheMiddleHasNoEarlierAttempts) {
  StartRank(0.1, 401, 0, 3);
  StartRank(0.1, 402, 1, 3);
  EXPECT_EQ(job_.attempt().ordinal, 1);
  EXPECT_EQ(job_.attempt().elastic_restart, 3);
  Say(4, kRestart);
  EXPECT_EQ(job_.attempt().ordinal, 2);
}

// A run that nobody wraps: what starts its ranks is no launcher that is known.
class Unwrapped : public testing::Test {
 protected:
  attribution::ProcessInfo Rank(int32_t rank, int32_t world_size = 2) {
    attribution::ProcessInfo process;
    process.key = {200 + rank, 2000};
    process.role = attribution::ProcessRole::kRank;
    process.rank = rank;
    process.world_size = world_size;
    job_.OnProcessStart(process, false, {});
    return process;
  }
  void Exit(attribution::ProcessInfo process, int32_t wait_status, bool known = true) {
    process.status_known = known;
    process.wait_status = wait_status;
    job_.OnProcessExit(process, Timestamp{} + Seconds(10));
  }
  JobWindow job_{"8841", Timestamp{}};
};

TEST_F(Unwrapped, EndsAsAllItsRanksDo) {
  const auto first = Rank(0);
  const auto second = Rank(1);
  Exit(first, 0);
  EXPECT_FALSE(job_.end().ended);
  Exit(second, 0);
  EXPECT_TRUE(job_.end().ended);
  EXPECT_TRUE(job_.end().status_known);
  EXPECT_TRUE(job_.end().by_ranks);
  EXPECT_EQ(job_.end().wait_status, 0);
}

TEST_F(Unwrapped, OfRanksOfOtherNodesNothingIsKnown) {
  const auto first = Rank(0, 4);
  const auto second = Rank(1, 4);
  Exit(first, 0);
  Exit(second, 0);
  EXPECT_TRUE(job_.end().ended);
  EXPECT_FALSE(job_.end().status_known);
}

TEST_F(Unwrapped, OneRankThatFailedOrWasNotSeenToEndIsEnough) {
  for (const bool known : {true, false}) {
    JobWindow job{"8842", Timestamp{}};
    std::swap(job, job_);
    const auto first = Rank(0);
    const auto second = Rank(1);
    Exit(first, known ? 1 << 8 : 0, known);
    Exit(second, 0);
    EXPECT_TRUE(job_.end().ended);
    EXPECT_FALSE(job_.end().by_ranks) << known;
  }
}

TEST_F(JobWindowTest, StreamsAndRanksAreBounded) {
  LogLine line;
  line.text = "x";
  line.stream_name = "s";
  for (uint32_t stream = 0; stream < 10'000; ++stream) {
    line.stream = stream;
    job_.OnLine(line, At(1));
  }
  EXPECT_EQ(job_.streams().size(), JobWindow::kMaxStreams);
  SampleBatch batch;
  batch.samples = {{SignalId::kLoss, 1}};
  for (int32_t rank = -5; rank < 20'000; ++rank) job_.OnSample({rank, -1, {}}, batch, At(1));
  EXPECT_EQ(job_.ranks().size(), JobWindow::kMaxRanks);
  EXPECT_FALSE(job_.ranks().contains(-1));
}

TEST_F(JobWindowTest, SchedulerRecordsAreBounded) {
  SchedulerRecord record;
  record.state = "RUNNING";
  for (int i = 0; i < 10'000; ++i) {
    record.submit = record.start = 1'790'000'000 + i;
    job_.OnSchedulerRecord(record, {At(1), 1});
  }
  EXPECT_LE(job_.scheduler_marks().size(), JobWindow::kMaxSchedulerMarks);
  EXPECT_LE(job_.scheduler().runs().size(), windows::SchedulerHistory::kMostRuns);
  EXPECT_TRUE(job_.incidents().all().empty()) << "running is no incident";
}

TEST_F(JobWindowTest, DatesOfLinesThatWereReadLaterAreTheirTimes) {
  past_ = true;
  std::string text;
  for (int step = 0; step < 50; ++step) {
    char line[96];
    std::snprintf(line, sizeof line, "2026-03-02 12:%02d:%02d step %d loss 1.%d lr 0.01\n",
                  step * 2 / 60, step * 2 % 60, step, 900 - step);
    text += line;
  }
  Say(1, text);
  EXPECT_EQ(job_.now().progress, 50);
  EXPECT_DOUBLE_EQ(job_.now().clock.MedianStepSeconds(), 2);
  past_ = false;
  Say(31, "2026-03-02 13:00:00 step 50 loss 1.8 lr 0.01\n");
  EXPECT_DOUBLE_EQ(job_.now().clock.LongestRecordSeconds(), 2) << "a part of it was not observed";
}

// Five restarts in three days, read in one second, are no storm of the last half hour.
TEST_F(JobWindowTest, WhenAnAttemptOfThePastEndedIsNotKnown) {
  past_ = true;
  Say(1, Steps(1, 20) + kRestart + Steps(1, 20) + kRestart + Steps(1, 20));
  ASSERT_EQ(job_.earlier().size(), 2u);
  EXPECT_TRUE(job_.earlier()[0].past);
  past_ = false;
  Say(100, kRestart);
  ASSERT_EQ(job_.earlier().size(), 3u);
  EXPECT_FALSE(job_.earlier()[2].past);
}

}  // namespace
}  // namespace rankscope::windows
