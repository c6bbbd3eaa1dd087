// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The texts of /proc and of cgroups as values. Every function is pure and takes any bytes: a
// process chooses its own name, arguments and environment. Layouts: proc(5),
// Documentation/admin-guide/cgroup-v{1,2}. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope::collectors {

// /proc/PID/stat
struct StatLine {
  int32_t pid = 0;
  std::string comm;
  char state = '?';
  int32_t parent = 0;
  int64_t cpu_ticks = 0;  // user and system
  int64_t threads = 0;
  int64_t start_ticks = 0;
  int64_t resident_pages = 0;
  int32_t exit_code = 0;  // as waitpid gives it; readable for a zombie of our own user, or by root
};
std::optional<StatLine> ParseStat(std::string_view text);

// /proc/PID/cmdline: at most kMaxArguments elements of kMaxArgumentBytes.
inline constexpr size_t kMaxArguments = 64;
inline constexpr size_t kMaxArgumentBytes = 512;
std::vector<std::string> ParseArguments(std::string_view bytes);

// /proc/PID/environ. Of one variable that stands twice the first counts, as getenv(3) has it. At
// most kMaxKept are kept, of each kMaxValueBytes.
inline constexpr size_t kMaxKept = 256;  // a node's whole NCCL and Slurm environment has below 150
inline constexpr size_t kMaxValueBytes = 4096;
using KeepKey = bool (*)(std::string_view key);
struct Environment {
  bool ranked = false;  // a launcher or scheduler has told this process its place in a job
  bool from_launcher =
      false;  // its parent is the launcher, not a shell: that one belongs to the job as well
  bool slurm_script = false;  // a prolog or epilog: of no job's processes, though it names one
  std::string slurm_job_id;
  std::vector<KeyValue> kept;
};
Environment ParseEnvironment(std::string_view bytes, KeepKey keep);

// /proc/PID/status
struct StatusFacts {
  uint32_t uid = 0;
  std::vector<int32_t> ns_pids;  // outermost first
};
std::optional<StatusFacts> ParseStatus(std::string_view text);

// /proc/PID/io: bytes that reached or left storage.
struct IoCounters {
  int64_t read_bytes = 0;
  int64_t write_bytes = 0;
};
std::optional<IoCounters> ParseIo(std::string_view text);

// /proc/PID/cgroup
struct CgroupPaths {
  std::string unified;  // cgroup v2; "/" on a v1 machine
  std::string memory;   // the v1 memory controller; empty on v2
  std::string devices;  // the v1 devices controller; empty on v2
  std::string freezer;  // the v1 freezer controller; empty on v2
  std::string cpu;      // the v1 cpu controller; empty on v2
};
CgroupPaths ParseCgroup(std::string_view text);

// The directory of the job within the path of one of its processes: ".../job_5/step_0/task_1" ->
// ".../job_5"; that of a SLUID too; unchanged where none is named so.
std::string_view JobCgroup(std::string_view path);

// Numbers of the GPUs' device nodes that a devices.list of cgroup v1 lets be opened, rising; empty
// where it lets all, or none.
std::vector<int32_t> ParseGpuDevices(std::string_view text);

// A freezer.state of cgroup v1, or a cgroup.events of v2: whether all that is in it stands still.
std::optional<bool> ParseFrozen(std::string_view text, bool v1);

// In CPUs, of a cpu.max of cgroup v2, or of cpu.cfs_quota_us and cpu.cfs_period_us of v1, with a
// blank between them; nullopt: no limit.
std::optional<double> ParseCpuQuota(std::string_view text);

// "key 12" or "key:   12 kB" on a line of its own; kB are multiplied out.
std::optional<int64_t> FindNumber(std::string_view text, std::string_view key);

// A cgroup's limit in bytes; nullopt for "max" and for v1's 2^63 minus a page.
std::optional<int64_t> ParseLimit(std::string_view text);

// A device node of one GPU: "/dev/nvidia0", not nvidiactl, nvidia-uvm or nvidia-caps.
bool IsGpuDevice(std::string_view link);

}  // namespace rankscope::collectors
