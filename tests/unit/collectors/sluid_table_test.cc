// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Slurm 26.05's job directories, named by SLUID: the number comes from the title of the step's
// daemon.
#include "exporter/processes/sluid_table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "detectors/attribution/cgroup_path.h"
#include "exporter/processes/proc_text.h"

namespace rankscope::collectors {
namespace {

namespace fs = std::filesystem;

const std::string kScope = "/system.slice/slurmstepd.scope";
const std::string kSluid = "s0A1B2C3D4E5FG";

class SluidTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "sluid_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void PutDaemon(int pid, const std::string& title, int uid = 0,
                 const std::string& comm = "slurmstepd") {
    const std::string process = "proc/" + std::to_string(pid);
    const std::string who = std::to_string(uid);
    Write(process + "/status",
          "Name:\t" + comm + "\nUid:\t" + who + "\t" + who + "\t" + who + "\t" + who + "\n");
    Write(process + "/comm", comm + "\n");
    Write(process + "/cmdline", title + std::string(1, '\0'));
  }
  std::string Named(const std::string& cgroup) {
    return SluidTable((root_ / "proc").string(), (root_ / "cgroup").string()).WithJobId(cgroup);
  }

  fs::path root_;
};

TEST(JobOfTitle, IsTheNumberBeforeTheStep) {
  EXPECT_EQ(JobOfTitle("slurmstepd: [7312.0]"), "7312");
  EXPECT_EQ(JobOfTitle("slurmstepd: [7312.batch]"), "7312");
  EXPECT_EQ(JobOfTitle("slurmstepd: [7312.extern]\n"), "7312");
  EXPECT_EQ(JobOfTitle("slurmstepd: [7312+1.0]"), "7312");
  for (const char* other :
       {"", "slurmstepd", "slurmstepd: [", "slurmstepd: [7312", "slurmstepd: [7312.0",
        "slurmstepd: [0.0]", "slurmstepd: [-1.0]", "slurmstepd: [99999999999.0]",
        "/usr/sbin/slurmstepd infinity", "x slurmstepd: [7312.0]"}) {
    EXPECT_EQ(JobOfTitle(other), "") << other;
  }
}

TEST_F(SluidTableTest, TheStepsDaemonNamesTheJob) {
  Write("cgroup" + kScope + "/" + kSluid + "/step_0/slurm/cgroup.procs", "41\n");
  PutDaemon(41, "slurmstepd: [7312.0]");
  const std::string task = kScope + "/" + kSluid + "/step_0/user/task_3";
  for (const std::string& text : {"0::" + task + "\n", task}) {
    const attribution::CgroupFacts facts = attribution::ReadCgroup(Named(text));
    EXPECT_EQ(facts.job_id, "7312") << text;
    EXPECT_EQ(facts.sluid, kSluid);
    EXPECT_EQ(facts.step_id, "0");
    EXPECT_EQ(facts.task, 3);
    // What passes the door says the same.
    EXPECT_EQ(attribution::ReadCgroup(attribution::CarriedCgroup(Named(text))), facts);
  }
  EXPECT_EQ(JobCgroup(task), kScope + "/" + kSluid) << "the directory of its memory";
}

TEST_F(SluidTableTest, AnyStepAndAnySliceWillDo) {
  const std::string scope = "/hpc.slice/n1_slurmstepd.scope/" + kSluid;
  Write("cgroup" + scope + "/step_0/slurm/cgroup.procs", "");
  Write("cgroup" + scope + "/step_extern/slurm/cgroup.procs", "junk\n42\n");
  PutDaemon(42, "slurmstepd: [7312.extern]");
  const auto facts = attribution::ReadCgroup(Named(scope + "/step_0/user/task_0"));
  EXPECT_EQ(facts.job_id, "7312");
  EXPECT_EQ(facts.node_name, "n1");
}

TEST_F(SluidTableTest, NobodyElseNamesIt) {
  const std::string task = kScope + "/" + kSluid + "/step_0/user/task_0";
  EXPECT_EQ(Named(task), task) << "no such directory";
  Write("cgroup" + kScope + "/" + kSluid + "/step_0/slurm/cgroup.procs", "41\n43\n");
  PutDaemon(41, "slurmstepd: [7312.0]", 1000);
  PutDaemon(43, "slurmstepd: [7312.0]", 0, "python3");
  EXPECT_EQ(Named(task), task) << "a user's process, and one of another name";
  EXPECT_EQ(attribution::ReadCgroup(task).job_id, "");
}

TEST_F(SluidTableTest, WhatIsUnknownIsAskedAgain) {
  SluidTable table((root_ / "proc").string(), (root_ / "cgroup").string(),
                   std::chrono::milliseconds(0));
  const std::string task = kScope + "/" + kSluid + "/step_0/user/task_0";
  EXPECT_EQ(table.WithJobId(task), task);
  Write("cgroup" + kScope + "/" + kSluid + "/step_0/slurm/cgroup.procs", "41\n");
  PutDaemon(41, "slurmstepd: [7312.0]");
  EXPECT_NE(table.WithJobId(task), task);
  fs::remove_all(root_ / "cgroup");
  EXPECT_NE(table.WithJobId(task), task) << "the step has ended; its processes are still the job's";
}

TEST_F(SluidTableTest, AJobThatNobodyNamesIsNotReadForEachProcess) {
  SluidTable table((root_ / "proc").string(), (root_ / "cgroup").string(), std::chrono::hours(1));
  const std::string task = kScope + "/" + kSluid + "/step_0/user/task_0";
  EXPECT_EQ(table.WithJobId(task), task);
  Write("cgroup" + kScope + "/" + kSluid + "/step_0/slurm/cgroup.procs", "41\n");
  PutDaemon(41, "slurmstepd: [7312.0]");
  EXPECT_EQ(table.WithJobId(task), task);
}

TEST_F(SluidTableTest, OtherPathsStayAsTheyAre) {
  for (const std::string& path :
       {kScope + "/job_7/step_0/user/task_0", "/system.slice/" + kSluid, std::string("/"),
        "/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/" + kSluid + "/step_0",
        kScope + "/s0A1B2C3D4E5F", kScope + "/s0A1B2C3D4E5FGH", kScope + "/sIA1B2C3D4E5FG",
        kScope + "/system"}) {
    EXPECT_EQ(Named(path), path);
    EXPECT_EQ(attribution::SluidDirectory(path), "") << path;
  }
}

}  // namespace
}  // namespace rankscope::collectors
