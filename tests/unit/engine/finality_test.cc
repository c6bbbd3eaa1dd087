// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A verdict's life: live, provisional, final, amended; when it goes.
#include <gtest/gtest.h>

#include "detectors/model/event_types.h"
#include "tests/unit/engine/life.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

TEST(Finality, ProvisionalWithinATickOfTheEndAndFinalTwoSecondsAfterTheStreams) {
  Tape tape = Healthy();
  tape.Finish(20);
  EXPECT_EQ(StateAt(tape, 8.9), proto::LIVE);
  EXPECT_EQ(StateAt(tape, 9), proto::PROVISIONAL);
  EXPECT_EQ(StateAt(tape, 11), proto::PROVISIONAL) << "1.5 s after the streams closed";
  EXPECT_EQ(StateAt(tape, 12), proto::FINAL);
  EXPECT_EQ(StateAt(tape, 20), proto::FINAL);
}

TEST(Finality, StreamsThatNeverCloseDoNotHoldItForEver) {
  Tape tape;
  tape.Begin(0.1);
  tape.End(5.5, 0);
  tape.Finish(60);
  EXPECT_EQ(StateAt(tape, 35), proto::PROVISIONAL);
  EXPECT_EQ(StateAt(tape, 36), proto::FINAL);
  const proto::Verdict verdict = JudgeTape(tape);
  ASSERT_GE(verdict.data_quality().notes_size(), 1);
  EXPECT_NE(verdict.data_quality().notes(0).find("still open"), std::string::npos);
}

Event Followed(bool open, bool unread = false) {
  Event event;
  event.rank.job_id = "j1";
  event.rank.rank = -1;
  event.type = WireType(EventType::kOutputRead);
  event.num = {{"open", open ? 1 : 0}};
  if (unread) event.num.push_back({"unread", 1});
  return event;
}

const char* const kLastWords =
    "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
    "KeyError: 'late'\n";

// A run whose last words are read at `read`, long after its process has ended; 0 = they are not.
Tape RunWithAFile(double read) {
  Tape tape;
  tape.Begin(0.1);
  tape.Add(0.5, Followed(true));
  tape.Train(1, 1, 60, 0.1);
  tape.End(8.5, 1 << 8);
  tape.Closed(8.6);
  if (read > 0) {
    tape.Say(read, kLastWords);
    tape.Add(read + 0.01, Followed(false));
  }
  return tape;
}

TEST(Finality, WaitsForFilesThatAreFollowed) {
  Tape tape = RunWithAFile(20.5);
  tape.Finish(40);
  EXPECT_EQ(StateAt(tape, 20), proto::PROVISIONAL);
  EXPECT_EQ(StateAt(tape, 22), proto::PROVISIONAL);
  EXPECT_EQ(StateAt(tape, 23), proto::FINAL);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.code(), "X1");
  EXPECT_EQ(verdict.exception_type(), "KeyError");
  EXPECT_EQ(verdict.amended_by(), "");
}

TEST(Finality, AFileThatCannotBeReadDoesNotHoldItForEver) {
  Tape tape = RunWithAFile(0);
  tape.Finish(60);
  EXPECT_EQ(StateAt(tape, 38), proto::PROVISIONAL);
  EXPECT_EQ(StateAt(tape, 39), proto::FINAL) << "30 s";
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  const proto::DataQuality data = VerdictOf(engine).data_quality();
  ASSERT_EQ(data.notes_size(), 1);
  EXPECT_NE(data.notes(0).find("could not be read to their end"), std::string::npos);
  EXPECT_FALSE(data.exact());
}

TEST(Finality, WhatWasGivenUpIsTold) {
  Tape tape = RunWithAFile(0);
  tape.Add(15.5, Followed(false, true));
  tape.Finish(60);
  EXPECT_EQ(StateAt(tape, 18), proto::FINAL);
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  EXPECT_FALSE(VerdictOf(engine).data_quality().exact());
}

TEST(Finality, WhoFollowedAFileBeforeARestartIsGone) {
  Tape tape = RunWithAFile(0);
  Epoch again{1'750'000'000'000'000'000, 1000, "boot-1"};
  again.away_since = AtSecond(8.7);
  tape.Add(10.5, again);
  tape.Finish(60);
  EXPECT_EQ(StateAt(tape, 12), proto::FINAL);
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  EXPECT_FALSE(VerdictOf(engine).data_quality().notes_size() > 1);
}

TEST(Finality, LateTextChangesNothing) {
  Tape tape = Healthy();
  tape.Finish(14);
  const std::string before = VerdictToJson(JudgeTape(tape));
  Tape late = Healthy();
  late.Say(13.5,
           "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
           "ValueError: late\n",
           2);
  late.Add(13.6, SourceState{9, "kmsg", Availability::kDown, "gone", 0, Seconds(1)});
  late.Finish(30);
  EXPECT_EQ(VerdictToJson(JudgeTape(late)), before);
}

TEST(Finality, ASchedulersRecordAmends) {
  Tape tape;
  tape.Begin(0.1);
  tape.Train(1, 1, 20, 0.2);
  tape.End(8.5, Killed(15));
  tape.Closed(8.6);
  tape.State(15.5, "state", "PREEMPTED");
  tape.Finish(40);
  Engine engine({}, "n1");
  size_t at = PlayUntil(tape, engine, 0, 15);
  const proto::Verdict before = VerdictOf(engine);
  EXPECT_EQ(before.state(), proto::FINAL);
  EXPECT_EQ(before.code(), "X20");
  EXPECT_EQ(before.amended_by(), "");
  at = PlayUntil(tape, engine, at, 16);
  const proto::Verdict amended = VerdictOf(engine);
  EXPECT_EQ(amended.code(), "F2");
  EXPECT_EQ(amended.state(), proto::FINAL);
  EXPECT_EQ(amended.revision(), before.revision() + 1);
  EXPECT_EQ(amended.amended_by(), "scheduler record state=PREEMPTED from sacct");
  EXPECT_EQ(amended.tier(), proto::TIER_P);
  PlayUntil(tape, engine, at, 40);
  EXPECT_EQ(VerdictToJson(VerdictOf(engine)), VerdictToJson(amended)) << "and stays";
}

TEST(Finality, ARecordThatSaysNothingNewKeepsTheRevision) {
  Tape tape = Healthy();
  tape.State(15.5, "state", "COMPLETED");
  tape.State(16.5, "elapsed", "9");
  tape.Finish(20);
  Tape without = Healthy();
  without.Finish(20);
  EXPECT_EQ(JudgeTape(tape).revision(), JudgeTape(without).revision());
  EXPECT_EQ(JudgeTape(tape).amended_by(), "");
}

TEST(Finality, ReportsChangesOnce) {
  Tape tape = Healthy();
  tape.Finish(20);
  Engine engine({}, "n1");
  std::vector<proto::State> states;
  for (size_t i = 0; i < tape.size(); ++i) {
    if (std::holds_alternative<Tick>(tape[i].kind)) {
      if (!engine.Tick(tape[i].t).changed.empty()) states.push_back(VerdictOf(engine).state());
    } else {
      engine.Accept(tape[i]);
    }
  }
  ASSERT_GE(states.size(), 3u);
  EXPECT_EQ(std::count(states.begin(), states.end(), proto::PROVISIONAL), 1);
  EXPECT_EQ(std::count(states.begin(), states.end(), proto::FINAL), 1);
  EXPECT_EQ(states.back(), proto::FINAL);
}

TEST(Finality, AFinishedJobLeavesMemory) {
  Config config;
  config.forget_after_end = Seconds(10);
  Tape tape = Healthy();
  tape.Finish(30);
  Engine engine(config, "n1");
  size_t ended = 0;
  for (size_t i = 0; i < tape.size(); ++i) {
    if (std::holds_alternative<Tick>(tape[i].kind)) {
      ended += engine.Tick(tape[i].t).ended.size();
    } else {
      engine.Accept(tape[i]);
    }
  }
  EXPECT_EQ(ended, 1u);
  EXPECT_TRUE(engine.Jobs().empty());
}

// --- Slurm's jobs ---

constexpr ProcessKey kScript{100, 9}, kTask{101, 10}, kScriptAgain{200, 19}, kTaskAgain{201, 20};

// A batch script and its task, as slurmstepd starts them.
void StartAttempt(Tape& tape, double second, ProcessKey script, ProcessKey task, int restart) {
  std::vector<KeyValue> env = {{"SLURM_JOB_ID", "j1"},
                               {"SLURM_NODEID", "0"},
                               {"SLURMD_NODENAME", "n1"},
                               {"SLURM_RESTART_COUNT", std::to_string(restart)}};
  tape.Start(second, script, {1, 1}, env, {"bash", "script"});
  env.insert(env.end(), {{"SLURM_STEP_ID", "0"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}});
  tape.Start(second + 0.2, task, script, env);
}

void EndAttempt(Tape& tape, double second, ProcessKey script, ProcessKey task, int32_t status) {
  tape.Exit(second, task, status);
  tape.Exit(second + 0.1, script, status);
}

Tape OfSlurm(Availability slurm = Availability::kUp) {
  Tape tape;
  tape.Add(0.1, SourceState{17, "slurm", slurm, "", 0, Seconds(30)});
  StartAttempt(tape, 0.3, kScript, kTask, 0);
  EndAttempt(tape, 8.2, kScript, kTask, Killed(15));
  return tape;
}

TEST(FinalityOfSlurm, ItsWordIsWaitedFor) {
  Tape tape = OfSlurm();
  tape.Finish(40);
  EXPECT_EQ(StateAt(tape, 23), proto::PROVISIONAL);
  EXPECT_EQ(StateAt(tape, 24), proto::FINAL);
}

TEST(FinalityOfSlurm, AndNotWhereNobodyCanGiveIt) {
  for (const Availability slurm : {Availability::kDown, Availability::kNotApplicable}) {
    Tape tape = OfSlurm(slurm);
    tape.Finish(40);
    EXPECT_EQ(StateAt(tape, 11), proto::FINAL);
  }
  Tape other;  // beside Slurm, and none of its jobs
  other.Add(0.1, SourceState{17, "slurm", Availability::kUp, "", 0, Seconds(30)});
  other.Begin(0.2);
  other.End(8.3, 0);
  other.Closed(8.4);
  other.Finish(40);
  EXPECT_EQ(StateAt(other, 11), proto::FINAL);
}

TEST(FinalityOfSlurm, OnceItHasToldTheFirstFinalVerdictHasIt) {
  Tape tape = OfSlurm();
  tape.State(14.5, "state", "RUNNING");
  tape.State(16.5, "state", "PREEMPTED");
  tape.Finish(40);
  EXPECT_EQ(StateAt(tape, 18), proto::PROVISIONAL);
  Engine engine({}, "n1");
  PlayUntil(tape, engine, 0, 19);
  EXPECT_EQ(VerdictOf(engine).state(), proto::FINAL);
  EXPECT_EQ(VerdictOf(engine).code(), "F2");
  EXPECT_EQ(VerdictOf(engine).amended_by(), "");
}

TEST(FinalityOfSlurm, ARecordThatComesLateHoldsNothingUp) {
  Tape tape = OfSlurm();
  tape.State(22.8, "state", "PREEMPTED");
  tape.Finish(40);
  EXPECT_EQ(StateAt(tape, 25), proto::FINAL) << "2 s after 15 s at the latest";
}

// Slurm begins what it has requeued after two minutes, unless it is set up otherwise.
TEST(FinalityOfSlurm, ARequeuedAttemptIsTheSameJobsHoweverLate) {
  for (const double begin : {14.5, 130.5}) {
    Tape tape = OfSlurm();
    tape.State(12.5, "state", "PREEMPTED");
    StartAttempt(tape, begin, kScriptAgain, kTaskAgain, 1);
    tape.Train(begin + 1, 1, 60, 0.1);
    tape.Finish(begin + 60);
    Engine engine({}, "n1");
    size_t at = PlayUntil(tape, engine, 0, begin - 0.1);
    EXPECT_EQ(VerdictOf(engine).state() == proto::FINAL, begin > 100);
    at = PlayUntil(tape, engine, at, begin + 8);
    const proto::Verdict live = VerdictOf(engine);
    EXPECT_EQ(live.state(), proto::LIVE);
    EXPECT_EQ(live.attempt().ordinal(), 2);
    EXPECT_EQ(live.attempt().slurm_restart(), 1);
    ASSERT_EQ(live.attempts_size(), 1);
    EXPECT_EQ(live.attempts(0).code(), "F2");
    EXPECT_EQ(live.code(), "G1") << "what ended the first attempt is none of the second's";
    EXPECT_EQ(live.amended_by(), "");
    EXPECT_TRUE(StatusOf(engine, "j1")->running);
  }
}

TEST(FinalityOfSlurm, TheSecondAttemptEndsByItselfAndIsWaitedForAgain) {
  Tape tape = OfSlurm();
  tape.State(12.5, "state", "PREEMPTED");
  StartAttempt(tape, 130.5, kScriptAgain, kTaskAgain, 1);
  tape.Train(132, 1, 60, 0.1);
  EndAttempt(tape, 140.2, kScriptAgain, kTaskAgain, Killed(15));
  tape.State(150.5, "state", "PREEMPTED");  // again, as the first was
  tape.Finish(200);
  EXPECT_EQ(StateAt(tape, 150), proto::PROVISIONAL);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.state(), proto::FINAL);
  EXPECT_EQ(verdict.code(), "F2");
  ASSERT_EQ(verdict.attempts_size(), 1);
  EXPECT_EQ(verdict.attempts(0).code(), "F2");
}

TEST(FinalityOfSlurm, AScriptThatDiesBeforeItsRanksIsAnAttemptOfItsOwn) {
  Tape tape = OfSlurm();
  tape.State(12.5, "state", "PREEMPTED");
  tape.Start(130.5, kScriptAgain, {1, 1},
             {{"SLURM_JOB_ID", "j1"}, {"SLURMD_NODENAME", "n1"}, {"SLURM_RESTART_COUNT", "1"}},
             {"bash", "script"});
  tape.Exit(131.2, kScriptAgain, Exited(1));
  tape.Finish(160);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.attempt().ordinal(), 2);
  EXPECT_NE(verdict.code(), "F2");
  ASSERT_EQ(verdict.attempts_size(), 1);
  EXPECT_EQ(verdict.attempts(0).code(), "F2");
}

}  // namespace
}  // namespace rankscope::engine
