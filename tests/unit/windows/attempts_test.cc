// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Attempts that only the text tells apart, and trainings in one text that are no attempts.
#include "tests/unit/windows/fed_job.h"

namespace rankscope::windows {
namespace {

constexpr char kRequeue[] =
    "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-02-03T04:05:06 DUE TO JOB REQUEUE ***\n";
constexpr char kNodeFailure[] =
    "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-02-03T04:05:06 DUE TO NODE FAILURE, SEE "
    "SLURMCTLD LOG FOR DETAILS ***\n";
constexpr char kSave[] = "saved checkpoint /ckpt/9.pt\n";
constexpr char kFinished[] = "training finished\n";

using AttemptsTest = JobWindowTest;

TEST_F(AttemptsTest, CrashedThenRestartedThenHealthy) {
  Say(1, kBanner + Steps(1, 9) + kTraceback);
  Say(5, kRestart);
  Say(6, kBanner + Steps(1, 30) + kFinished);
  EXPECT_EQ(job_.attempt().ordinal, 2);
  EXPECT_EQ(job_.now().progress, 30);
  for (const Candidate& candidate : job_.incidents().all()) EXPECT_EQ(candidate.attempt, 1);
}

TEST_F(AttemptsTest, ARequeueEndsTheAttemptThatItEnds) {
  Say(1, kBanner + Steps(1, 9) + kRequeue);
  EXPECT_EQ(job_.attempt().ordinal, 1);
  ASSERT_EQ(job_.incidents().all().size(), 1u);
  EXPECT_EQ(job_.incidents().all()[0].attempt, 1);
}

TEST_F(AttemptsTest, ARequeueAfterALostNodeIsOfTheSameAttempt) {
  Say(1, kBanner + Steps(1, 9) + kNodeFailure + kRequeue);
  ASSERT_EQ(job_.incidents().all().size(), 2u);
  for (const Candidate& candidate : job_.incidents().all()) EXPECT_EQ(candidate.attempt, 1);
  EXPECT_EQ(job_.attempt().ordinal, 1);
}

TEST_F(AttemptsTest, HealthyThenRequeuedThenCrashed) {
  Say(1, kBanner + Steps(1, 9) + kSave + kRequeue + kBanner + Steps(1, 5) + kTraceback);
  Flush(2);
  EXPECT_EQ(job_.attempt().ordinal, 2);
  EXPECT_EQ(job_.now().progress, 5);
  EXPECT_EQ(job_.incidents().all().front().attempt, 1) << "the requeue";
  EXPECT_EQ(job_.incidents().all().back().attempt, 2) << "the exception";
  ASSERT_EQ(job_.earlier().size(), 1u);
  EXPECT_EQ(job_.earlier()[0].progress, 9);
  EXPECT_EQ(job_.earlier()[0].highest_step, 9);
  EXPECT_EQ(job_.earlier()[0].saved.text, "/ckpt/9.pt");
  EXPECT_FALSE(job_.earlier()[0].finished);
}

TEST_F(AttemptsTest, StepsThatBeginAgainRightAfterADeath) {
  Say(1, Steps(1, 9) + kTraceback + "srun: error: n1: task 0: Exited with exit code 1\n" +
             Steps(1, 20));
  EXPECT_EQ(job_.attempt().ordinal, 2);
  EXPECT_EQ(job_.now().progress, 20);
}

TEST_F(AttemptsTest, StepsThatGoBackToACheckpointAfterTheSchedulersEnd) {
  Say(1, Steps(1, 30) + kNodeFailure + "resumed from step 20\n" + Steps(21, 60));
  EXPECT_EQ(job_.attempt().ordinal, 2);
  EXPECT_EQ(job_.now().progress, 40);
  ASSERT_EQ(job_.earlier().size(), 1u);
  EXPECT_EQ(job_.earlier()[0].highest_step, 30);
}

TEST_F(AttemptsTest, APeerThatLagsBehindTheSchedulersEndIsNoAttempt) {
  Say(1, Steps(1, 30) + kNodeFailure + Steps(28, 30));
  EXPECT_EQ(job_.attempt().ordinal, 1);
}

TEST_F(AttemptsTest, StepsThatGoBackAfterAnErrorThatNobodyElseTellsOfAreTheSameAttempt) {
  Say(1, Steps(1, 30) + kTraceback + Steps(21, 40));
  EXPECT_EQ(job_.attempt().ordinal, 1);
}

TEST_F(AttemptsTest, RecordsBehindATracebackAreNotCountedBeforeIt) {
  Say(1, Steps(1, 30) + kTraceback + Steps(31, 40));
  ASSERT_EQ(job_.incidents().all().size(), 1u);
  EXPECT_EQ(job_.incidents().all()[0].progress_before, 30);
}

TEST_F(AttemptsTest, AnInterruptIsSaidBeforeTheRecordsBehindIt) {
  Say(1, Steps(1, 30) +
             "Traceback (most recent call last):\n  File \"t.py\", line 9, in <module>\n" +
             "    main()\nKeyboardInterrupt\n" + Steps(1, 20));
  EXPECT_EQ(job_.attempt().ordinal, 2);
  EXPECT_EQ(job_.now().progress, 20);
}

TEST_F(AttemptsTest, StepsThatGoOnAfterAnErrorAreTheSameAttempt) {
  Say(1, Steps(1, 9) + kTraceback + Steps(10, 20));
  EXPECT_EQ(job_.attempt().ordinal, 1);
  EXPECT_EQ(job_.now().progress, 20);
}

TEST_F(AttemptsTest, StepsThatCountWithinEpochsBeginAgainAllTheTime) {
  Say(1, Steps(0, 9) + Steps(0, 9) + kTraceback + Steps(0, 9));
  EXPECT_EQ(job_.attempt().ordinal, 1);
  EXPECT_EQ(job_.now().clock.restarts(), 2);
}

TEST_F(AttemptsTest, ASecondTrainingWithoutADeathIsNoAttempt) {
  // Two sizes of a model, one after the other, in a loop of one program's.
  Say(1, Steps(0, 9) + Steps(0, 9));
  EXPECT_EQ(job_.attempt().ordinal, 1);
}

TEST_F(AttemptsTest, TheSameBannerTwiceIsTwoAttempts) {
  Say(1, kBanner + Steps(1, 9) + kSlurmKilled + kBanner + Steps(1, 4));
  EXPECT_EQ(job_.attempt().ordinal, 2);
  EXPECT_EQ(job_.now().progress, 4);
}

TEST_F(AttemptsTest, EarlierAttemptsAreBounded) {
  for (int i = 0; i < 100; ++i) Say(i, Steps(1, 3) + kRestart);
  EXPECT_EQ(job_.earlier().size(), Attempts::kMaxEarlier);
}

}  // namespace
}  // namespace rankscope::windows
