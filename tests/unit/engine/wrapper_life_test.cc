// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A job under its wrapper: requeued there, and after the wrapper is gone.
#include <gtest/gtest.h>

#include "tests/unit/engine/life.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

// --- requeued under the wrapper ---

void WrapAttempt(Tape& tape, double second, int restart, ProcessKey root, int32_t status) {
  RunMark mark;
  mark.job_id = tape.job_id();
  mark.what = RunMark::What::kBegin;
  mark.argv = {"python", "train.py"};
  mark.world_size = 1;
  mark.root = root;
  mark.slurm_restart = restart;
  tape.Add(second, mark);
  tape.Start(
      second + 0.1, root, {49, 1},
      {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"SLURM_RESTART_COUNT", std::to_string(restart)}});
  tape.RewindText();
  tape.Train(second + 1, 1, 60, 0.1);
  tape.Exit(second + 8, root, status);
  tape.End(second + 8.1, status);
  tape.Closed(second + 8.2);
}

TEST(RequeuedUnderTheWrapper, TheFirstAttemptIsRemembered) {
  for (const double second : {12.0, 150.0}) {  // before and after the first verdict is final
    Tape tape;
    WrapAttempt(tape, 0.1, 0, {50, 1}, Killed(9));
    WrapAttempt(tape, second, 1, {60, 2}, Exited(0));
    tape.Finish(second + 30);
    EXPECT_EQ(StateAt(tape, second + 5), proto::LIVE);
    const proto::Verdict verdict = JudgeTape(tape);
    EXPECT_EQ(verdict.state(), proto::FINAL);
    EXPECT_EQ(verdict.code(), "G1");
    EXPECT_EQ(verdict.attempt().ordinal(), 2);
    EXPECT_EQ(verdict.attempt().slurm_restart(), 1);
    ASSERT_EQ(verdict.attempts_size(), 1);
    EXPECT_EQ(verdict.attempts(0).code(), "A2");
    EXPECT_EQ(verdict.attempts(0).last_step(), 60);
  }
}

TEST(RequeuedUnderTheWrapper, AlsoWhereItsScriptIsSeenFirst) {
  Tape tape;
  WrapAttempt(tape, 0.1, 0, {50, 1}, Killed(15));
  tape.Start(149, {200, 19}, {1, 1},
             {{"SLURM_JOB_ID", "j1"}, {"SLURMD_NODENAME", "n1"}, {"SLURM_RESTART_COUNT", "1"}},
             {"bash", "script"});
  WrapAttempt(tape, 150, 1, {60, 2}, Exited(0));
  tape.Finish(180);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.attempt().ordinal(), 2);
  EXPECT_EQ(verdict.attempts_size(), 1);
}

TEST(RequeuedUnderTheWrapper, AWrapperThatWasKilledHasHadAnAttemptToo) {
  Tape tape;
  tape.Begin(0.1, {"python", "train.py"}, 1, {50, 1});
  tape.Train(1, 1, 60, 0.1);
  tape.Lost(8.5);
  WrapAttempt(tape, 30, 1, {60, 2}, Exited(0));
  tape.Finish(60);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.state(), proto::FINAL);
  EXPECT_EQ(verdict.attempt().ordinal(), 2);
  EXPECT_EQ(verdict.attempts_size(), 1);
}

TEST(RequeuedUnderTheWrapper, OfRunsElsewhereNothingIsInvented) {
  Tape tape;
  WrapAttempt(tape, 0.1, 3, {50, 1}, Exited(0));
  tape.Finish(30);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.attempt().ordinal(), 1);
  EXPECT_EQ(verdict.attempt().slurm_restart(), 3);
  EXPECT_EQ(verdict.attempts_size(), 0);
}

TEST(RequeuedUnderTheWrapper, TwoWrappersOfOneScriptAreTwoJobs) {
  Tape tape;
  WrapAttempt(tape, 0.1, 1, {50, 1}, Exited(1));
  WrapAttempt(tape, 20, 1, {60, 2}, Exited(0));
  tape.Finish(60);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.attempt().ordinal(), 1);
  EXPECT_EQ(verdict.attempts_size(), 0) << "the first command is none of the second's attempts";
}

// --- the wrapper is gone ---

TEST(WrapperLost, WithoutAnybodyElseItIsOver) {
  Tape tape;
  tape.Begin(0.1);
  tape.Train(1, 1, 6);
  tape.Lost(8.5);
  tape.Finish(14);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.state(), proto::FINAL);
  EXPECT_EQ(verdict.code(), "U0");
  EXPECT_EQ(verdict.sub(), "wrapper_lost");
  EXPECT_FALSE(verdict.exit_known());
}

Tape LostWithProcesses() {
  Tape tape;
  tape.Begin(0.1, {"python", "train.py"}, 1, {50, 1});
  tape.Start(0.2, {50, 1}, {49, 1}, {{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  tape.Train(1, 1, 6);
  tape.Lost(8.5);
  return tape;
}

TEST(WrapperLost, WhileProcessesLiveTheJobLives) {
  Tape tape = LostWithProcesses();
  tape.Finish(30);
  EXPECT_EQ(JudgeTape(tape).state(), proto::LIVE);
}

TEST(WrapperLost, TheKernelTellsHowTheCommandEnded) {
  Tape tape = LostWithProcesses();
  tape.Exit(20.5, {50, 1}, Killed(9));
  tape.Finish(24);
  EXPECT_EQ(StateAt(tape, 21), proto::PROVISIONAL);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.state(), proto::FINAL);
  EXPECT_EQ(verdict.code(), "A2");
  EXPECT_TRUE(verdict.exit_known());
  EXPECT_EQ(verdict.exit_code(), 137);
}

TEST(WrapperLost, AnExitWithoutAStatusIsAnEndWithoutAStatus) {
  Tape tape = LostWithProcesses();
  tape.Exit(20.5, {50, 1}, 0, false);
  tape.Finish(24);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.state(), proto::FINAL);
  EXPECT_FALSE(verdict.exit_known());
}

}  // namespace
}  // namespace rankscope::engine
