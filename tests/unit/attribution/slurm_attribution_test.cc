// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Processes of Slurm's jobs: what their cgroup says, what their environment says, and who wins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detectors/attribution/attribution.h"
#include "detectors/attribution/explanation.h"
#include "detectors/attribution/launchers.h"

namespace rankscope::attribution {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Timestamp kNow{1'000'000'000};
using Env = std::vector<KeyValue>;

std::string Cgroup(const std::string& job, const std::string& step = "0", int task = 0) {
  return "/system.slice/slurmstepd.scope/job_" + job + "/step_" + step + "/user/task_" +
         std::to_string(task);
}

struct Started {
  int32_t pid = 0;
  int32_t parent = 1;
  Env env = {};
  std::string cgroup = {};
  std::string comm = "python3";
  std::vector<std::string> argv = {"python3", "train.py"};
  uint32_t uid = 1000;
  std::string job_id = {};
  bool fork = false;
};

class SlurmAttributionTest : public ::testing::Test {
 protected:
  const ProcessInfo* Start(const Started& s) {
    ProcessStart start;
    start.key = {s.pid, s.pid};
    start.parent = {s.parent, s.parent};
    start.uid = s.uid;
    start.comm = s.comm;
    start.job_id = s.job_id;
    if (!s.fork) {
      start.argv = s.argv;
      start.env = s.env;
      start.cgroup = s.cgroup;
      start.complete = true;
    }
    return processes_.OnStart(start, "boot", kNow);
  }
  static std::string Said(const ProcessInfo* process) { return Explain(*process, {}, {}); }
  Attribution processes_;
};

Env Task(int procid, int localid, int tasks, const std::string& job = "8841") {
  return {{"SLURM_JOB_ID", job},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", std::to_string(procid)},
          {"SLURM_LOCALID", std::to_string(localid)},
          {"SLURM_NTASKS", std::to_string(tasks)},
          {"SLURM_NODEID", "1"}};
}

Env operator+(Env a, const Env& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Env Torch(int rank, int local, int world) {
  return {{"RANK", std::to_string(rank)},
          {"LOCAL_RANK", std::to_string(local)},
          {"WORLD_SIZE", std::to_string(world)}};
}

TEST_F(SlurmAttributionTest, TheCgroupGoesBeforeTheEnvironmentWhichIsSaid) {
  const ProcessInfo* process = Start({.pid = 10,
                                      .env = Task(3, 1, 4, "99999") + Env{{"SLURM_STEP_ID", "7"}},
                                      .cgroup = Cgroup("8841", "2", 3)});
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->job_id, "8841");
  EXPECT_EQ(process->job_by, "its cgroup");
  EXPECT_EQ(process->step_id, "2");
  EXPECT_EQ(process->task, 3);
  EXPECT_EQ(process->rank, 3);
  EXPECT_EQ(process->node_rank, 1);
  EXPECT_EQ(process->launcher, "srun");
  EXPECT_THAT(Said(process),
              HasSubstr("job 8841: by its cgroup; SLURM_JOB_ID in its environment says 99999\n"));
  EXPECT_THAT(Said(process), HasSubstr("step 2: by its cgroup; SLURM_STEP_ID"));
}

TEST_F(SlurmAttributionTest, ASluidSaysByWhatTheNumberWasFound) {
  const ProcessInfo* process = Start(
      {.pid = 10, .env = Task(3, 1, 4, "99999"), .cgroup = Cgroup("8841@s0A1B2C3D4E5FG", "0", 3)});
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->job_id, "8841");
  EXPECT_THAT(Said(process), HasSubstr("job 8841: by its cgroup, by its SLUID; SLURM_JOB_ID in"));
}

TEST_F(SlurmAttributionTest, NobodyDisagreesWhereAllSayTheSame) {
  const ProcessInfo* process =
      Start({.pid = 10, .env = Task(3, 1, 4), .cgroup = Cgroup("8841", "0", 1)});
  EXPECT_EQ(process->task, 3) << "its directory has the number on the node";
  EXPECT_THAT(Said(process), Not(HasSubstr("says")));
}

TEST_F(SlurmAttributionTest, AScrubbedEnvironmentIsStillAProcessOfTheJobAndNoRank) {
  const ProcessInfo* process = Start({.pid = 10, .cgroup = Cgroup("8841", "batch", 0)});
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->job_id, "8841");
  EXPECT_EQ(process->step_id, "batch");
  EXPECT_EQ(process->role, ProcessRole::kLauncher);
  EXPECT_EQ(process->rank, -1);
  EXPECT_EQ(Start({.pid = 11, .cgroup = "/user.slice/user-1000.slice/session-1.scope/job_12"}),
            nullptr);
}

TEST_F(SlurmAttributionTest, AnEnvironmentAloneDoesNotNameAnothersJob) {
  Start({.pid = 10, .env = Task(0, 0, 1), .cgroup = Cgroup("8841"), .uid = 1000});
  const ProcessInfo* stranger = Start({.pid = 20, .env = Task(0, 0, 1), .uid = 2000});
  ASSERT_NE(stranger, nullptr) << "it carries a rank: a job of its own";
  EXPECT_EQ(stranger->job_id.substr(0, 5), "proc-");
  EXPECT_THAT(Said(stranger), HasSubstr("says 8841, which is another user's"));
  // A source that has nothing but the same environment adds nothing.
  EXPECT_EQ(Start({.pid = 20, .env = Task(0, 0, 1), .uid = 2000, .job_id = "8841"})->job_id,
            stranger->job_id);
  EXPECT_EQ(Start({.pid = 21, .env = {{"SLURM_JOB_ID", "8841"}}, .uid = 2000}), nullptr);
  EXPECT_EQ(Start({.pid = 22, .env = Task(1, 1, 2), .uid = 1000})->job_id, "8841")
      << "of the same user: started by ssh";
}

TEST_F(SlurmAttributionTest, TheWrappersWordStands) {
  RunMark mark;
  mark.job_id = "run-12345678";
  mark.root = {50, 50};
  processes_.OnRunBegin(mark, kNow);
  const ProcessInfo* root =
      Start({.pid = 50, .env = Task(0, 0, 1), .cgroup = Cgroup("8841"), .job_id = "run-12345678"});
  EXPECT_EQ(root->job_id, "run-12345678");
  EXPECT_THAT(Said(root), HasSubstr("its cgroup says 8841"));
  EXPECT_EQ(Start({.pid = 51, .parent = 50, .cgroup = Cgroup("8841")})->job_id, "run-12345678");
}

TEST_F(SlurmAttributionTest, WhatSlurmMovesIntoAJobIsTheJobs) {
  // slurmd was started from within an allocation, and forks what becomes another job's.
  Start({.pid = 10, .env = {{"SLURM_JOB_ID", "5"}}, .comm = "slurmd", .argv = {"slurmd"}});
  EXPECT_EQ(Start({.pid = 11, .parent = 10, .comm = "slurmd", .fork = true})->job_id, "5");
  const ProcessInfo* moved =
      Start({.pid = 11, .parent = 10, .env = Task(0, 0, 1, "6"), .cgroup = Cgroup("6")});
  EXPECT_EQ(moved->job_id, "6");
  EXPECT_EQ(moved->role, ProcessRole::kRank);
  EXPECT_THAT(Said(moved), HasSubstr("its parent, pid 10 says 5"));
}

TEST_F(SlurmAttributionTest, TorchrunsRanksInsideOneTask) {
  const Env task = Task(1, 0, 2);
  const std::string cgroup = Cgroup("8841", "0", 1);
  Start({.pid = 10, .env = task, .cgroup = cgroup, .argv = {"/usr/bin/torchrun", "train.py"}});
  for (int i = 0; i < 8; ++i) {
    const ProcessInfo* rank =
        Start({.pid = 20 + i,
               .parent = 10,
               .env = task + Torch(8 + i, i, 16) + Env{{"GROUP_RANK", "1"}, {"MASTER_ADDR", "n1"}},
               .cgroup = cgroup});
    EXPECT_EQ(rank->role, ProcessRole::kRank);
    EXPECT_EQ(rank->rank, 8 + i);
    EXPECT_EQ(rank->local_rank, i);
    EXPECT_EQ(rank->world_size, 16);
    EXPECT_EQ(rank->task, 1);
    EXPECT_EQ(rank->node_rank, 1);
    EXPECT_EQ(rank->launcher, "torchrun");
    EXPECT_EQ(rank->master_addr, "n1");
    EXPECT_THAT(Said(rank),
                HasSubstr("rank " + std::to_string(8 + i) + ": by RANK; SLURM_PROCID says 1\n"));
  }
  EXPECT_EQ(processes_.Find({10, 10})->role, ProcessRole::kLauncher);
}

// srun starts a shell, which was taken for the task's rank.
TEST_F(SlurmAttributionTest, AShellAboveATorchrunIsWithdrawn) {
  const Env task = Task(1, 0, 2);
  Start({.pid = 10, .env = task, .comm = "bash", .argv = {"bash", "task.sh"}});
  EXPECT_EQ(processes_.Find({10, 10})->rank, 1);
  const ProcessInfo* torchrun = Start(
      {.pid = 11, .parent = 10, .env = task, .argv = {"python3", "/usr/bin/torchrun", "x.py"}});
  EXPECT_EQ(torchrun->role, ProcessRole::kLauncher);
  const auto withdrawn = processes_.TakeWithdrawn();
  ASSERT_EQ(withdrawn.size(), 1u);
  EXPECT_EQ(withdrawn[0].first.pid, 10);
  EXPECT_EQ(withdrawn[0].second, 1);
  EXPECT_EQ(processes_.Find({10, 10})->role, ProcessRole::kLauncher);
  EXPECT_EQ(processes_.Find({10, 10})->rank, -1);
  const ProcessInfo* rank = Start({.pid = 12, .parent = 11, .env = task + Torch(9, 1, 16)});
  EXPECT_EQ(rank->role, ProcessRole::kRank);
  EXPECT_EQ(rank->rank, 9);
  EXPECT_TRUE(processes_.TakeWithdrawn().empty());
}

TEST_F(SlurmAttributionTest, ALauncherThatNobodyKnowsIsWithdrawnByItsRanks) {
  const Env task = Task(0, 0, 1);
  Start({.pid = 10, .env = task, .argv = {"python3", "our_launcher.py"}});
  EXPECT_EQ(Start({.pid = 12, .parent = 10, .env = task + Torch(0, 0, 4)})->role,
            ProcessRole::kRank);
  EXPECT_EQ(processes_.TakeWithdrawn().size(), 1u);
  EXPECT_EQ(Start({.pid = 13, .parent = 10, .env = task + Torch(1, 1, 4)})->role,
            ProcessRole::kRank);
}

// A program of one task sets RANK for itself; what it spawns inherits that.
TEST_F(SlurmAttributionTest, WhatATaskSpawnsIsItsWorker) {
  const Env task = Task(3, 3, 4);
  Start({.pid = 10, .env = task});
  const ProcessInfo* loader = Start({.pid = 11,
                                     .parent = 10,
                                     .env = task + Torch(3, 3, 4),
                                     .argv = {"python3", "-c",
                                              "from multiprocessing.spawn import "
                                              "spawn_main; spawn_main()"}});
  EXPECT_EQ(loader->role, ProcessRole::kWorker);
  const ProcessInfo* same = Start({.pid = 12, .parent = 10, .env = task + Torch(3, 3, 4)});
  EXPECT_EQ(same->role, ProcessRole::kWorker);
  EXPECT_EQ(same->rank, 3);
  EXPECT_EQ(processes_.Find({10, 10})->role, ProcessRole::kRank);
  EXPECT_TRUE(processes_.TakeWithdrawn().empty());
  // Below a shell the number is the program's own.
  Start({.pid = 20, .env = task, .comm = "bash", .argv = {"bash", "-c", "..."}});
  EXPECT_EQ(Start({.pid = 21, .parent = 20, .env = task + Torch(3, 3, 4)})->role,
            ProcessRole::kRank);
}

TEST_F(SlurmAttributionTest, SlurmsOwnProcessesAreNoRanks) {
  const Env batch = Task(0, 0, 4);
  const std::string cgroup = Cgroup("8841", "batch", 0);
  int32_t pid = 100;
  for (const auto& [comm, argv] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"slurmstepd", {"slurmstepd: [8841.0]"}},
           {"slurm_script", {"/bin/bash", "/var/spool/slurmd/job08841/slurm_script"}},
           {"bash", {"/bin/bash", "/var/spool/slurmd/job08841/slurm_script", "arg"}},
           {"srun", {"srun", "-n", "4", "python3", "train.py"}},
           {"srun", {"/usr/bin/srun", "hostname"}},
           {"sleep", {"sleep", "100000000"}}}) {
    const ProcessInfo* process =
        Start({.pid = ++pid, .env = batch, .cgroup = cgroup, .comm = comm, .argv = argv});
    ASSERT_NE(process, nullptr) << argv[0];
    EXPECT_EQ(process->role, ProcessRole::kLauncher) << argv[0];
    EXPECT_EQ(process->rank, -1) << argv[0];
  }
  // Near misses.
  for (const std::vector<std::string>& argv :
       std::vector<std::vector<std::string>>{{"python3", "train.py", "--launcher", "srun"},
                                             {"python3", "/home/u/accelerate-lab/train.py"},
                                             {"python3", "/data/srun/train.py"},
                                             {"python3", "slurm_script.py"},
                                             {"./composer_net"},
                                             {"python3", "train.py", "/x/slurm_script"}}) {
    const ProcessInfo* process =
        Start({.pid = ++pid, .env = batch, .cgroup = cgroup, .comm = "python3", .argv = argv});
    EXPECT_EQ(process->role, ProcessRole::kRank) << argv.back();
  }
}

TEST_F(SlurmAttributionTest, AFirstProgramOfABatchScriptIsItsRank) {
  const Env batch = Task(0, 0, 1);
  Start({.pid = 10,
         .env = batch,
         .cgroup = Cgroup("8841", "batch"),
         .comm = "slurm_script",
         .argv = {"/bin/bash", "/var/spool/slurmd/job08841/slurm_script"}});
  const ProcessInfo* rank =
      Start({.pid = 11, .parent = 10, .env = batch, .cgroup = Cgroup("8841", "batch")});
  EXPECT_EQ(rank->role, ProcessRole::kRank);
  EXPECT_EQ(rank->rank, 0);
  EXPECT_EQ(rank->launcher, "sbatch");
}

TEST_F(SlurmAttributionTest, SeveralJobsOnOneNodeStayApart) {
  for (int job = 1; job <= 3; ++job) {
    for (int task = 0; task < 4; ++task) {
      const std::string id = std::to_string(job);
      Start({.pid = job * 100 + task,
             .env = Task(task, task, 4, id),
             .cgroup = Cgroup(id, "0", task),
             .uid = static_cast<uint32_t>(1000 + job)});
    }
  }
  for (int job = 1; job <= 3; ++job) {
    const auto members = processes_.OfJob(std::to_string(job));
    ASSERT_EQ(members.size(), 4u);
    for (int task = 0; task < 4; ++task) EXPECT_EQ(members[static_cast<size_t>(task)]->rank, task);
  }
}

TEST_F(SlurmAttributionTest, ArraysAndHeterogeneousJobsKeepTheirOwnNumbers) {
  const ProcessInfo* array = Start({.pid = 10,
                                    .env = Task(0, 0, 1, "120") + Env{{"SLURM_ARRAY_JOB_ID", "117"},
                                                                      {"SLURM_ARRAY_TASK_ID", "3"}},
                                    .cgroup = Cgroup("120")});
  EXPECT_EQ(array->job_id, "120");
  EXPECT_EQ(array->array_job_id, "117");
  EXPECT_EQ(array->array_task, "3");
  EXPECT_THAT(Said(array), HasSubstr("of the array 117, task 3: by SLURM_ARRAY_JOB_ID"));
  // The environment of a component may name the whole job's leader: no contradiction.
  const ProcessInfo* het = Start(
      {.pid = 11,
       .env = Task(5, 0, 8, "200") + Env{{"SLURM_HET_JOB_ID", "200"}, {"SLURM_HET_SIZE", "2"}},
       .cgroup = Cgroup("201")});
  EXPECT_EQ(het->job_id, "201");
  EXPECT_EQ(het->het_job_id, "200");
  EXPECT_EQ(het->het_component, 1);
  EXPECT_THAT(Said(het), HasSubstr("job 201: by its cgroup\n"));
  EXPECT_EQ(Start({.pid = 12,
                   .env = Task(5, 0, 8, "200") +
                          Env{{"SLURM_HET_JOB_ID", "200"}, {"SLURM_HET_JOB_OFFSET", "4"}},
                   .cgroup = Cgroup("201")})
                ->het_component,
            4);
}

TEST_F(SlurmAttributionTest, PodsContainersAndNamespaces) {
  ProcessStart start;
  start.key = {40, 40};
  start.parent = {1, 1};
  start.comm = "python3";
  start.env = Torch(0, 0, 1);
  start.ns_pids = {40, 7};
  start.cgroup =
      "0::/kubepods.slice/kubepods-pod8f3d2c1b_0a9e_4d7c_b6a5_1234567890ab.slice/cri-containerd-" +
      std::string(64, 'c') + ".scope/system.slice/slurmstepd.scope/job_5/step_0/user/task_0";
  start.complete = true;
  const ProcessInfo* process = processes_.OnStart(start, "boot", kNow);
  EXPECT_EQ(process->job_id, "5");
  EXPECT_EQ(process->pod_uid, "8f3d2c1b-0a9e-4d7c-b6a5-1234567890ab");
  EXPECT_EQ(process->container_id, std::string(64, 'c'));
  EXPECT_EQ(process->inner_pid, 7);
  EXPECT_THAT(Said(process), HasSubstr("pid 40 (python3), pid 7 in its own namespace"));
  EXPECT_THAT(Said(process), HasSubstr("pod 8f3d2c1b-0a9e-4d7c-b6a5-1234567890ab: by its cgroup"));
}

TEST_F(SlurmAttributionTest, AForkHasWhatItsParentHas) {
  Start({.pid = 10, .env = Task(2, 0, 4), .cgroup = Cgroup("8841", "3", 2)});
  const ProcessInfo* fork = Start({.pid = 11, .parent = 10, .job_id = "8841", .fork = true});
  EXPECT_EQ(fork->role, ProcessRole::kWorker);
  EXPECT_EQ(fork->rank, 2);
  EXPECT_EQ(fork->step_id, "3");
  EXPECT_EQ(fork->task, 2);
  EXPECT_THAT(Said(fork), HasSubstr("step 3: by its parent, pid 10"));
  // What a fork is told of late takes nothing back.
  Start({.pid = 12, .env = Task(1, 0, 4), .cgroup = Cgroup("8841", "3", 1)});
  EXPECT_EQ(Start({.pid = 12, .job_id = "8841", .fork = true})->rank, 1);
}

TEST_F(SlurmAttributionTest, TheJobsNamesAreThoseOfItsOwner) {
  const Env names = {{"SLURM_JOB_NAME", "llama"},        {"SLURM_JOB_USER", "ann"},
                     {"SLURM_JOB_ACCOUNT", "science"},   {"SLURM_JOB_PARTITION", "gpu"},
                     {"SLURM_JOB_QOS", "high"},          {"SLURM_JOB_NUM_NODES", "2"},
                     {"SLURM_JOB_DEPENDENCY", "after:7"}};
  Start({.pid = 9, .env = Task(0, 0, 1) + Env{{"SLURM_JOB_NAME", "liar"}}, .uid = 2000});
  Start({.pid = 10, .env = Task(0, 0, 16) + names, .cgroup = Cgroup("8841")});
  Start({.pid = 11,
         .env = Task(1, 1, 16) + Env{{"SLURM_JOB_NAME", "other"}},
         .cgroup = Cgroup("8841", "0", 1)});
  const JobFacts* facts = processes_.FindJob("8841");
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->name, "llama");
  EXPECT_EQ(facts->user, "ann");
  EXPECT_EQ(facts->account, "science");
  EXPECT_EQ(facts->partition, "gpu");
  EXPECT_EQ(facts->qos, "high");
  EXPECT_EQ(facts->nodes, "2");
  EXPECT_EQ(facts->tasks, "16");
  EXPECT_EQ(facts->dependency, "after:7");
  EXPECT_EQ(facts->launcher, "srun");
  EXPECT_TRUE(facts->by_cgroup);
  processes_.ForgetJob("8841");
  EXPECT_EQ(processes_.FindJob("8841"), nullptr);
}

TEST_F(SlurmAttributionTest, HostileWordsAreNone) {
  const std::string long_text(1 << 20, '9');
  int32_t pid = 10;
  for (const std::string& value :
       {std::string(), std::string("-1"), std::string("1 2"), long_text, std::string("\xff\xfe"),
        std::string("8\n41"), std::string("../8"), std::string("\0", 1)}) {
    EXPECT_EQ(Start({.pid = ++pid, .env = {{"SLURM_JOB_ID", value}}}), nullptr)
        << value.substr(0, 20);
    const ProcessInfo* process = Start({.pid = ++pid,
                                        .env = Torch(1, 1, 2) + Env{{"SLURM_STEP_ID", value},
                                                                    {"SLURM_NODEID", value},
                                                                    {"SLURM_ARRAY_JOB_ID", value},
                                                                    {"SLURM_HET_JOB_ID", value},
                                                                    {"MASTER_ADDR", value},
                                                                    {"SLURMD_NODENAME", value},
                                                                    {"SLURM_JOB_NAME", value}},
                                        .cgroup = Cgroup("7")});
    ASSERT_NE(process, nullptr);
    EXPECT_EQ(process->job_id, "7");
    EXPECT_EQ(process->array_job_id, "");
    EXPECT_EQ(process->node_rank, -1);
    EXPECT_LE(process->master_addr.size(), 64u);
    const std::string said = Said(process);
    EXPECT_LT(said.size(), 4000u);
    for (const char c : said) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 127)) << int(c);
  }
  EXPECT_LE(processes_.FindJob("7")->name.size(), JobFacts::kTextCap);
}

TEST(Launchers, ByTheirCommand) {
  EXPECT_EQ(LauncherIn("torchrun", ""), "torchrun");
  EXPECT_EQ(LauncherIn("python3", "python3 -m torch.distributed.run train.py"), "torchrun");
  EXPECT_EQ(LauncherIn("python3", "python3 /x/torchrun_fixed.py train.py"), "torchrun");
  EXPECT_EQ(LauncherIn("python3", "python3 -m accelerate.commands.launch train.py"), "accelerate");
  EXPECT_EQ(LauncherIn("python3", "/opt/bin/python3 /opt/bin/deepspeed --num_gpus 8 train.py"),
            "deepspeed");
  EXPECT_EQ(LauncherIn("bash", "bash -c torchrun --nproc 4 train.py"), "torchrun");
  EXPECT_EQ(LauncherIn("mpiexec.hydra", ""), "mpirun");
  EXPECT_EQ(LauncherIn("python3", "python3 train.py torchrun"), "");
  EXPECT_EQ(LauncherIn("python3", "python3 accelerate.py"), "");
  EXPECT_EQ(LauncherIn("", ""), "");
}

}  // namespace
}  // namespace rankscope::attribution
