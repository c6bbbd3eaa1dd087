// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who is the rank where the environment does not tell it.
#include <gtest/gtest.h>

#include "detectors/attribution/attribution.h"
#include "detectors/model/event_types.h"

namespace rankscope::attribution {
namespace {

constexpr Timestamp kNow{1'000'000'000};
constexpr ProcessKey kRoot{100, 1}, kFirst{101, 2}, kSecond{102, 3}, kThird{103, 4};

class ComputingTest : public ::testing::Test {
 protected:
  void Wrap(std::string_view job = "run-0-12345678") {
    RunMark mark;
    mark.what = RunMark::What::kBegin;
    mark.job_id = job;
    mark.root = kRoot;
    processes_.OnRunBegin(mark, kNow);
  }
  const ProcessInfo* Start(const ProcessKey& key, const ProcessKey& parent, std::string comm,
                           std::vector<std::string> argv,
                           std::vector<KeyValue> env = {{"A", "b"}}) {
    ProcessStart start;
    start.key = key;
    start.parent = parent;
    start.comm = std::move(comm);
    start.argv = std::move(argv);
    start.env = std::move(env);
    return processes_.OnStart(start, "boot", kNow);
  }
  const ProcessInfo* Python(const ProcessKey& key, const ProcessKey& parent,
                            std::vector<KeyValue> env = {{"A", "b"}}) {
    return Start(key, parent, "python3", {"python3", "train.py"}, std::move(env));
  }
  void Bash(const ProcessKey& key, const ProcessKey& parent,
            std::vector<KeyValue> env = {{"A", "b"}}) {
    Start(key, parent, "bash", {"bash", "-c", "python3 train.py"}, std::move(env));
  }
  void End(const ProcessKey& key) {
    ProcessExit exit;
    exit.key = key;
    processes_.OnExit(exit, kNow);
  }
  const ProcessInfo& Of(const ProcessKey& key) const { return *processes_.Find(key); }

  Attribution processes_;
};

std::vector<KeyValue> Task(int number) {
  return {{"SLURM_JOB_ID", "77"},
          {"SLURM_PROCID", std::to_string(number)},
          {"SLURM_LOCALID", std::to_string(number)},
          {"SLURM_NTASKS", "4"}};
}

TEST_F(ComputingTest, TheOnlyProgramThatComputesIsRankZero) {
  Wrap();
  Bash(kRoot, {});
  Python(kFirst, kRoot);
  Start(kSecond, kRoot, "tee", {"tee", "log"});
  EXPECT_EQ(Of(kFirst).role, ProcessRole::kLauncher);
  const ProcessInfo* const rank = processes_.OnComputes(kFirst);
  ASSERT_NE(rank, nullptr);
  EXPECT_EQ(rank->key, kFirst);
  EXPECT_EQ(rank->rank, 0);
  EXPECT_EQ(rank->role, ProcessRole::kRank);
  EXPECT_EQ(rank->rank_by, kByComputing);
  EXPECT_EQ(Of(kSecond).role, ProcessRole::kLauncher);
  EXPECT_EQ(processes_.OnComputes(kFirst), nullptr) << "no news";
}

TEST_F(ComputingTest, WhomItHasStartedAreItsWorkers) {
  Wrap();
  Python(kRoot, {});
  Python(kFirst, kRoot);
  Python(kSecond, kFirst);
  ASSERT_NE(processes_.OnComputes(kRoot), nullptr);
  EXPECT_EQ(Of(kFirst).role, ProcessRole::kWorker);
  EXPECT_EQ(Of(kSecond).role, ProcessRole::kWorker);
  EXPECT_EQ(Of(kSecond).rank, 0);
  EXPECT_EQ(Python(kThird, kRoot)->role, ProcessRole::kWorker);
}

TEST_F(ComputingTest, OfTwoThatComputeNoneIsRankZero) {
  Wrap();
  Python(kRoot, {});
  Python(kFirst, kRoot);
  Python(kSecond, kRoot);
  ASSERT_NE(processes_.OnComputes(kFirst), nullptr);
  EXPECT_EQ(processes_.OnComputes(kSecond), nullptr);
  const auto withdrawn = processes_.TakeWithdrawn();
  ASSERT_EQ(withdrawn.size(), 1u);
  EXPECT_EQ(withdrawn[0].first, kFirst);
  EXPECT_EQ(Of(kFirst).rank, -1);
  EXPECT_EQ(Of(kSecond).rank, -1);
  Python(kThird, kRoot);
  EXPECT_EQ(processes_.OnComputes(kThird), nullptr);
}

TEST_F(ComputingTest, TheNextProgramOfAScriptFollowsTheFirst) {
  Wrap();
  Bash(kRoot, {});
  Python(kFirst, kRoot);
  ASSERT_NE(processes_.OnComputes(kFirst), nullptr);
  End(kFirst);
  Python(kSecond, kRoot);
  ASSERT_NE(processes_.OnComputes(kSecond), nullptr);
  EXPECT_EQ(Of(kSecond).rank, 0);
}

TEST_F(ComputingTest, WhereRanksAreNumberedNobodyElseIsOne) {
  Wrap();
  Python(kRoot, {});
  Python(kFirst, kRoot, {{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(processes_.OnComputes(kRoot), nullptr);
  EXPECT_EQ(Of(kRoot).rank, -1);
}

TEST_F(ComputingTest, APartOfSeveralTasksIsNotRankZero) {
  const std::vector<KeyValue> env = {{"SLURM_JOB_ID", "77"}, {"SLURM_NTASKS", "4"}};
  Python(kFirst, {}, env);
  EXPECT_EQ(processes_.OnComputes(kFirst), nullptr);
  EXPECT_EQ(Of(kFirst).rank, -1);
}

TEST_F(ComputingTest, ALauncherThatHoldsAGpuIsNoRank) {
  Wrap();
  Start(kRoot, {}, "torchrun", {"/usr/bin/python3", "/usr/bin/torchrun", "train.py"});
  EXPECT_EQ(processes_.OnComputes(kRoot), nullptr);
  EXPECT_EQ(Of(kRoot).role, ProcessRole::kLauncher);
}

TEST_F(ComputingTest, TheProgramTakesTheNumberOfItsShell) {
  Bash(kFirst, {}, Task(2));
  Python(kSecond, kFirst, Task(2));
  ASSERT_EQ(Of(kFirst).role, ProcessRole::kRank);
  ASSERT_EQ(Of(kSecond).role, ProcessRole::kWorker);
  const ProcessInfo* const rank = processes_.OnComputes(kSecond);
  ASSERT_NE(rank, nullptr);
  EXPECT_EQ(rank->role, ProcessRole::kRank);
  EXPECT_EQ(rank->rank, 2);
  const auto withdrawn = processes_.TakeWithdrawn();
  ASSERT_EQ(withdrawn.size(), 1u);
  EXPECT_EQ(withdrawn[0], (std::pair<ProcessKey, int32_t>(kFirst, 2)));
  EXPECT_EQ(Of(kFirst).role, ProcessRole::kWorker);
  EXPECT_EQ(Python(kThird, kFirst, Task(2))->role, ProcessRole::kWorker);
}

TEST_F(ComputingTest, ADataLoadersWorkerStaysOne) {
  Python(kFirst, {}, Task(2));
  Python(kSecond, kFirst, Task(2));
  EXPECT_EQ(processes_.OnComputes(kSecond), nullptr);
  EXPECT_EQ(Of(kFirst).role, ProcessRole::kRank);
  EXPECT_EQ(Of(kSecond).role, ProcessRole::kWorker);
}

TEST_F(ComputingTest, OfAPipelineTheOneThatComputesIsTheRank) {
  Start(kRoot, {}, "bash", {"/bin/bash", "/var/spool/slurmd/job00077/slurm_script"}, Task(0));
  Python(kFirst, kRoot, Task(0));
  Start(kSecond, kRoot, "tee", {"tee", "log"}, Task(0));
  ASSERT_EQ(Of(kSecond).role, ProcessRole::kRank);
  const ProcessInfo* const rank = processes_.OnComputes(kFirst);
  ASSERT_NE(rank, nullptr);
  EXPECT_EQ(rank->rank, 0);
  EXPECT_EQ(Of(kSecond).role, ProcessRole::kWorker);
}

TEST_F(ComputingTest, FactsThatAreToldAgainChangeNothing) {
  Wrap();
  Python(kRoot, {});
  ASSERT_NE(processes_.OnComputes(kRoot), nullptr);
  EXPECT_EQ(Python(kRoot, {})->role, ProcessRole::kRank);
  EXPECT_EQ(Of(kRoot).rank, 0);
  EXPECT_EQ(Start(kRoot, {}, "sleep", {"sleep", "1"})->role, ProcessRole::kLauncher)
      << "another program";

  Bash(kFirst, {}, Task(2));
  Python(kSecond, kFirst, Task(2));
  ASSERT_NE(processes_.OnComputes(kSecond), nullptr);
  Bash(kFirst, {}, Task(2));
  EXPECT_EQ(Of(kFirst).role, ProcessRole::kWorker);
}

TEST_F(ComputingTest, LaunchesOrAnEntryInTheDriversListShowIt) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kProcess;
  batch.samples.push_back({SignalId::kGpuDevicesOpen, 1});
  EXPECT_FALSE(Computes(batch)) << "nvidia-smi opens them, too";
  batch.samples.push_back({SignalId::kKernelLaunches, 0});
  EXPECT_FALSE(Computes(batch));
  batch.samples.back().value = 3;
  EXPECT_TRUE(Computes(batch));

  Event event;
  event.type = WireType(EventType::kGpuProcess);
  event.num = {{"bytes", 1 << 20}};
  EXPECT_TRUE(Computes(event));
  event.num.push_back({"gone", 1});
  EXPECT_FALSE(Computes(event));
}

}  // namespace
}  // namespace rankscope::attribution
