// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is asked of the scheduler, and what its answers do.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "detectors/model/event_types.h"
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

// The requests to the scheduler of all ticks, as "what@second".
std::vector<std::string> Requests(const Tape& tape) {
  Engine engine({}, "n1");
  std::vector<std::string> told;
  for (size_t i = 0; i < tape.size(); ++i) {
    if (!std::holds_alternative<Tick>(tape[i].kind)) {
      engine.Accept(tape[i]);
      continue;
    }
    for (const Request& request : engine.Tick(tape[i].t).requests) {
      if (request.what == Request::What::kJobSummary) continue;
      EXPECT_EQ(request.job_id, "77");
      EXPECT_GT(request.deadline, tape[i].t);
      told.push_back((request.what == Request::What::kSchedulerBegin ? "begin@" : "end@") +
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
  EXPECT_EQ(Requests(tape), (Words{"begin@1", "end@13"}));
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
  EXPECT_EQ(Requests(tape), Words{"begin@1"});
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
    return StateOf(VerdictOf(engine, "77"), "F3");
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
    return VerdictOf(engine, "77");
  };
  const proto::Verdict by = judged("CANCELLED by 1042");
  EXPECT_EQ(by.code(), "X20");
  EXPECT_EQ(by.sub(), "cancelled");
  ASSERT_GT(by.implies_size(), 0);
  EXPECT_EQ(by.implies(0).text(), "uid 1042 cancelled the run");
  for (const proto::Open& open : by.cannot_decide())
    EXPECT_NE(open.question(), "who asked for the end of the run");
  const proto::Verdict mute = judged("CANCELLED");
  EXPECT_EQ(mute.sub(), "cancelled");
  EXPECT_TRUE(std::any_of(mute.cannot_decide().begin(), mute.cannot_decide().end(),
                          [](const proto::Open& open) {
                            return open.question() == "who asked for the end of the run";
                          }));
}

// Who reads the record knows a name for the number.
TEST(SchedulerFacts, WhoCancelledHasANameAndANumber) {
  Tape tape = OnNode("0");
  EndBy(tape, 12, 15);
  SchedulerRecord record;
  record.job_id = "77";
  record.origin = "sacct";
  record.start = 1'750'000'000 + static_cast<int64_t>(kStart);
  record.end = record.start + 12;
  record.wall_ns = record.end * 1'000'000'000;
  record.state = "CANCELLED";
  tape.Add(14, record);
  record.by = "ada(1042)";  // the same end, told again by who knows more
  tape.Add(16, record);
  tape.Finish(20);
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  const proto::Verdict verdict = VerdictOf(engine, "77");
  EXPECT_EQ(verdict.code(), "X20");
  EXPECT_EQ(verdict.disposition().by(), "ada");
  EXPECT_EQ(verdict.disposition().uid(), 1042);
  EXPECT_EQ(verdict.implies(0).text(), "user ada cancelled the run");
  for (const proto::Open& open : verdict.cannot_decide())
    EXPECT_NE(open.question(), "who asked for the end of the run");
}

// The limit itself asked for the end.
TEST(SchedulerFacts, OfATimeLimitNobodyIsAskedFor) {
  for (const bool by_record : {true, false}) {
    Tape tape = OnNode("0");
    if (!by_record) {
      tape.Say(11.9,
               "slurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2025-05-06T07:08:09 DUE TO "
               "TIME LIMIT ***");
    }
    EndBy(tape, 12, 15);
    if (by_record) tape.State(14, "state", "TIMEOUT");
    tape.Finish(20);
    Engine engine({}, "n1");
    Play(tape, engine, 0, tape.size());
    const proto::Verdict verdict = VerdictOf(engine, "77");
    EXPECT_EQ(verdict.disposition().kind(), "time_limit");
    for (const proto::Open& open : verdict.cannot_decide())
      EXPECT_NE(open.question(), "who asked for the end of the run");
  }
}

// A Slurm that nobody has asked yet is not down.
TEST(SchedulerFacts, NotAskedYetIsAbsent) {
  SourceState slurm;
  slurm.source = 19;
  slurm.name = "slurm";
  slurm.state = Availability::kUp;
  Tape tape = OnNode("0");
  tape.Add(0.1, slurm);
  tape.Finish(11);
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  const proto::Verdict verdict = VerdictOf(engine, "77");
  EXPECT_EQ(verdict.code(), "G1");
  for (const proto::FamilyState& family : verdict.families()) {
    if (family.needs() != proto::STORE_SCHEDULER) continue;
    EXPECT_EQ(family.why(), proto::AVAILABILITY_UNSPECIFIED) << family.code();
  }
  EXPECT_EQ(VerdictToJson(verdict).find("\"why\":\"down\""), std::string::npos);
}

// Not the observer's: the culprit's, else the job's.
TEST(SchedulerFacts, TheNodesAreThoseConcerned) {
  const auto nodes_of = [](int32_t wait_status, const char* told, const char* list) {
    Tape tape("77");
    tape.Start(0.5, kTask, {1, 1},
               {{"SLURM_JOB_ID", "77"},
                {"SLURM_STEP_ID", "0"},
                {"SLURM_NODEID", "0"},
                {"SLURMD_NODENAME", "gpu07"},
                {"SLURM_JOB_NODELIST", list},
                {"RANK", "0"},
                {"WORLD_SIZE", "1"}});
    tape.Train(1, 1, 20, 0.5);
    tape.Exit(12, kTask, wait_status);
    if (told != nullptr) {
      tape.State(14, "start", std::to_string(1'750'001'000));
      tape.State(14, "nodes", told);
      tape.State(14, "state", "COMPLETED");
    }
    tape.Finish(20);
    Engine engine({}, "observer");
    Play(tape, engine, 0, tape.size());
    const proto::Verdict verdict = VerdictOf(engine, "77");
    EXPECT_EQ(verdict.node(), "observer");
    return std::vector<std::string>(verdict.nodes().begin(), verdict.nodes().end());
  };
  EXPECT_EQ(nodes_of(0, nullptr, "gpu[07-08]"), (Words{"gpu07", "gpu08"}));
  EXPECT_EQ(nodes_of(0, "gpu[05-06]", "gpu07"), (Words{"gpu05", "gpu06"}));
  EXPECT_EQ(nodes_of(9, "gpu[07-08]", "gpu[07-08]"), (Words{"gpu07"}));
  EXPECT_EQ(nodes_of(0, nullptr, ""), (Words{"gpu07"}));
  EXPECT_EQ(nodes_of(0, "gpu[0001-2000]", ""), (Words{"gpu[0001-2000]"}));
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
  const proto::Verdict verdict = VerdictOf(engine, "77");
  EXPECT_EQ(verdict.code(), "F2");
  EXPECT_LE(verdict.onset_ns(), fact.wall_ns);
}

// --- what an end from outside has cost, and what the rows say of it ---

constexpr int64_t kWall = 1'750'000'000;  // of the tape's monotonic 0, in seconds

void TellRow(Tape& tape, double told, double start, double end, const char* state) {
  const auto tell = [&](const char* field, double value, double at) {
    SchedulerFact fact;
    fact.job_id = "77";
    fact.field = field;
    fact.value = std::to_string(kWall + static_cast<int64_t>(kStart + value));
    fact.origin = "sacct";
    fact.wall_ns = AtSecond(at).ns + kWall * 1'000'000'000;
    if (fact.field == "state") fact.value = state;
    if (fact.field == "gpus") fact.value = "4";
    tape.Add(told, fact);
  };
  tell("gpus", 0, start);
  tell("start", start, start);
  tell("end", end, end);
  tell("state", end, end);
}

void WriteFile(Tape& tape, double second, const char* name, bool complete) {
  Event event;
  event.type = WireType(EventType::kCheckpointWritten);
  event.process = kTask;
  event.str = {{"name", name}, {"directory", "out"}};
  event.num = {{"bytes", 1 << 20}, {"complete", complete ? 1 : 0}, {"seconds", 1}};
  tape.Add(second, event);
}

proto::Verdict JudgedAsOf77(Tape& tape) {
  tape.Finish(60);
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  return VerdictOf(engine, "77");
}

std::string Shown(const proto::Verdict& verdict, std::string_view signal) {
  for (const proto::Evidence& evidence : verdict.shows()) {
    if (evidence.signal() == signal) return evidence.text();
  }
  return {};
}

TEST(LostWork, IsCountedFromTheNewestSaveOfWhichAllFilesAreComplete) {
  Tape tape = OnNode("0");
  WriteFile(tape, 15, "a.pt", true);
  WriteFile(tape, 25, "b.pt", true);
  WriteFile(tape, 39.5, "c.pt", false);
  tape.Train(12, 21, 50, 0.9);
  EndBy(tape, 40, 15);
  TellRow(tape, 45, 0, 40, "PREEMPTED");
  const proto::Verdict verdict = JudgedAsOf77(tape);
  EXPECT_EQ(verdict.code(), "F2");
  // Begun a second before b.pt was complete.
  EXPECT_NEAR(verdict.wasted_gpu_seconds(), 4 * 16.1, 0.5);
  EXPECT_NE(Shown(verdict, "lost_work").find("(out/b.pt)"), std::string::npos)
      << Shown(verdict, "lost_work");
}

TEST(LostWork, ASaveThatTheLimitCutIsNamed) {
  Tape tape = OnNode("0");
  tape.Train(12, 21, 50, 0.9);
  WriteFile(tape, 15, "a.pt", true);
  WriteFile(tape, 39.5, "c.pt", false);
  EndBy(tape, 40, 15);
  TellRow(tape, 45, 0, 40, "TIMEOUT");
  const proto::Verdict verdict = JudgedAsOf77(tape);
  EXPECT_EQ(verdict.code(), "F3");
  EXPECT_EQ(verdict.sub(), "in_save");
  EXPECT_NE(Shown(verdict, "checkpoint").find("out/c.pt"), std::string::npos);
  for (const proto::Open& open : verdict.cannot_decide())
    EXPECT_EQ(open.question().find("whether the save"), std::string::npos);
}

TEST(LostWork, NothingIsLostOfARunThatEndedWell) {
  Tape tape = OnNode("0");
  tape.Train(12, 21, 50, 0.9);
  EndBy(tape, 40, 0);
  TellRow(tape, 45, 0, 40, "COMPLETED");
  const proto::Verdict verdict = JudgedAsOf77(tape);
  EXPECT_EQ(verdict.wasted_gpu_seconds(), 0);
  EXPECT_EQ(Shown(verdict, "lost_work"), "");
}

// A state that was kept over a reboot, and an epoch of another boot.
TEST(Boot, ARestoredJobKnowsTheBootThatItBeganUnder) {
  Tape tape = OnNode("0");
  EndBy(tape, 40, 9);
  Engine before({}, "n1");
  tape.Finish(20);
  PlayUntil(tape, before, 0, 20);
  Engine after({}, "n1");
  ASSERT_TRUE(after.Restore(before.Save()));
  Tape rest("77");
  rest.Add(41, Epoch{kWall * 1'000'000'000, 1000, "boot-2"});
  EndBy(rest, 41, 9);
  TellRow(rest, 45, 0, 40, "NODE_FAIL");
  rest.Finish(60);
  Play(rest, after, 1, rest.size());  // but for the epoch that every tape begins with
  const proto::Verdict verdict = VerdictOf(after, "77");
  EXPECT_EQ(verdict.code(), "F1");
  EXPECT_EQ(verdict.sub(), "rebooted");
  EXPECT_NE(Shown(verdict, "boot_id").find("was rebooted during the run"), std::string::npos);
}

}  // namespace
}  // namespace rankscope::engine
