// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is asked of the scheduler, and what its answers do.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/engine/driver.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

constexpr ProcessKey kTask{401, 11}, kLauncher{400, 10};

// A rank of job 77 on the node that has this number.
Tape OnNode(const char* node_id) {
  Tape tape("77");
  tape.Start(0.2, kLauncher, {1, 1},
             {{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}, {"SLURM_NODEID", node_id}},
             {"torchrun", "train.py"});
  tape.Start(0.5, kTask, kLauncher,
             {{"SLURM_JOB_ID", "77"},
              {"SLURM_STEP_ID", "0"},
              {"SLURM_NODEID", node_id},
              {"RANK", "0"},
              {"WORLD_SIZE", "1"}});
  tape.Train(1, 1, 20, 0.5);
  return tape;
}

void EndBy(Tape& tape, double second, int32_t wait_status) {
  tape.Exit(second, kTask, wait_status);
  tape.Exit(second + 0.1, kLauncher, wait_status);
}

// The requests of all ticks, as "what@second".
std::vector<std::string> Requests(const Tape& tape) {
  Engine engine({}, "n1");
  std::vector<std::string> told;
  for (size_t i = 0; i < tape.size(); ++i) {
    if (!std::holds_alternative<Tick>(tape[i].kind)) {
      engine.Accept(tape[i]);
      continue;
    }
    for (const Request& request : engine.Tick(tape[i].t).requests) {
      if (!request.what.starts_with("scheduler_")) continue;
      EXPECT_EQ(request.job_id, "77");
      EXPECT_GT(request.deadline, tape[i].t);
      told.push_back(request.what + "@" +
                     std::to_string(static_cast<int>((tape[i].t - AtSecond(0)).seconds() + 0.5)));
    }
  }
  return told;
}

using Words = std::vector<std::string>;

TEST(SchedulerRequests, OnceAtTheBeginAndOnceAtABadEnd) {
  Tape tape = OnNode("0");
  EndBy(tape, 12, 9);
  tape.Finish(40);
  EXPECT_EQ(Requests(tape), (Words{"scheduler_begin@1", "scheduler_end@13"}));
}

TEST(SchedulerRequests, NoneOnTheOtherNodes) {
  Tape tape = OnNode("1");
  EndBy(tape, 12, 9);
  tape.Finish(40);
  EXPECT_EQ(Requests(tape), Words{});
}

TEST(SchedulerRequests, NoneForAGoodEnd) {
  Tape tape = OnNode("0");
  EndBy(tape, 12, 0);
  tape.Finish(40);
  EXPECT_EQ(Requests(tape), Words{"scheduler_begin@1"});
}

TEST(SchedulerRequests, NoneForARunWithoutSlurm) {
  Tape tape;
  tape.Begin(0.1, {"torchrun", "train.py"}, 1, kLauncher);
  tape.StartRank(0.5, kTask, kLauncher, 0, 1);
  tape.Train(1, 1, 20, 0.5);
  EndBy(tape, 12, 9);
  tape.Finish(40);
  EXPECT_EQ(Requests(tape), Words{});
}

proto::FamilyState::S StateOf(const proto::Verdict& verdict, std::string_view code) {
  for (const proto::FamilyState& family : verdict.families()) {
    if (family.code() == code) return family.state();
  }
  return proto::FamilyState::S_UNSPECIFIED;
}

// What a scheduler that could be asked has not told rules nothing out.
TEST(SchedulerFacts, OnlyWhatWasToldRulesOut) {
  SourceState slurm;
  slurm.source = 19;
  slurm.name = "slurm";
  slurm.state = Availability::kUp;
  const auto judged = [&](const char* state) {
    Tape tape = OnNode("0");
    tape.Add(0.1, slurm);
    EndBy(tape, 12, 15);
    if (state != nullptr) tape.State(14, "state", state);
    tape.Finish(20);
    Engine engine({}, "n1");
    Play(tape, engine, 0, tape.size());
    return StateOf(engine.Find("77")->verdict, "F3");
  };
  EXPECT_EQ(judged(nullptr), proto::FamilyState::NOT_DECIDABLE);
  EXPECT_EQ(judged("RUNNING"), proto::FamilyState::NOT_DECIDABLE);
  EXPECT_EQ(judged("FAILED"), proto::FamilyState::RULED_OUT);
}

TEST(SchedulerFacts, WhoCancelledIsSaidAndNotAskedFor) {
  const auto judged = [](const char* state) {
    Tape tape = OnNode("0");
    EndBy(tape, 12, 15);
    tape.State(14, "state", state);
    tape.Finish(20);
    Engine engine({}, "n1");
    Play(tape, engine, 0, tape.size());
    return engine.Find("77")->verdict;
  };
  const proto::Verdict by = judged("CANCELLED by 1042");
  EXPECT_EQ(by.code(), "X20");
  EXPECT_EQ(by.sub(), "cancelled");
  ASSERT_GT(by.implies_size(), 0);
  EXPECT_EQ(by.implies(0).text(), "uid 1042 cancelled the run");
  for (const proto::Open& open : by.cannot_decide())
    EXPECT_NE(open.question(), "who asked for the end");
  const proto::Verdict mute = judged("CANCELLED");
  EXPECT_EQ(mute.sub(), "cancelled");
  EXPECT_TRUE(std::any_of(
      mute.cannot_decide().begin(), mute.cannot_decide().end(),
      [](const proto::Open& open) { return open.question() == "who asked for the end"; }));
}

// Read late, it is still the record of an earlier moment.
TEST(SchedulerFacts, ARecordHasTheTimeThatItTells) {
  Tape tape = OnNode("0");
  EndBy(tape, 12, 15);
  SchedulerFact fact;
  fact.job_id = "77";
  fact.field = "state";
  fact.value = "PREEMPTED";
  fact.origin = "sacct";
  fact.wall_ns = AtSecond(11.5).ns + 1'750'000'000'000'000'000;
  tape.Add(30, fact);
  tape.Finish(35);
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  const proto::Verdict& verdict = engine.Find("77")->verdict;
  EXPECT_EQ(verdict.code(), "F2");
  EXPECT_LE(verdict.onset_ns(), fact.wall_ns);
}

}  // namespace
}  // namespace rankscope::engine
