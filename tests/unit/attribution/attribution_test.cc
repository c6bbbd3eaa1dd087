// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/attribution/attribution.h"

#include <gtest/gtest.h>

namespace rankscope::attribution {
namespace {

constexpr Timestamp kNow{1'000'000'000};

ProcessStart Process(ProcessKey key, ProcessKey parent, std::vector<KeyValue> env,
                     std::vector<std::string> argv = {"python", "train.py"}) {
  ProcessStart start;
  start.key = key;
  start.parent = parent;
  start.comm = "python";
  start.argv = std::move(argv);
  start.env = std::move(env);
  return start;
}

std::vector<KeyValue> Rank(int rank) {
  return {{"RANK", std::to_string(rank)}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "8"}};
}

class AttributionTest : public ::testing::Test {
 protected:
  const ProcessInfo* Start(const ProcessStart& start) {
    return processes_.OnStart(start, "boot", kNow);
  }
  Attribution processes_;
};

TEST_F(AttributionTest, RankGoesBeforeMpiBeforeSlurm) {
  struct Row {
    std::vector<KeyValue> env;
    int32_t rank, local_rank, world_size;
    std::string by;
  };
  const KeyValue torch{"RANK", "5"}, torch_local{"LOCAL_RANK", "1"}, torch_world{"WORLD_SIZE", "8"};
  const KeyValue mpi{"OMPI_COMM_WORLD_RANK", "3"}, mpi_local{"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
      mpi_world{"OMPI_COMM_WORLD_SIZE", "4"};
  const KeyValue slurm{"SLURM_PROCID", "7"}, slurm_local{"SLURM_LOCALID", "0"},
      slurm_tasks{"SLURM_NTASKS", "16"};
  const std::vector<Row> rows = {
      {{slurm, slurm_local, slurm_tasks, mpi, mpi_local, mpi_world, torch, torch_local,
        torch_world},
       5,
       1,
       8,
       "RANK"},
      {{slurm, slurm_local, slurm_tasks, mpi, mpi_local, mpi_world},
       3,
       2,
       4,
       "OMPI_COMM_WORLD_RANK"},
      {{slurm, {"PMIX_RANK", "6"}}, 6, -1, 0, "PMIX_RANK"},
      {{slurm, slurm_local, slurm_tasks}, 7, 0, 16, "SLURM_PROCID"},
  };
  int32_t pid = 100;
  for (const Row& row : rows) {
    const ProcessInfo* process = Start(Process({++pid, 1}, {1, 1}, row.env));
    ASSERT_NE(process, nullptr) << row.by;
    EXPECT_EQ(process->role, ProcessRole::kRank);
    EXPECT_EQ(process->rank, row.rank);
    EXPECT_EQ(process->local_rank, row.local_rank);
    EXPECT_EQ(process->world_size, row.world_size);
    EXPECT_EQ(process->rank_by, row.by);
  }
}

TEST_F(AttributionTest, WhatIsNoRankNumberIsNoRank) {
  for (const char* value : {"", "-1", "x", "3x", " 3", "99999999999999999999", "0x3"})
    EXPECT_EQ(Start(Process({200, 1}, {1, 1}, {{"RANK", value}})), nullptr) << value;
}

TEST_F(AttributionTest, SiblingsShareTheirLaunchersJobAndStrangersDoNot) {
  const std::string first = Start(Process({101, 5}, {100, 4}, Rank(0)))->job_id;
  EXPECT_EQ(first.size(), 13u);
  EXPECT_EQ(first.substr(0, 5), "proc-");
  EXPECT_EQ(Start(Process({102, 6}, {100, 4}, Rank(1)))->job_id, first);
  EXPECT_NE(Start(Process({103, 6}, {100, 9}, Rank(1)))->job_id, first)
      << "the launcher's pid was used again";
  EXPECT_NE(Attribution().OnStart(Process({101, 5}, {100, 4}, Rank(0)), "other boot", kNow)->job_id,
            first);
  EXPECT_NE(Start(Process({104, 6}, {1, 1}, Rank(0)))->job_id,
            Start(Process({105, 6}, {1, 1}, Rank(0)))->job_id)
      << "orphans of init are no siblings";
}

TEST_F(AttributionTest, ALauncherBelongsToTheJobThatItNames) {
  std::vector<KeyValue> elastic = Rank(0);
  elastic.push_back({"TORCHELASTIC_RUN_ID", "none"});
  EXPECT_EQ(Start(Process({100, 4}, {9, 1}, {})), nullptr) << "before it has any ranks";
  const std::string job = Start(Process({101, 5}, {100, 4}, elastic))->job_id;
  const ProcessInfo* launcher = Start(Process({100, 4}, {9, 1}, {}));
  ASSERT_NE(launcher, nullptr);
  EXPECT_EQ(launcher->job_id, job);
  EXPECT_EQ(launcher->role, ProcessRole::kLauncher);
  EXPECT_EQ(Start(Process({100, 8}, {9, 1}, {})), nullptr) << "its pid was used again";
}

TEST_F(AttributionTest, AShellThatSetsRankIsNoLauncher) {
  ASSERT_NE(Start(Process({101, 5}, {100, 4}, Rank(0))), nullptr);
  EXPECT_EQ(Start(Process({100, 4}, {9, 1}, {})), nullptr);
}

TEST_F(AttributionTest, NobodyIsMadeAnothersLauncher) {
  std::vector<KeyValue> elastic = Rank(0);
  elastic.push_back({"TORCHELASTIC_RUN_ID", "none"});
  ProcessStart rank = Process({101, 5}, {100, 4}, elastic);
  rank.uid = 1000;
  ASSERT_NE(Start(rank), nullptr);
  ProcessStart other = Process({100, 4}, {9, 1}, {});
  other.uid = 1001;
  EXPECT_EQ(Start(other), nullptr);
}

TEST_F(AttributionTest, TheJobOfTheSourceThenOfTheParentThenOfSlurm) {
  ProcessStart wrapped = Process({10, 1}, {9, 1}, {{"SLURM_JOB_ID", "77"}});
  wrapped.job_id = "run-1";
  EXPECT_EQ(Start(wrapped)->job_id, "run-1");
  EXPECT_EQ(Start(Process({11, 2}, {10, 1}, {{"SLURM_JOB_ID", "77"}}))->job_id, "run-1");
  EXPECT_EQ(Start(Process({12, 2}, {9, 1}, {{"SLURM_JOB_ID", "77"}}))->job_id, "77");
  EXPECT_EQ(Start(Process({13, 2}, {9, 1}, {})), nullptr);
  EXPECT_EQ(Start(Process({14, 2}, {9, 1}, {{"SLURM_JOB_ID", std::string(4000, '9')}})), nullptr);
}

TEST_F(AttributionTest, WhatARankStartsIsItsWorker) {
  Start(Process({101, 5}, {100, 4}, Rank(3)));
  const ProcessInfo* worker = Start(Process({110, 7}, {101, 5}, Rank(3)));
  EXPECT_EQ(worker->role, ProcessRole::kWorker);
  EXPECT_EQ(worker->rank, 3);
  const ProcessInfo* below = Start(Process({111, 8}, {110, 7}, {}));
  EXPECT_EQ(below->role, ProcessRole::kWorker);
  EXPECT_EQ(below->rank, 3);
}

TEST_F(AttributionTest, ALauncherUnderSlurmIsNotItsTasksRank) {
  const std::vector<KeyValue> task = {{"SLURM_JOB_ID", "9"}, {"SLURM_PROCID", "1"}};
  EXPECT_EQ(Start(Process({100, 1}, {50, 1}, task, {"/usr/bin/torchrun", "train.py"}))->role,
            ProcessRole::kLauncher);
  std::vector<KeyValue> env = task;
  env.push_back({"RANK", "11"});
  const ProcessInfo* rank = Start(Process({101, 2}, {100, 1}, env));
  EXPECT_EQ(rank->role, ProcessRole::kRank);
  EXPECT_EQ(rank->rank, 11);
}

// srun starts a shell, the shell a launcher: SLURM_PROCID alone made the shell a rank, RANK below
// it says better.
TEST_F(AttributionTest, RanksBelowATasksShellAreRanks) {
  const std::vector<KeyValue> task = {{"SLURM_JOB_ID", "9"}, {"SLURM_PROCID", "1"}};
  Start(Process({100, 1}, {50, 1}, task, {"bash", "task.sh"}));
  std::vector<KeyValue> env = task;
  env.push_back({"RANK", "11"});
  const ProcessInfo* rank = Start(Process({101, 2}, {100, 1}, env));
  EXPECT_EQ(rank->role, ProcessRole::kRank);
  EXPECT_EQ(rank->rank, 11);
}

TEST_F(AttributionTest, ALateParentChangesNothing) {
  const ProcessInfo* child = Start(Process({101, 5}, {100, 4}, Rank(0)));
  const std::string job = child->job_id;
  Start(Process({100, 4}, {1, 1}, Rank(0), {"torchrun", "train.py"}));
  EXPECT_EQ(processes_.Find({101, 5})->job_id, job);
  EXPECT_EQ(processes_.Find({101, 5})->rank, 0);
}

TEST_F(AttributionTest, AReusedPidIsAnotherProcess) {
  Start(Process({101, 5}, {100, 4}, Rank(0)));
  processes_.OnExit({{101, 5}, 9, true, false}, kNow);
  Start(Process({101, 900}, {100, 4}, Rank(1)));
  EXPECT_FALSE(processes_.Find({101, 5})->alive);
  EXPECT_TRUE(processes_.Find({101, 900})->alive);
  EXPECT_EQ(processes_.FindPid(101)->rank, 1) << "the newest";
  EXPECT_EQ(processes_.OnExit({{101, 6}, 0, true, false}, kNow), nullptr);
}

TEST_F(AttributionTest, ExecTellsTheFactsAgain) {
  RunMark mark;
  mark.job_id = "run-1";
  mark.root = {50, 1};
  mark.argv = {"sh", "-c", "exec python train.py"};
  processes_.OnRunBegin(mark, kNow);
  EXPECT_EQ(processes_.Find({50, 1})->job_id, "run-1");
  const ProcessInfo* after = Start(Process({50, 1}, {49, 1}, Rank(2)));
  EXPECT_EQ(after->job_id, "run-1");
  EXPECT_EQ(after->rank, 2);
  EXPECT_EQ(after->command, "python train.py");
}

TEST_F(AttributionTest, AKnownStatusIsNeverForgotten) {
  Start(Process({101, 5}, {100, 4}, Rank(0)));
  processes_.OnExit({{101, 5}, 0, false, false}, kNow);
  EXPECT_FALSE(processes_.Find({101, 5})->status_known);
  processes_.OnExit({{101, 5}, 9, true, false}, kNow);
  processes_.OnExit({{101, 5}, 0, false, false}, kNow);
  EXPECT_TRUE(processes_.Find({101, 5})->status_known);
  EXPECT_EQ(processes_.Find({101, 5})->wait_status, 9);
}

TEST_F(AttributionTest, TenThousandProcessesAreBoundedAndTheDeadGoFirst) {
  const std::string job = Start(Process({2, 1}, {1, 1}, Rank(0)))->job_id;
  for (int32_t pid = 10; pid < 10'010; ++pid) {
    ASSERT_NE(Start(Process({pid, 1}, {2, 1}, {})), nullptr);
    processes_.OnExit({{pid, 1}, 0, true, false}, {kNow.ns + pid});
  }
  EXPECT_LE(processes_.OfJob(job).size(), Attribution::kMaxProcesses);
  EXPECT_EQ(processes_.dropped(), 10'001 - static_cast<int64_t>(Attribution::kMaxProcesses));
  EXPECT_NE(processes_.Find({2, 1}), nullptr) << "it is alive";
  EXPECT_EQ(processes_.Find({10, 1}), nullptr) << "it ended first";
  EXPECT_NE(processes_.Find({10'009, 1}), nullptr);
  processes_.ForgetJob(job);
  EXPECT_TRUE(processes_.OfJob(job).empty());
}

TEST_F(AttributionTest, TellingAgainDropsNobody) {
  for (int32_t pid = 10; pid < 10 + static_cast<int32_t>(Attribution::kMaxProcesses); ++pid)
    Start(Process({pid, 1}, {1, 1}, Rank(0)));
  EXPECT_EQ(processes_.dropped(), 0);
  Start(Process({10, 1}, {1, 1}, Rank(0)));
  EXPECT_EQ(processes_.dropped(), 0);
}

TEST_F(AttributionTest, LongCommandsAreCut) {
  const ProcessInfo* process =
      Start(Process({101, 5}, {100, 4}, Rank(0), {"python", std::string(100'000, 'x')}));
  EXPECT_LE(process->command.size(), Attribution::kCommandCap);
}

TEST_F(AttributionTest, WhoHasTheMostGivesUpHisNewestForAnother) {
  const auto of = [](int32_t pid, uint32_t uid) {
    ProcessStart start = Process({pid, 1}, {1, 1}, Rank(0));
    start.uid = uid;
    return start;
  };
  const auto most = static_cast<int32_t>(Attribution::kMaxProcesses);
  for (int32_t pid = 10; pid < 10 + most; ++pid) ASSERT_NE(Start(of(pid, 1001)), nullptr);
  EXPECT_EQ(Start(of(20'000, 1001)), nullptr) << "all of his live";
  EXPECT_NE(Start(of(20'001, 1002)), nullptr);
  EXPECT_EQ(processes_.Find({9 + most, 1}), nullptr);
  EXPECT_NE(processes_.Find({10, 1}), nullptr);
  processes_.OnExit({{10, 1}, 0, true, false}, kNow);
  EXPECT_NE(Start(of(20'002, 1002)), nullptr);
  EXPECT_EQ(processes_.Find({10, 1}), nullptr) << "one that has ended goes first";
  EXPECT_EQ(processes_.dropped(), 3);
}

}  // namespace
}  // namespace rankscope::attribution
