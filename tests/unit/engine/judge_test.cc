// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Confidence, hold and clear, hangs by the clock, and observations that no honest source sends.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "detectors/verdict/verdict_builder.h"
#include "tests/unit/engine/driver.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

constexpr families::FamilyRow kFailure = {"A2",   families::Group::kFailure, true, {}, {}, nullptr,
                                          nullptr};

TEST(SurenessOf, TheWeakerOfTierAndCapIsTheGround) {
  const features::JobFeatures f;
  families::Finding finding;
  const auto of = [&](proto::Tier tier) {
    finding.tier = tier;
    return SurenessOf(kFailure, finding, f);
  };
  EXPECT_EQ(of(proto::TIER_P).ground, proto::GROUND_RECORD);
  EXPECT_EQ(of(proto::TIER_C).ground, proto::GROUND_TWO_SOURCES);
  EXPECT_EQ(of(proto::TIER_S).ground, proto::GROUND_ONE_SOURCE);
  EXPECT_EQ(of(proto::TIER_W).ground, proto::GROUND_HEURISTIC);
  finding.cap = families::cap::kUnseenSide;
  EXPECT_EQ(of(proto::TIER_P).ground, proto::GROUND_UNSEEN_SIDE);
  EXPECT_EQ(of(proto::TIER_W).ground, proto::GROUND_HEURISTIC) << "a cap raises nothing";
  const double whole = of(proto::TIER_P).confidence;
  EXPECT_DOUBLE_EQ(whole,
                   families::Confidence(families::Group::kFailure, proto::GROUND_UNSEEN_SIDE));
  finding.contradiction = 0.5;
  EXPECT_DOUBLE_EQ(of(proto::TIER_P).confidence, whole / 2);
}

TEST(SurenessOf, TwoStoresAreMoreThanTwoVoicesOfOne) {
  features::JobFeatures f;
  features::Evidence evidence;
  evidence.store = proto::STORE_LOG;
  f.evidence = {evidence, evidence};
  families::Finding finding;
  finding.tier = proto::TIER_C;
  finding.shows = {0, 1};
  EXPECT_EQ(SurenessOf(kFailure, finding, f).ground, proto::GROUND_TWO_SOURCES);
  f.evidence[1].store = proto::STORE_KERNEL;
  EXPECT_EQ(SurenessOf(kFailure, finding, f).ground, proto::GROUND_TWO_STORES);
  finding.cap = families::cap::kInferred;
  EXPECT_EQ(SurenessOf(kFailure, finding, f).ground, proto::GROUND_TWO_SOURCES);
}

TEST(SurenessOf, WhatOnlyTheGenericDialectReadIsCapped) {
  features::JobFeatures f;
  f.generic = true;
  families::Finding finding;
  finding.tier = proto::TIER_P;
  EXPECT_EQ(SurenessOf(kFailure, finding, f).ground, proto::GROUND_LOOKALIKE);
}

// --- a clock ---

Tape Training(int world_size) {
  Tape tape;
  tape.Begin(0.1, {"torchrun", "train.py"}, world_size, {400, 10});
  tape.Start(0.2, {400, 10}, {1, 1}, {}, {"torchrun", "train.py"});
  for (int rank = 0; rank < world_size; ++rank)
    tape.StartRank(0.5, {401 + rank, 11}, {400, 10}, rank, world_size);
  return tape;
}

// First whole second at which the job is judged so; -1 = never.
int FirstSecond(const Tape& tape, std::string_view code, Config config = {}) {
  Engine engine(config, "n1");
  for (size_t i = 0; i < tape.size(); ++i) {
    Play(tape, engine, i, i + 1);
    if (std::holds_alternative<Tick>(tape[i].kind) && VerdictOf(engine).code() == code)
      return static_cast<int>((tape[i].t - AtSecond(0)).seconds() + 0.5);
  }
  return -1;
}

TEST(SilentHang, FiresAfterTheFloor) {
  Tape tape = Training(2);
  tape.Train(1, 1, 20, 0.5);  // the last at 10.5
  tape.Finish(200);
  EXPECT_EQ(FirstSecond(tape, "C2"), 71);
  Config config;
  config.hang_floor = Seconds(20);
  EXPECT_EQ(FirstSecond(tape, "C2", config), 31) << "the operator's knob";
}

TEST(SilentHang, WaitsThreeRecordsOfASlowRun) {
  Tape tape = Training(2);
  tape.Train(1, 1, 10, 20);  // the last at 181
  tape.Finish(500);
  EXPECT_EQ(FirstSecond(tape, "C2"), 241);
}

TEST(SilentHang, FallsWhenTrainingGoesOn) {
  Tape tape = Training(2);
  tape.Train(1, 1, 20, 0.5);
  tape.Train(100.5, 21, 40, 0.5);
  tape.Finish(115);
  EXPECT_EQ(FirstSecond(tape, "C2"), 71);
  EXPECT_NE(JudgeTape(tape).code(), "C2");
}

TEST(SilentHang, IsNoAnswerWhileACheckpointIsBeingSaved) {
  Tape tape = Training(2);
  tape.Train(1, 1, 20, 0.5);
  tape.Say(11, "saving checkpoint at iteration     500 to out");
  tape.Finish(700);
  EXPECT_EQ(FirstSecond(tape, "X21"), 611) << "600 s";
  EXPECT_EQ(FirstSecond(tape, "C2"), -1);
}

TEST(SilentHang, IsNoAnswerForOneRank) {
  Tape tape = Training(1);
  tape.Train(1, 1, 20, 0.5);
  tape.Finish(700);
  EXPECT_EQ(FirstSecond(tape, "C2"), -1);
}

TEST(RendezvousHang, FiresByTheClock) {
  Tape tape = Training(2);
  tape.Say(5, "initializing process group: backend=nccl world_size=2");
  tape.Finish(400);
  EXPECT_EQ(FirstSecond(tape, "C1"), 125);
  Config config;
  config.rendezvous_suspect = Seconds(40);
  EXPECT_EQ(FirstSecond(tape, "C1", config), 45) << "the operator's knob";
}

TEST(RendezvousHang, NotOnceTheGroupStands) {
  Tape tape = Training(2);
  tape.Say(5, "initializing process group: backend=nccl world_size=2");
  tape.Say(9, "Process group initialized");
  tape.Finish(400);
  EXPECT_EQ(FirstSecond(tape, "C1"), -1);
}

// E1 must match for two seconds before it is raised over what stands.
TEST(Hold, ALivingRunsNaNIsHeldForTwoSeconds) {
  Tape tape;
  tape.Begin(0.1);
  tape.Train(1, 1, 60, 0.1);
  for (int i = 0; i < 3; ++i)
    tape.Say(10.5, "step " + std::to_string(61 + i) + " loss nan lr 0.01 step_time 0.080s");
  tape.Finish(20);
  EXPECT_EQ(FirstSecond(tape, "E1"), 13);
  // Near miss: it recovers within a second.
  Tape brief;
  brief.Begin(0.1);
  brief.Train(1, 1, 60, 0.1);
  for (int i = 0; i < 3; ++i)
    brief.Say(10.5, "step " + std::to_string(61 + i) + " loss nan lr 0.01 step_time 0.080s");
  brief.Train(11.5, 64, 90, 0.1);
  brief.Finish(20);
  EXPECT_EQ(FirstSecond(brief, "E1"), -1);
}

TEST(Hold, TheEndDecidesAtOnce) {
  Tape tape;
  tape.Begin(0.1);
  tape.Train(1, 1, 60, 0.1);
  for (int i = 0; i < 5; ++i)
    tape.Say(10.5, "step " + std::to_string(61 + i) + " loss nan lr 0.01 step_time 0.080s");
  tape.End(10.6, 0);
  tape.Closed(10.6);
  tape.Finish(14);
  EXPECT_EQ(FirstSecond(tape, "E1"), 11);
}

// --- hostile ---

TEST(Hostile, AMillionJobIds) {
  Engine engine({}, "n1");
  LogLine line;
  line.text = "step 1 loss 2.0 lr 0.1";
  line.stream_name = "stdout";
  Observation observation;
  observation.t = AtSecond(1);
  for (int i = 0; i < 1'000'000; ++i) {
    line.job_id = std::to_string(i);
    observation.kind = line;
    engine.Accept(observation);
  }
  engine.Tick(AtSecond(2));
  // 256 jobs, and documents of the last 32 that are not watched.
  EXPECT_LE(engine.Jobs().size(), 256u + 32u);
  EXPECT_EQ(engine.counters().jobs_dropped, 1'000'000 - 256);
}

TEST(Hostile, NumbersThatAreNone) {
  Tape tape;
  tape.Begin(0.1, {"python"}, -7);
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kRank;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int32_t rank : {-1, INT32_MIN, 0, INT32_MAX}) {
    batch.subject.rank = {"j1", rank};
    for (const float value : {NAN, kInfinity, -kInfinity, 3.4e38f, -3.4e38f})
      batch.samples.push_back({SignalId::kSmActivity, value});
    batch.samples.push_back({static_cast<SignalId>(65535), 1});
    tape.Add(1, batch);
  }
  for (const char* text :
       {"step 999999999999999999999999 loss 1e400 lr nan", "step -5 loss -inf lr 1e999",
        "step 1e308 loss nan", "iteration 18446744073709551616/ 1 | lm loss: 1E+308 |"})
    tape.Say(2, text);
  tape.Train(2.5, 1, 10, 0.1);
  tape.End(5, INT32_MIN);
  tape.Closed(5);
  tape.Finish(10);
  EXPECT_EQ(JudgeTape(tape).state(), proto::FINAL);
}

TEST(Hostile, TimesOutOfAnyOrder) {
  Tape tape;
  tape.Begin(0.1);
  tape.Train(1, 1, 10, 0.1);
  Engine engine({}, "n1");
  std::mt19937_64 random(5);
  for (const int64_t extreme : {INT64_MIN, INT64_MAX, int64_t{0}, int64_t{-1}, INT64_MAX / 3}) {
    for (size_t i = 0; i < tape.size(); ++i) {
      Observation observation = tape[i];
      observation.t.ns = i % 3 == 0 ? extreme : static_cast<int64_t>(random());
      engine.Accept(observation);
    }
    engine.Accept({{extreme}, 1, 1, "n1", Epoch{extreme, extreme, "b"}});
    engine.Tick({extreme});
    engine.Tick(AtSecond(30));
    engine.Tick(AtSecond(3));
  }
  EXPECT_GT(engine.counters().malformed, 0);
  EXPECT_TRUE(engine.Find("j1"));
}

TEST(Hostile, EmptyAndUnknownIdentities) {
  Engine engine({}, "n1");
  Tape tape("");
  tape.Begin(1);
  tape.Say(1, "step 1 loss 2.0 lr 0.1");
  tape.Exit(1, {0, 0}, 0);
  tape.Exit(1, {-1, -1}, 0);
  tape.Start(1, {0, 0}, {0, 0}, {{"RANK", "0"}});
  tape.Start(1, {-5, -5}, {-5, -5}, {{"", ""}, {"RANK", "2147483647"}, {"WORLD_SIZE", "0"}});
  tape.Add(1, SignalSent{});
  tape.Add(1, KernelEvent{});
  tape.Add(1, SchedulerFact{});
  tape.Add(1, SchedulerRecord{});
  tape.Add(1, SampleBatch{});
  tape.Add(1, Event{});
  tape.Add(1, EngineState{"x", "y"});
  tape.Add(1, std::monostate{});
  tape.Finish(3);
  Play(tape, engine, 0, tape.size());
  EXPECT_FALSE(engine.Find(""));
  EXPECT_GE(engine.counters().malformed, 2);
}

}  // namespace
}  // namespace rankscope::engine
