// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/proc_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope::collectors {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Stat(std::string_view comm) {
  return "4711 (" + std::string(comm) +
         ") S 4700 4711 4711 0 -1 4194304 1000 0 0 0 250 50 0 0 20 0 7 0 99000 123456789 2048 "
         "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 9\n";
}

bool KeepRank(std::string_view key) {
  return key == "RANK" || key == "LOCAL_RANK";
}

TEST(ParseStat, ReadsTheFieldsByTheirNumber) {
  const auto stat = ParseStat(Stat("python3"));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 4711);
  EXPECT_EQ(stat->comm, "python3");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 4700);
  EXPECT_EQ(stat->cpu_ticks, 300);
  EXPECT_EQ(stat->threads, 7);
  EXPECT_EQ(stat->start_ticks, 99000);
  EXPECT_EQ(stat->resident_pages, 2048);
  EXPECT_EQ(stat->exit_code, 9);
}

TEST(ParseStat, ANameMayLookLikeTheRestOfTheLine) {
  for (const char* name :
       {"a b", ") R 1 (", "x) Z 1 1 1", "((", "))", "", "tmux: server", "a\nb"}) {
    const auto stat = ParseStat(Stat(name));
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->comm, name);
    EXPECT_EQ(stat->state, 'S') << name;
    EXPECT_EQ(stat->parent, 4700) << name;
  }
}

TEST(ParseStat, RefusesWhatIsNotAStatLine) {
  EXPECT_FALSE(ParseStat(""));
  EXPECT_FALSE(ParseStat("4711"));
  EXPECT_FALSE(ParseStat("4711 (python3"));
  EXPECT_FALSE(ParseStat(")4711("));
  EXPECT_FALSE(ParseStat("x (a) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 0 0"));
  EXPECT_FALSE(ParseStat("99999999999 (a) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 0 0"));
  const std::string whole = Stat("python3");
  for (size_t length = 0; length < whole.find("2048"); ++length) {
    EXPECT_FALSE(ParseStat(std::string_view(whole).substr(0, length))) << length;
  }
}

TEST(ParseArguments, SplitsAtNulAndBounds) {
  EXPECT_THAT(ParseArguments(std::string_view("python3\0-u\0\0x y\0", 16)),
              ElementsAre("python3", "-u", "", "x y"));
  EXPECT_THAT(ParseArguments(""), IsEmpty());
  EXPECT_THAT(ParseArguments("no terminator"), ElementsAre("no terminator"));
  const auto cut = ParseArguments(std::string(10'000, 'a'));
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].size(), kMaxArgumentBytes);
  EXPECT_EQ(ParseArguments(std::string(1000, '\0')).size(), kMaxArguments);
}

TEST(ParseEnvironment, KeepsOnlyWhatIsAskedForAndSeesTheRank) {
  const auto environment = ParseEnvironment(
      std::string_view("PATH=/bin\0RANK=3\0WANDB_API_KEY=s3cret\0SLURM_JOB_ID=42\0=x\0novalue\0",
                       64),
      KeepRank);
  EXPECT_TRUE(environment.ranked);
  EXPECT_FALSE(environment.from_launcher);
  EXPECT_EQ(environment.slurm_job_id, "42");
  ASSERT_EQ(environment.kept.size(), 1u);
  EXPECT_EQ(environment.kept[0].key, "RANK");
  EXPECT_EQ(environment.kept[0].value, "3");
}

TEST(ParseEnvironment, NearMissesAreNoRank) {
  for (const char* text : {"RANKS=1", "MY_RANK=1", "RANK", "RANK=", "rank=1", "PATH=RANK=1"}) {
    EXPECT_FALSE(ParseEnvironment(text, KeepRank).ranked) << text;
  }
  EXPECT_TRUE(ParseEnvironment("SLURM_JOB_ID=not a number", KeepRank).slurm_job_id.empty());
}

TEST(ParseStatus, ReadsTheRealUidAndTheNamespacedPids) {
  const auto facts = ParseStatus(
      "Name:\tUid: 7\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t1\t1\t1\t1\nNSpid:\t4711\t12\t1\n");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->uid, 1000u);
  EXPECT_THAT(facts->ns_pids, ElementsAre(4711, 12, 1));
  EXPECT_FALSE(ParseStatus("Name:\tx\n"));
  EXPECT_FALSE(ParseStatus("Uid:\t-1\t0\n"));
}

TEST(ParseEnvironment, IsBoundedHoweverItLooks) {
  const auto all = [](std::string_view) { return true; };
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += "NCCL_" + std::to_string(i) + "=1" + '\0';
  many += "SLURM_JOB_ID=8841";
  const Environment environment = ParseEnvironment(many, all);
  EXPECT_EQ(environment.kept.size(), kMaxKept);
  EXPECT_TRUE(environment.ranked);
  EXPECT_EQ(environment.slurm_job_id, "8841") << "without a terminator";
  const std::string large = "RANK=" + std::string(2 << 20, '1');
  EXPECT_EQ(ParseEnvironment(large, all).kept[0].value.size(), kMaxValueBytes);
  EXPECT_TRUE(ParseEnvironment(std::string(2 << 20, 'x'), all).kept.empty());
  EXPECT_TRUE(ParseEnvironment(std::string(2 << 20, '\0'), all).kept.empty());
  EXPECT_TRUE(ParseEnvironment(std::string(2 << 20, '='), all).kept.empty());
  EXPECT_EQ(ParseEnvironment(std::string("SLURM_JOB_ID=1\0SLURM_JOB_ID=2\0", 30), all).slurm_job_id,
            "1")
      << "as getenv has it";
  for (const char* value : {"", "-1", "1x", "99999999999", "\xff"})
    EXPECT_EQ(ParseEnvironment(std::string("SLURM_JOB_ID=") + value, all).slurm_job_id, "");
  EXPECT_TRUE(
      ParseEnvironment(std::string("SLURM_SCRIPT_CONTEXT=prolog_slurmd\0", 36), all).slurm_script);
  EXPECT_FALSE(
      ParseEnvironment(std::string("SLURM_SCRIPT_CONTEXT=prolog_task\0", 34), all).slurm_script)
      << "a rank whose site has a TaskProlog";
}

TEST(ParseIo, NeedsBothNumbers) {
  const auto io = ParseIo("rchar: 9\nwchar: 8\nread_bytes: 4096\nwrite_bytes: 512\n");
  ASSERT_TRUE(io);
  EXPECT_EQ(io->read_bytes, 4096);
  EXPECT_EQ(io->write_bytes, 512);
  EXPECT_FALSE(ParseIo("read_bytes: 4096\n"));
  EXPECT_FALSE(ParseIo("cancelled_write_bytes: 1\nread_bytes: 1\n"));
}

TEST(ParseCgroup, VersionOneHasAPathPerController) {
  const auto paths = ParseCgroup(
      "9:freezer:/slurm/uid_7/job_5/step_0\n4:cpu,memory:/slurm/uid_7/job_5/step_0/task_1\n"
      "1:name=systemd:/a/b/c/d/e/f/g/h\n0::/system.slice/slurmd.service\n");
  EXPECT_EQ(paths.memory, "/slurm/uid_7/job_5/step_0/task_1");
  EXPECT_EQ(paths.unified, "/system.slice/slurmd.service");
}

TEST(ParseCgroup, TheDevicesControllerHasAPathOfItsOwn) {
  EXPECT_EQ(
      ParseCgroup("9:devices:/slurm/uid_0/job_5/step_0\n4:memory:/slurm/uid_0/job_5\n").devices,
      "/slurm/uid_0/job_5/step_0");
  EXPECT_EQ(ParseCgroup("0::/system.slice/job_5\n").devices, "");
}

TEST(ParseFrozen, OnlyAWholeWordCounts) {
  EXPECT_EQ(ParseFrozen("FROZEN\n", true), true);
  EXPECT_EQ(ParseFrozen("FREEZING\n", true), false) << "some of it still moves";
  EXPECT_EQ(ParseFrozen("THAWED\n", true), false);
  EXPECT_EQ(ParseFrozen("populated 1\nfrozen 1\n", false), true);
  EXPECT_EQ(ParseFrozen("populated 1\nfrozen 0\n", false), false);
  EXPECT_EQ(ParseFrozen("populated 1\n", false), std::nullopt) << "before Linux 5.2";
  for (const char* text : {"", "frozen", "frozen x\n", "FROZEN", "x FROZEN\n"}) {
    EXPECT_NE(ParseFrozen(text, false), true) << text;
  }
  EXPECT_EQ(ParseFrozen("x FROZEN\n", true), std::nullopt);
  EXPECT_EQ(ParseCgroup("9:freezer:/slurm/job_5/step_0\n0::/\n").freezer, "/slurm/job_5/step_0");
}

TEST(ParseGpuDevices, OnlyWhatIsLeftOfTheDriversNodes) {
  using Minors = std::vector<int32_t>;
  EXPECT_EQ(ParseGpuDevices("c 195:3 rwm\nc 195:0 rw\nc 195:255 rwm\nc 195:254 rwm\nb 8:0 rwm\n"
                            "c 136:* rwm\nc 1:3 rwm\nc 235:1 rwm\n"),
            (Minors{0, 3}));
  EXPECT_EQ(ParseGpuDevices("a *:* rwm\n"), Minors{});
  EXPECT_EQ(ParseGpuDevices("c 195:1 rwm\nc *:* rwm\n"), Minors{});
  EXPECT_EQ(ParseGpuDevices("c 195:* rwm\n"), Minors{});
  EXPECT_EQ(ParseGpuDevices("c *:* m\nb *:* m\nc 195:1 rwm\n"), Minors{1})
      << "as containers have it";
  EXPECT_EQ(ParseGpuDevices("c 1:3 rwm\nc 195:255 rwm\n"), Minors{}) << "no GPU at all";
  EXPECT_EQ(ParseGpuDevices(""), Minors{});
  EXPECT_EQ(
      ParseGpuDevices("c 195:x rwm\nc 195:-1 r\nc 195\n195:2\nc 195:99999999999 r\nc 195:7 r"),
      Minors{7});
  std::string many;
  for (int i = 0; i < 300; ++i) many += "c 195:" + std::to_string(i % 200) + " rwm\n";
  EXPECT_EQ(ParseGpuDevices(many).size(), 64u);
}

TEST(ParseCgroup, VersionTwoHasOnePathAndColonsInIt) {
  const auto paths = ParseCgroup("0::/user.slice/app:x.scope\n");
  EXPECT_EQ(paths.unified, "/user.slice/app:x.scope");
  EXPECT_TRUE(paths.memory.empty());
  EXPECT_TRUE(ParseCgroup("garbage\n::\n0::relative\n").unified.empty());
}

TEST(JobCgroup, CutsBelowTheJob) {
  EXPECT_EQ(JobCgroup("/slurm/uid_0/job_6/step_0/task_0"), "/slurm/uid_0/job_6");
  EXPECT_EQ(JobCgroup("/system.slice/slurmstepd.scope/job_12"),
            "/system.slice/slurmstepd.scope/job_12");
  EXPECT_EQ(JobCgroup("/my/job_runner/job_7/x"), "/my/job_runner/job_7");
  EXPECT_EQ(JobCgroup("/my/job_runner/x"), "/my/job_runner/x");
  EXPECT_EQ(JobCgroup("/a/job_/b"), "/a/job_/b");
  EXPECT_EQ(JobCgroup(""), "");
}

TEST(FindNumber, WantsTheWholeKey) {
  EXPECT_EQ(FindNumber("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill"), 3);
  EXPECT_EQ(FindNumber("MemTotal: 5 kB\nMemAvailable:   100 kB\n", "MemAvailable"), 102400);
  EXPECT_EQ(FindNumber("oom_kill\n", "oom_kill"), std::nullopt);
  EXPECT_EQ(FindNumber("oom_kill x\n", "oom_kill"), std::nullopt);
  EXPECT_EQ(FindNumber("A: 9223372036854775807 kB\n", "A"), std::nullopt);
}

TEST(ParseLimit, KnowsBothWaysToSayUnlimited) {
  EXPECT_EQ(ParseLimit("1572864000\n"), 1572864000);
  EXPECT_EQ(ParseLimit("max\n"), std::nullopt);
  EXPECT_EQ(ParseLimit("9223372036854771712\n"), std::nullopt);
}

TEST(IsGpuDevice, OnlyTheNodeOfOneGpu) {
  EXPECT_TRUE(IsGpuDevice("/dev/nvidia0"));
  EXPECT_TRUE(IsGpuDevice("/dev/nvidia15"));
  for (const char* other : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia", "/dev/nvidia0x",
                            "/tmp/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap1"}) {
    EXPECT_FALSE(IsGpuDevice(other)) << other;
  }
}

}  // namespace
}  // namespace rankscope::collectors
