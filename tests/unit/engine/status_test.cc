// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the engine tells of ranks besides verdicts.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "detectors/model/event_types.h"
#include "tests/unit/engine/driver.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

constexpr ProcessKey kRoot{100, 1}, kRank{101, 2}, kWorker{102, 3}, kNext{103, 4};

SampleBatch Of(const ProcessKey& process, std::vector<Sample> samples) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kProcess;
  batch.subject.process = process;
  batch.samples = std::move(samples);
  return batch;
}

// One rank with a worker below it, played as far as each answer needs.
struct OneRank {
  Tape tape;
  std::optional<Engine> engine;

  OneRank() {
    tape.Begin(0, {"torchrun", "train.py"}, 1, kRoot);
    tape.StartRank(1, kRank, kRoot, 0, 1);
    tape.Start(1, kWorker, kRank, {});
  }
  RankStatus At(double second) {
    tape.Finish(second);
    engine.emplace(Config{}, "n1");
    Play(tape, *engine, 0, tape.size());
    auto job = StatusOf(*engine, "j1");
    return !job || job->ranks.empty() ? RankStatus() : job->ranks.front();
  }
};

double Attached(float use, std::optional<float> devices) {
  OneRank run;
  run.tape.Add(2, Of(kRank, {{SignalId::kCudaUse, use}}));
  if (devices) run.tape.Add(2, Of(kRank, {{SignalId::kGpuDevicesOpen, *devices}}));
  return run.At(3).cuda_attached;
}

TEST(Attached, NeedsTheLibraryAndADeviceOrWork) {
  EXPECT_EQ(Attached(0, 0), 0);
  EXPECT_EQ(Attached(0, 1), 0) << "who only watches the card";
  EXPECT_EQ(Attached(1, 0), 0) << "PyTorch on a machine without a card";
  EXPECT_EQ(Attached(1, std::nullopt), 0);
  EXPECT_EQ(Attached(1, 2), 1);
  EXPECT_EQ(Attached(2, 0), 1) << "it has launched: a device that /proc does not show";
}

TEST(Attached, IsNotKnownOfWhomNobodyHasLookedAt) {
  OneRank run;
  run.tape.Add(2, Of(kWorker, {{SignalId::kCudaUse, 2}}));
  EXPECT_TRUE(std::isnan(run.At(3).cuda_attached)) << "a worker's is not the rank's";
}

TEST(Attached, EndsWithTheProcess) {
  OneRank run;
  run.tape.Add(2, Of(kRank, {{SignalId::kCudaUse, 2}}));
  run.tape.Exit(3, kRank, Exited(1));
  EXPECT_EQ(run.At(4).cuda_attached, 0);

  OneRank again;
  again.tape.Add(2, Of(kRank, {{SignalId::kCudaUse, 2}}));
  again.tape.Exit(3, kRank, Exited(1));
  again.tape.StartRank(4, kNext, kRoot, 0, 1, 1);
  EXPECT_TRUE(std::isnan(again.At(5).cuda_attached)) << "the next process was not looked at yet";
}

TEST(LaunchGaps, StandAsTheyWereToldAndAreRestored) {
  OneRank run;
  std::vector<Sample> all = {{SignalId::kLaunchGapSeconds, 1.5}};
  for (size_t slot = 0; slot < kLaunchGapSlots; ++slot) all.push_back({LaunchGapSignal(slot), 0});
  run.tape.Add(2, Of(kRank, all));
  run.tape.Add(3, Of(kRank, {{SignalId::kLaunchGapSeconds, 2.5}, {SignalId::kLaunchGaps2Ms, 7}}));
  run.tape.Add(4, Of(kRank, {{SignalId::kLaunchGapsLonger, 1}}));
  const auto expect = [](const RankStatus& rank) {
    EXPECT_TRUE(rank.launch_gaps_counted);
    EXPECT_EQ(rank.signals[SignalId::kLaunchGapSeconds], 2.5);
    for (size_t slot = 0; slot < kLaunchGapSlots; ++slot) {
      EXPECT_EQ(rank.launch_gaps[slot], slot == 1 ? 7 : slot == 17 ? 1 : 0) << slot;
    }
  };
  expect(run.At(5));
  Engine after({}, "n1");
  ASSERT_TRUE(after.Restore(run.engine->Save()));
  after.Tick(AtSecond(6));
  expect(StatusOf(after, "j1")->ranks.front());

  EXPECT_FALSE(OneRank().At(2).launch_gaps_counted);
}

ProcessStart InJob(int32_t pid, int32_t parent, std::vector<KeyValue> env,
                   const std::string& comm = "python3") {
  ProcessStart start;
  start.key = {pid, 1};
  start.parent = {parent, 1};
  start.uid = 1000;
  start.comm = comm;
  start.argv = {comm, "train.py"};
  start.env = std::move(env);
  start.cgroup = "/system.slice/n1_slurmstepd.scope/job_77/step_0/user/task_0";
  start.complete = true;
  return start;
}

TEST(Places, OfAJobAndItsRanksAreThoseOfTheirCgroupAndEnvironment) {
  const std::vector<KeyValue> task = {{"SLURM_JOB_ID", "99"},    {"SLURM_JOB_NAME", "llama"},
                                      {"SLURM_JOB_USER", "ann"}, {"SLURM_PROCID", "0"},
                                      {"SLURM_NTASKS", "1"},     {"SLURM_JOB_PARTITION", "gpu"}};
  std::vector<KeyValue> rank = task;
  rank.insert(rank.end(),
              {{"RANK", "3"}, {"LOCAL_RANK", "3"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "n1"}});
  Tape tape;
  tape.Add(1, InJob(10, 1, task, "bash"));
  tape.Add(2, InJob(11, 10, rank));
  tape.Finish(3);
  Engine engine(Config{}, "n1");
  Play(tape, engine, 0, tape.size());
  EXPECT_FALSE(engine.Find("99")) << "what the environment alone says";
  auto job = StatusOf(engine, "77");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->user, "ann");
  EXPECT_EQ(job->facts.name, "llama");
  EXPECT_EQ(job->facts.partition, "gpu");
  EXPECT_EQ(job->world_size, 8);
  ASSERT_EQ(job->ranks.size(), 1u) << "the shell above it was taken for rank 0";
  EXPECT_EQ(job->ranks[0].rank, 3);
  EXPECT_EQ(job->ranks[0].place.step_id, "0");
  EXPECT_EQ(job->ranks[0].place.node, "n1");
  EXPECT_EQ(job->ranks[0].place.world_size, 8);
  EXPECT_EQ(job->ranks[0].place.master_addr, "n1");
  const std::string said = engine.Explain(11);
  EXPECT_NE(said.find("job 77: by its cgroup; SLURM_JOB_ID in its environment says 99"), said.npos)
      << said;
  EXPECT_NE(said.find("rank 3: by RANK; SLURM_PROCID says 0"), said.npos) << said;
  EXPECT_NE(engine.Explain(10).find("role: launcher"), said.npos);

  // The same after a restart of the daemon.
  Engine restored(Config{}, "n1");
  ASSERT_TRUE(restored.Restore(engine.Save()));
  EXPECT_EQ(restored.Explain(11), said);
  EXPECT_EQ(StatusOf(restored, "77")->facts.name, "llama");
}

TEST(Places, AProcessThatSlurmHasMovedIsNoLongerCounted) {
  Tape tape;
  tape.Start(1, {10, 1}, {1, 1}, {{"SLURM_JOB_ID", "5"}});
  tape.Start(2, {11, 1}, {10, 1}, {});
  tape.Add(3, InJob(11, 10, {{"SLURM_JOB_ID", "77"}, {"SLURM_PROCID", "0"}}));
  tape.Exit(4, {10, 1}, 0);
  tape.Finish(10);
  Engine engine(Config{}, "n1");
  Play(tape, engine, 0, tape.size());
  ASSERT_TRUE(engine.Find("5"));
  EXPECT_FALSE(StatusOf(engine, "5")->running);
  ASSERT_TRUE(engine.Find("77"));
  EXPECT_TRUE(StatusOf(engine, "77")->running);
}

SchedulerFact Mapping(const std::string& gpus) {
  SchedulerFact fact;
  fact.job_id = "77";
  fact.field = "gpus";
  fact.value = gpus;
  fact.origin = "mapping";
  return fact;
}

Event Card(int32_t index) {
  Event card;
  card.type = WireType(EventType::kGpuIdentity);
  card.str = {
      {"gpu_uuid", "GPU-" + std::to_string(index)}, {"bus_id", "0000:01:00"}, {"state", "up"}};
  card.num = {{"index", index}, {"processes_told", 1}};
  return card;
}

TEST(Mapping, AJobWithoutAProcessHasItsCardUntilItIsTakenBack) {
  Tape tape;
  tape.Add(1, Mapping("1"));
  tape.Add(1.5, Card(0));
  tape.Add(1.5, Card(1));
  tape.Finish(20);
  const size_t given = tape.size();
  tape.Add(21, Mapping(""));
  tape.Finish(40);
  Engine engine(Config{}, "n1");
  Play(tape, engine, 0, given);
  auto job = StatusOf(engine, "77");
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->running);
  ASSERT_EQ(job->gpus.size(), 1u);
  EXPECT_EQ(job->gpus[0].index, 1);
  EXPECT_EQ(job->gpus[0].source, "mapping");
  EXPECT_FALSE(job->gpus[0].attached);
  Play(tape, engine, given, tape.size());
  job = StatusOf(engine, "77");
  ASSERT_TRUE(job);
  EXPECT_FALSE(job->running);
  EXPECT_EQ(job->verdict.state(), proto::FINAL);
  EXPECT_EQ(job->verdict.code(), "U0") << "nothing is known of how it went";
  EXPECT_TRUE(job->gpus.empty());
}

TEST(Mapping, WhatIsNotToldAgainAfterAPauseIsTakenBack) {
  SourceState up;
  up.name = "job_mapping";
  up.state = Availability::kUp;
  for (const bool again : {true, false}) {
    Tape tape;
    tape.Add(1, up);
    tape.Add(1, Mapping("0"));
    tape.Add(1.5, Card(0));
    tape.Finish(5);
    tape.Add(6, up);
    if (again) tape.Add(6, Mapping("0"));
    tape.Finish(10);
    Engine engine(Config{}, "n1");
    Play(tape, engine, 0, tape.size());
    ASSERT_TRUE(engine.Find("77"));
    EXPECT_EQ(StatusOf(engine, "77")->running, again);
    EXPECT_EQ(StatusOf(engine, "77")->gpus.size(), again ? 1u : 0u);
  }
}

TEST(Mapping, OfAJobThatIsNotHereNothingIsTakenBack) {
  Tape tape;
  tape.Add(1, Mapping(""));
  tape.Finish(5);
  Engine engine(Config{}, "n1");
  Play(tape, engine, 0, tape.size());
  EXPECT_FALSE(engine.Find("77"));
}

TEST(Training, ShowsWhatItsRecordsPrint) {
  Tape tape;
  tape.Begin(0);
  tape.Say(
      1,
      " iteration        1/     100 | consumed samples:           64 | elapsed time per "
      "iteration (ms): 750.5 | throughput per GPU (TFLOP/s/GPU): 412.5 | learning rate: "
      "3.0E-04 | global batch size:    64 | lm loss: 3.5E+00 | loss scale: 4096.0 | grad norm: "
      "1.25 | num zeros: 17 | params norm: 210.5 |\n");
  tape.Finish(2);
  Engine engine(Config{}, "n1");
  Play(tape, engine, 0, tape.size());
  const auto job = StatusOf(engine, "j1");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->signals[SignalId::kLoss], 3.5);
  EXPECT_EQ(job->signals[SignalId::kModelFlops], 412.5e12);
  EXPECT_EQ(job->signals[SignalId::kLossScale], 4096);
  EXPECT_EQ(job->signals[SignalId::kGradientZeros], 17);
  EXPECT_EQ(job->signals[SignalId::kParameterNorm], 210.5);
  EXPECT_TRUE(std::isnan(job->signals[SignalId::kTokensPerSecond])) << "it prints none";
}

TEST(Signals, WhatASourceSendsOfAJobIsTheJobs) {
  Tape tape;
  tape.Begin(0);
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kJob;
  batch.subject.name = "j1";
  batch.samples = {{SignalId::kJobMemoryWaitingSeconds, 2.5}};
  tape.Add(1, batch);
  batch.subject.name = "j2";
  batch.samples = {{SignalId::kJobMemoryWaitingSeconds, 70}};
  tape.Add(1, batch);
  tape.Finish(2);
  Engine engine(Config{}, "n1");
  Play(tape, engine, 0, tape.size());
  const auto job = StatusOf(engine, "j1");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->signals[SignalId::kJobMemoryWaitingSeconds], 2.5);
  EXPECT_TRUE(std::isnan(job->signals[SignalId::kJobMemoryStalledSeconds])) << "never sent";
}

}  // namespace
}  // namespace rankscope::engine
