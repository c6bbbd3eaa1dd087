// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whose job a run is, which jobs make room, and the attempts of one.
#include <gtest/gtest.h>

#include "tests/unit/engine/life.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

// --- whose job ---

TEST(Jobs, AnIdThatComesBackAfterItsEndIsAnotherJob) {
  Tape tape = Healthy();
  tape.Begin(15.1, {"python", "other.py"});
  tape.Say(15.2,
           "Traceback (most recent call last):\n  File \"/u/a.py\", line 1, in <module>\n"
           "ModuleNotFoundError: No module named 'apex'\n",
           2);
  tape.End(15.5, Exited(1));
  tape.Closed(15.6);
  tape.Finish(20);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.code(), "A1") << "60 steps of the earlier job are not its own";
  EXPECT_EQ(verdict.attempts_size(), 0);
  EXPECT_EQ(verdict.attempt().ordinal(), 1);
}

TEST(Jobs, ABeginToldTwiceIsOneJob) {
  Tape tape;
  tape.Begin(0.1);
  tape.Train(1, 1, 20, 0.1);
  tape.Begin(4.5);  // the wrapper has found the daemon again
  tape.Finish(6);
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  EXPECT_EQ(StatusOf(engine, "j1")->training.records, 20);
}

TEST(Jobs, MakeRoomForNewOnesOnlyWhenFinal) {
  Config config;
  config.max_jobs = 3;
  Engine engine(config, "n1");
  const auto begin = [&](const std::string& id, double second, bool end) {
    Tape tape(id);
    tape.Begin(second);
    if (end) {
      tape.End(second + 0.1, 0);
      tape.Closed(second + 0.1);
    }
    tape.Finish(0);
    Play(tape, engine, 0, tape.size());
  };
  begin("a", 1, true);
  engine.Tick(AtSecond(4));
  begin("b", 5, true);
  engine.Tick(AtSecond(8));
  begin("c", 9, false);
  engine.Tick(AtSecond(10));
  begin("d", 11, false);  // takes the place of a, final for longest
  engine.Tick(AtSecond(12));
  EXPECT_FALSE(engine.Find("a"));
  EXPECT_TRUE(engine.Find("b"));
  EXPECT_TRUE(engine.Find("d"));
  begin("e", 13, false);
  begin("f", 14, false);  // nobody is final any more
  engine.Tick(AtSecond(15));
  EXPECT_FALSE(engine.Find("b"));
  EXPECT_FALSE(StatusOf(engine, "f")->watched);
  EXPECT_EQ(engine.Jobs().size(), 3u + 1u);
  EXPECT_EQ(engine.counters().jobs_dropped, 1);
}

TEST(Jobs, AJobWithoutAWrapperEndsWithItsLastProcess) {
  Tape tape;
  for (int rank = 0; rank < 2; ++rank) {
    tape.Start(0.5, {100 + rank, 9}, {99, 8},
               {{"SLURM_JOB_ID", "j1"}, {"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"}});
  }
  tape.Exit(5.2, {100, 9}, 0);
  tape.Exit(6.2, {101, 9}, 0);
  tape.Finish(12);
  EXPECT_EQ(StateAt(tape, 6), proto::LIVE);
  EXPECT_EQ(StateAt(tape, 7), proto::PROVISIONAL);
  EXPECT_EQ(StateAt(tape, 12), proto::FINAL);
}

TEST(Attempts, AreListedWithWhatEndedThem) {
  Tape tape;
  tape.Begin(0.1, {"torchrun", "train.py"}, 2);
  for (int i = 0; i < 3; ++i) {
    tape.Train(1 + 5 * i, 1, 6, 0.1);
    tape.Say(2 + 5 * i,
             "Traceback (most recent call last):\n  File \"/u/train.py\", line 7, in <module>\n"
             "    step()\nIndexError: list index out of range\n",
             2);
    tape.Say(2.1 + 5 * i,
             "[default] Worker group FAILED. 2/3 attempts left; will restart worker group", 2);
  }
  tape.Train(20, 1, 60, 0.05);
  tape.End(25, 0);
  tape.Closed(25);
  tape.Finish(30);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.attempt().ordinal(), 4);
  EXPECT_EQ(verdict.code(), "G1") << "the last attempt is judged";
  ASSERT_EQ(verdict.attempts_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(verdict.attempts(i).attempt().ordinal(), i + 1);
    EXPECT_EQ(verdict.attempts(i).code(), "X1") << i;
    EXPECT_EQ(verdict.attempts(i).last_step(), 6);
  }
}

TEST(Attempts, OfAFileReadAtOnceAreAllListed) {
  Tape tape;
  tape.Begin(0.1);
  for (int i = 0; i < 3; ++i) {
    tape.Train(0.2, 1, 6 + i, 0);
    tape.Say(0.2, "[default] Worker group FAILED. 2/3 attempts left; will restart worker group");
  }
  tape.Train(0.2, 1, 60, 0);
  tape.Closed(0.2);
  tape.Finish(2);
  EXPECT_EQ(JudgeTape(tape).attempts_size(), 3);
}

}  // namespace
}  // namespace rankscope::engine
