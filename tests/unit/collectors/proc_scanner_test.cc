// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/proc_scanner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "exporter/processes/procfs.h"
#include "tests/unit/collectors/recording_sink.h"

namespace rankscope::collectors {
namespace {

namespace fs = std::filesystem;

// That many fields of a stat line.
std::string Zeros(int n) {
  std::string fields;
  for (int i = 0; i < n; ++i) fields += " 0";
  return fields;
}

// A /proc and a /sys/fs/cgroup of files that a test writes.
class FakeProc {
 public:
  FakeProc() {
    std::string name = (fs::temp_directory_path() / "rankscope_proc_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    Write(root_ / "proc/meminfo", "MemTotal: 4 kB\nMemAvailable: 2 kB\n");
    Write(root_ / "proc/vmstat", "pgfault 1\noom_kill 5\n");
  }
  ~FakeProc() { fs::remove_all(root_); }

  struct Process {
    int pid = 0;
    int parent = 1;
    int start = 100;
    std::string environ = {};
    std::string comm = "python3";
    char state = 'S';
    int exit_code = 0;
    int threads = 3;
    std::string cgroup = "0::/\n";
  };
  void Put(const Process& p) {
    const fs::path at = root_ / "proc" / std::to_string(p.pid);
    Write(at / "stat", std::to_string(p.pid) + " (" + p.comm + ") " + p.state + " " +
                           std::to_string(p.parent) + " 1 1 0 -1 0 0 0 7 0 100 50 0 0 20 0 " +
                           std::to_string(p.threads) + " 0 " + std::to_string(p.start) + " 0 10" +
                           Zeros(27) + " " + std::to_string(p.exit_code) + "\n");
    Write(at / "cmdline", std::string("python3\0train.py\0", 17));
    Write(at / "environ", p.environ);
    Write(at / "status", "Uid:\t1000\t1000\t1000\t1000\nNSpid:\t" + std::to_string(p.pid) +
                             "\nVmSwap:\t    2048 kB\n");
    Write(at / "cgroup", p.cgroup);
    Write(at / "io", "read_bytes: 4096\nwrite_bytes: 512\n");
  }
  void Kill(int pid) { fs::remove_all(root_ / "proc" / std::to_string(pid)); }
  void OpenGpu(int pid, const std::string& device) {
    fs::create_directories(root_ / "proc/driver/nvidia");
    const fs::path fds = root_ / "proc" / std::to_string(pid) / "fd";
    fs::create_directories(fds);
    fs::create_symlink(device,
                       fds / std::to_string(std::distance(fs::directory_iterator(fds), {})));
  }
  void Cgroup(const std::string& file, const std::string& text) {
    Write(root_ / ("cgroup/" + file), text);
  }
  ProcReader Reader() const {
    return ProcReader((root_ / "proc").string(), (root_ / "cgroup").string(),
                      [](std::string_view key) { return key == "RANK"; });
  }

 private:
  static void Write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  fs::path root_;
};

const std::string kRank0("RANK=0\0SECRET=x\0", 16);

std::set<int> Pids(const ScanResult& result) {
  std::set<int> pids;
  for (const auto& started : result.started) pids.insert(started.start.key.pid);
  return pids;
}

ScanRequest Request(const ScanResult& result) {
  ScanRequest request;
  for (const auto& started : result.started) request.tracked.push_back(started.tracked);
  return request;
}

std::optional<double> SampleOf(const ScanResult& result, SignalId signal) {
  for (const SampleBatch& batch : result.samples) {
    for (const Sample& sample : batch.samples) {
      if (sample.signal == signal) return sample.value;
    }
  }
  return std::nullopt;
}

TEST(ProcScanner, FindsRanksAndTheirDescendantsAndNobodyElse) {
  FakeProc proc;
  proc.Put({.pid = 10, .environ = kRank0});
  proc.Put({.pid = 11, .parent = 10});
  proc.Put({.pid = 5, .parent = 11});  // pids have wrapped: the grandchild comes first
  proc.Put({.pid = 12, .environ = "PATH=/bin"});
  ProcScanner scanner(proc.Reader());
  const ScanResult result = scanner.Scan({});
  EXPECT_EQ(Pids(result), (std::set<int>{5, 10, 11}));
  const ProcessStart& start = result.started[0].start;
  EXPECT_EQ(start.key.pid, 10);
  EXPECT_EQ(start.key.start_ticks, 100);
  EXPECT_EQ(start.uid, 1000u);
  EXPECT_EQ(start.argv, (std::vector<std::string>{"python3", "train.py"}));
  ASSERT_EQ(start.env.size(), 1u);  // the secret stays outside
  EXPECT_EQ(start.env[0].value, "0");
  EXPECT_TRUE(start.complete);
  EXPECT_TRUE(start.preexisting);
  EXPECT_EQ(result.started[1].start.parent, start.key);
}

TEST(ProcScanner, SeesTheEnvironmentThatExecGivesLater) {
  FakeProc proc;
  proc.Put({.pid = 10, .comm = "bash"});
  ProcScanner scanner(proc.Reader());
  EXPECT_TRUE(scanner.Scan({}).started.empty());
  proc.Put({.pid = 10, .environ = kRank0});
  const ScanResult result = scanner.Scan({});
  EXPECT_EQ(Pids(result), std::set<int>{10});
  EXPECT_FALSE(result.started[0].start.preexisting);
}

TEST(ProcScanner, AReusedPidOfANobodyIsLookedAtWithinItsRounds) {
  FakeProc proc;
  proc.Put({.pid = 10, .comm = "bash"});
  ProcScanner scanner(proc.Reader());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(scanner.Scan({}).started.empty());
  proc.Put({.pid = 10, .start = 200, .environ = kRank0});
  bool found = false;
  for (int i = 0; i < ProcScanner::kRelookScans && !found; ++i) {
    found = !scanner.Scan({}).started.empty();
  }
  EXPECT_TRUE(found);
}

TEST(ProcScanner, TakesTheLauncherOfRanksButNotTheirShell) {
  FakeProc proc;
  proc.Put({.pid = 20, .comm = "torchrun"});
  proc.Put(
      {.pid = 21, .parent = 20, .environ = std::string("RANK=0\0TORCHELASTIC_RUN_ID=x\0", 29)});
  proc.Put({.pid = 30, .comm = "bash"});
  proc.Put({.pid = 31, .parent = 30, .environ = kRank0});
  ProcScanner scanner(proc.Reader());
  EXPECT_EQ(Pids(scanner.Scan({})), (std::set<int>{20, 21, 31}));
}

TEST(ProcScanner, ChildrenOfAKnownRootAreItsJobs) {
  FakeProc proc;
  proc.Put({.pid = 10, .comm = "bash"});
  proc.Put({.pid = 11, .parent = 10});
  ProcScanner scanner(proc.Reader());
  ScanRequest request;
  request.tracked.emplace_back().key = {10, 100};
  request.tracked.back().job_id = "run-1";
  request.asked.push_back({10, 100});
  const ScanResult result = scanner.Scan(request);
  EXPECT_EQ(Pids(result), (std::set<int>{10, 11}));
  for (const auto& started : result.started) EXPECT_EQ(started.start.job_id, "run-1");
}

TEST(ProcScanner, SamplesWhatIsTracked) {
  FakeProc proc;
  proc.Put({.pid = 10, .environ = kRank0});
  ProcScanner scanner(proc.Reader());
  const ScanRequest request = Request(scanner.Scan({}));
  const ScanResult result = scanner.Scan(request);
  EXPECT_DOUBLE_EQ(SampleOf(result, SignalId::kCpuSeconds).value(),
                   150.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  EXPECT_DOUBLE_EQ(SampleOf(result, SignalId::kResidentBytes).value(),
                   10.0 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(SampleOf(result, SignalId::kThreads), 3.0f);
  EXPECT_EQ(SampleOf(result, SignalId::kMajorFaults), 7.0);
  EXPECT_EQ(SampleOf(result, SignalId::kSwappedBytes), 2048.0 * 1024);
  EXPECT_EQ(SampleOf(result, SignalId::kProcessState), 1.0f);
  EXPECT_EQ(SampleOf(result, SignalId::kReadBytes), 4096.0f);
  EXPECT_EQ(SampleOf(result, SignalId::kGpuDevicesOpen), 0.0f);
  EXPECT_EQ(SampleOf(result, SignalId::kHostMemoryAvailableBytes), 2048.0f);
  EXPECT_EQ(SampleOf(result, SignalId::kHostOomKills), 5.0f);
  EXPECT_TRUE(result.started.empty());
}

TEST(ProcScanner, TellsVanishedReusedAndZombie) {
  FakeProc proc;
  for (const int pid : {10, 11, 12, 13}) proc.Put({.pid = pid, .environ = kRank0});
  ProcScanner scanner(proc.Reader());
  const ScanRequest request = Request(scanner.Scan({}));
  proc.Kill(10);
  proc.Put({.pid = 11, .start = 500, .environ = kRank0});
  proc.Put({.pid = 12, .environ = kRank0, .state = 'Z', .exit_code = 9, .threads = 1});
  proc.Put({.pid = 13, .environ = kRank0, .state = 'Z', .threads = 4});  // its threads live on
  const ScanResult result = scanner.Scan(request);
  EXPECT_EQ(result.missing, (std::vector<ProcessKey>{{10, 100}, {11, 100}}));
  ASSERT_EQ(result.ended.size(), 1u);
  EXPECT_EQ(result.ended[0].key, (ProcessKey{12, 100}));
  EXPECT_EQ(result.ended[0].wait_status, 9);
  EXPECT_TRUE(result.ended[0].status_known);
  EXPECT_EQ(Pids(result), std::set<int>{11});  // the new owner of the pid
}

TEST(ProcScanner, CountsOpenGpusOnce) {
  FakeProc proc;
  proc.Put({.pid = 10});
  proc.OpenGpu(10, "/dev/nvidia0");
  proc.OpenGpu(10, "/dev/nvidia1");
  proc.OpenGpu(10, "/dev/nvidia1");
  proc.OpenGpu(10, "/dev/nvidiactl");
  ProcScanner scanner(proc.Reader());
  const ScanRequest request = Request(scanner.Scan({}));
  ASSERT_EQ(request.tracked.size(), 1u);  // no rank, but it holds a GPU
  EXPECT_EQ(SampleOf(scanner.Scan(request), SignalId::kGpuDevicesOpen), 2.0f);
}

std::string JobTold(const ScanResult& result, int pid) {
  for (const auto& started : result.started) {
    if (started.start.key.pid == pid) return started.start.job_id;
  }
  return "nobody";
}

TEST(ProcScanner, AJobsCgroupMakesAProcessTheJobsWhateverItsEnvironment) {
  FakeProc proc;
  const std::string v1 = "9:freezer:/slurm_n1/uid_1/job_7/step_0\n1:name=systemd:/init.scope\n";
  proc.Put({.pid = 10, .cgroup = v1});
  proc.Put({.pid = 11,
            .environ = std::string("RANK=0\0SLURM_JOB_ID=99\0", 23),
            .cgroup = "0::/system.slice/slurmstepd.scope/job_8/step_0/user/task_0\n"});
  // Slurm's own, and what only looks like a job's.
  proc.Put({.pid = 20, .comm = "slurmstepd", .cgroup = v1});
  proc.Put(
      {.pid = 21, .comm = "sleep", .cgroup = "5:memory:/slurm/uid_1/job_7/step_extern/task_0\n"});
  proc.Put({.pid = 22, .cgroup = "0::/system.slice/slurmstepd.scope/job_8/step_0/slurm\n"});
  proc.Put({.pid = 23,
            .environ = std::string("SLURM_JOB_ID=7\0SLURM_SCRIPT_CONTEXT=epilog_slurmd\0", 50)});
  proc.Put({.pid = 24, .cgroup = "0::/user.slice/user-1.slice/session-1.scope/job_12\n"});
  ProcScanner scanner(proc.Reader());
  const ScanResult result = scanner.Scan({});
  EXPECT_EQ(Pids(result), (std::set<int>{10, 11}));
  EXPECT_EQ(JobTold(result, 10), "7");
  EXPECT_EQ(JobTold(result, 11), "8");
  EXPECT_EQ(result.started[0].start.cgroup, "9:freezer:/slurm_n1/uid_1/job_7/step_0");
  EXPECT_TRUE(result.started[0].tracked.unranked);
  EXPECT_FALSE(result.started[1].tracked.unranked);
}

TEST(ProcScanner, WhetherAProcessIsFrozenItsCgroupSays) {
  FakeProc proc;
  const std::string rank("RANK=0\0", 7);
  proc.Put({.pid = 10, .environ = rank, .cgroup = "9:freezer:/slurm_n1/uid_1/job_7/step_0\n"});
  ProcScanner scanner(proc.Reader());
  const ScanRequest request = Request(scanner.Scan({}));
  EXPECT_EQ(SampleOf(scanner.Scan(request), SignalId::kProcessFrozen), std::nullopt);
  proc.Cgroup("freezer/slurm_n1/uid_1/job_7/step_0/freezer.state", "THAWED\n");
  EXPECT_EQ(SampleOf(scanner.Scan(request), SignalId::kProcessFrozen), 0.0f);
  proc.Cgroup("freezer/slurm_n1/uid_1/job_7/step_0/freezer.state", "FROZEN\n");
  EXPECT_EQ(SampleOf(scanner.Scan(request), SignalId::kProcessFrozen), 1.0f);
}

TEST(ProcScanner, TheFreezerOfVersionTwoIsThatOfItsOnePath) {
  FakeProc proc;
  const std::string rank("RANK=0\0", 7);
  proc.Put({.pid = 10, .environ = rank, .cgroup = "0::/s.scope/job_7/step_0/user/task_0\n"});
  proc.Put({.pid = 11, .environ = rank, .cgroup = "0::/\n"});
  proc.Cgroup("s.scope/job_7/step_0/user/task_0/cgroup.events", "populated 1\nfrozen 1\n");
  proc.Cgroup("cgroup.events", "frozen 1\n");
  ProcScanner scanner(proc.Reader());
  const ScanResult result = scanner.Scan(Request(scanner.Scan({})));
  int64_t told = 0;
  for (const SampleBatch& batch : result.samples) {
    for (const Sample& sample : batch.samples) {
      if (sample.signal != SignalId::kProcessFrozen) continue;
      ++told;
      EXPECT_EQ(batch.subject.process.pid, 10) << "the root has no freezer";
      EXPECT_EQ(sample.value, 1.0f);
    }
  }
  EXPECT_EQ(told, 1);
}

TEST(ProcScanner, HostileEnvironmentsAreReadWithinBounds) {
  FakeProc proc;
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += "X" + std::to_string(i) + "=1" + '\0';
  const std::string rank = "RANK=3";
  const size_t room = (2 << 20) - rank.size() - 3;  // beside "A=" and a terminator
  proc.Put({.pid = 10, .environ = many + rank});
  proc.Put({.pid = 11, .environ = "A=" + std::string(room - 1, 'a') + '\0' + rank});
  proc.Put({.pid = 12, .environ = "A=" + std::string(room, 'a') + '\0' + rank + "1"});
  proc.Put({.pid = 13, .environ = std::string(4 << 20, 'a')});
  proc.Put({.pid = 14, .environ = std::string("RANK=\xff\xfe\0", 8)});
  proc.Put({.pid = 15, .environ = rank, .cgroup = std::string(1 << 20, '/')});
  ProcScanner scanner(proc.Reader());
  std::map<int, ProcessStart> told;
  for (auto& started : scanner.Scan({}).started) told[started.start.key.pid] = started.start;
  ASSERT_TRUE(told.contains(10) && told.contains(11) && told.contains(14) && told.contains(15));
  EXPECT_EQ(told[10].env[0].value, "3");
  EXPECT_EQ(told[11].env[0].value, "3") << "the last of 2 MiB";
  EXPECT_FALSE(told.contains(12)) << "half a value is another one";
  EXPECT_FALSE(told.contains(13));
  EXPECT_EQ(told[14].env[0].value, "\xff\xfe") << "what it means is decided inside";
  EXPECT_LE(told[15].cgroup.size(), attribution::kCarriedCgroupCap);
}

TEST(ProcScanner, WhoOnlyNamesAJobDoesNotShowItsMemory) {
  FakeProc proc;
  const std::string job = "/system.slice/slurmstepd.scope/job_7";
  proc.Put({.pid = 10,
            .environ = std::string("RANK=0\0SLURM_JOB_ID=7\0", 22),
            .cgroup = "0::/user.slice/user-1.slice\n"});
  proc.Put({.pid = 11, .cgroup = "0::" + job + "/step_0/user/task_0\n"});
  proc.Cgroup("user.slice/user-1.slice/memory.current", "5\n");
  proc.Cgroup(job + "/memory.current", "1000\n");
  ProcScanner scanner(proc.Reader());
  EXPECT_EQ(SampleOf(scanner.Scan({}), SignalId::kJobMemoryBytes), 1000.0f);
}

TEST(ProcScanner, ReadsTheJobsMemoryOfVersionTwo) {
  FakeProc proc;
  const std::string job = "/system.slice/slurmstepd.scope/job_7";
  proc.Put({.pid = 10,
            .environ = std::string("RANK=0\0SLURM_JOB_ID=7\0", 22),
            .cgroup = "0::" + job + "/step_0/user/task_0\n"});
  proc.Cgroup(job + "/memory.current", "1000\n");
  proc.Cgroup(job + "/memory.max", "2000\n");
  proc.Cgroup(job + "/memory.events", "oom 1\noom_kill 1\noom_group_kill 0\n");
  ProcScanner scanner(proc.Reader());
  const ScanResult result = scanner.Scan({});
  EXPECT_EQ(SampleOf(result, SignalId::kJobMemoryBytes), 1000.0f);
  EXPECT_EQ(SampleOf(result, SignalId::kJobMemoryLimitBytes), 2000.0f);
  EXPECT_EQ(SampleOf(result, SignalId::kJobOomKills), 1.0f);
  EXPECT_EQ(result.samples.back().subject.name, "7");
}

TEST(ProcScanner, VersionOneKeepsTheCountOfATaskThatIsGone) {
  FakeProc proc;
  const std::string environment("RANK=0\0SLURM_JOB_ID=7\0", 22);
  const auto put = [&](int pid, const std::string& task) {
    proc.Put({.pid = pid,
              .environ = environment,
              .cgroup = "4:memory:/slurm/uid_1/job_7/step_0/" + task + "\n"});
    proc.Cgroup("memory/slurm/uid_1/job_7/step_0/" + task + "/memory.oom_control", "oom_kill 0\n");
  };
  put(10, "task_0");
  put(11, "task_1");
  proc.Cgroup("memory/slurm/uid_1/job_7/memory.oom_control", "oom_kill_disable 0\noom_kill 0\n");
  proc.Cgroup("memory/slurm/uid_1/job_7/memory.limit_in_bytes", "9223372036854771712\n");
  ProcScanner scanner(proc.Reader());
  const ScanRequest request = Request(scanner.Scan({}));
  proc.Cgroup("memory/slurm/uid_1/job_7/step_0/task_1/memory.oom_control", "oom_kill 1\n");
  EXPECT_EQ(SampleOf(scanner.Scan(request), SignalId::kJobOomKills), 1.0f);
  proc.Kill(11);
  const ScanResult result = scanner.Scan(request);
  EXPECT_EQ(SampleOf(result, SignalId::kJobOomKills), 1.0f);
  EXPECT_EQ(SampleOf(result, SignalId::kJobMemoryLimitBytes), std::nullopt);  // unlimited
}

TEST(Procfs, TellsBirthAndDeathOnceThroughTheLoop) {
  FakeProc proc;
  proc.Put({.pid = 10, .environ = kRank0});
  exporter::EventLoop loop;
  auto table = std::make_shared<ProcessTable>();
  Procfs procfs(proc.Reader(), table, Milliseconds(5));
  RecordingSink sink;
  sink.on_accept = [&](const Observation& observation) {
    if (std::holds_alternative<ProcessStart>(observation.kind)) proc.Kill(10);
    if (std::holds_alternative<ProcessExit>(observation.kind)) loop.Stop();
  };
  proc.Put({.pid = 12});  // somebody else stays
  ASSERT_TRUE(procfs.Start(loop, sink).ok());
  loop.Run();
  procfs.Stop();
  ASSERT_EQ(sink.Of<ProcessStart>().size(), 1u);
  ASSERT_EQ(sink.Of<ProcessExit>().size(), 1u);
  EXPECT_FALSE(sink.Of<ProcessExit>()[0].status_known);
  EXPECT_TRUE(table->processes().empty());
}

TEST(Procfs, WithoutProcItSaysSo) {
  exporter::EventLoop loop;
  RecordingSink sink;
  Procfs procfs(ProcReader("/nonexistent", "/nonexistent", [](std::string_view) { return true; }),
                std::make_shared<ProcessTable>(), Seconds(1));
  const Status status = procfs.Start(loop, sink);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().find("mount"), std::string::npos);
}

TEST(ProcessTable, IsBoundedAndCountsWhatItDrops) {
  ProcessTable table;
  for (int pid = 1; pid <= static_cast<int>(ProcessTable::kMaxTracked) + 3; ++pid) {
    TrackedProcess process;
    process.key = {pid, 1};
    table.Add(process);
  }
  EXPECT_EQ(table.processes().size(), ProcessTable::kMaxTracked);
  EXPECT_EQ(table.dropped(), 3);
  table.Remove({1, 2});  // another start: not that process
  EXPECT_NE(table.Find(1), nullptr);
  table.Remove({1, 1});
  EXPECT_EQ(table.Find(1), nullptr);
}

}  // namespace
}  // namespace rankscope::collectors
