// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/proc_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace rankscope::collectors {
namespace {

constexpr size_t kSmallFile =
    16 * 1024;  // stat, status, cgroup, io and the cgroup files are below 4 KiB
constexpr size_t kArgumentsFile = 32 * 1024;  // kMaxArguments * kMaxArgumentBytes
// ARG_MAX, which arguments share; a launcher adds a rank's variables at the end. Real jobs stay
// below 64 KiB.
constexpr size_t kEnvironmentFile = 2 << 20;
constexpr int kMaxDescriptors = 8192;  // file descriptors looked at per process

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

}  // namespace

ProcReader::ProcReader(std::string proc_root, std::string cgroup_root, KeepKey keep)
    : proc_(std::move(proc_root)),
      cgroup_(std::move(cgroup_root)),
      keep_(keep),
      sluids_(std::make_shared<SluidTable>(proc_, cgroup_)) {}

std::optional<std::string> ProcReader::ReadFile(const std::string& path, size_t limit) const {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  size_t used = 0;
  for (;;) {
    text.resize(std::min(limit, used + std::max<size_t>(used, 4096)));
    const ssize_t n = used < text.size() ? read(fd, text.data() + used, text.size() - used) : 0;
    if (n < 0) {
      close(fd);
      return std::nullopt;
    }
    used += static_cast<size_t>(n);
    if (n == 0) break;
  }
  close(fd);
  text.resize(used);
  return text;
}

std::string ProcReader::OfProcess(int32_t pid, const char* name) const {
  return proc_ + '/' + std::to_string(pid) + '/' + name;
}

std::vector<int32_t> ProcReader::Pids() const {
  std::vector<int32_t> pids;
  const Directory directory(opendir(proc_.c_str()), closedir);
  if (!directory) return pids;
  while (const dirent* entry = readdir(directory.get())) {
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    int32_t pid = 0;
    const auto [stop, error] = std::from_chars(entry->d_name, end, pid);
    if (error == std::errc() && stop == end && pid > 0) pids.push_back(pid);
  }
  return pids;
}

std::optional<StatLine> ProcReader::Stat(int32_t pid) const {
  const auto text = ReadFile(OfProcess(pid, "stat"), kSmallFile);
  return text ? ParseStat(*text) : std::nullopt;
}

std::optional<ProcessFacts> ProcReader::Facts(const StatLine& stat) const {
  ProcessFacts facts;
  ProcessStart& start = facts.start;
  start.key = {stat.pid, stat.start_ticks};
  start.comm = stat.comm;
  if (const auto parent = Stat(stat.parent)) start.parent = {parent->pid, parent->start_ticks};
  const auto arguments = ReadFile(OfProcess(stat.pid, "cmdline"), kArgumentsFile);
  auto environ = ReadFile(OfProcess(stat.pid, "environ"), kEnvironmentFile);
  const auto status = ReadFile(OfProcess(stat.pid, "status"), kSmallFile);
  const auto cgroup = ReadFile(OfProcess(stat.pid, "cgroup"), kSmallFile);
  if (arguments) start.argv = ParseArguments(*arguments);
  const bool cut = environ && environ->size() == kEnvironmentFile;
  if (cut) environ->resize(environ->rfind('\0') + 1);  // half a value is another one
  if (environ) facts.environment = ParseEnvironment(*environ, keep_);
  start.env = std::move(facts.environment.kept);
  if (const auto parsed = status ? ParseStatus(*status) : std::nullopt) {
    start.uid = parsed->uid;
    start.ns_pids = parsed->ns_pids;
  }
  if (cgroup) {
    facts.cgroup = ParseCgroup(*cgroup);
    const std::string named = sluids_->WithJobId(*cgroup);
    facts.owner = attribution::ReadCgroup(named);
    start.cgroup = attribution::CarriedCgroup(named);
  }
  start.gpu_minors = AllowedGpus(facts.cgroup);
  start.complete = arguments && environ && !cut && status && cgroup;
  const auto again = Stat(stat.pid);
  if (!again || again->start_ticks != stat.start_ticks) return std::nullopt;
  return facts;
}

std::optional<IoCounters> ProcReader::Io(int32_t pid) const {
  const auto text = ReadFile(OfProcess(pid, "io"), kSmallFile);
  return text ? ParseIo(*text) : std::nullopt;
}

MemoryShortage ProcReader::Shortage(int32_t pid) const {
  const auto stat = ReadFile(OfProcess(pid, "stat"), kSmallFile);
  const auto status = ReadFile(OfProcess(pid, "status"), kSmallFile);
  return ParseMemoryShortage(stat.value_or(""), status.value_or(""));
}

std::vector<int32_t> ProcReader::AllowedGpus(const CgroupPaths& cgroup) const {
  if (cgroup.devices.empty()) return {};
  const auto list = ReadFile(cgroup_ + "/devices" + cgroup.devices + "/devices.list", kSmallFile);
  return list ? ParseGpuDevices(*list) : std::vector<int32_t>();
}

bool ProcReader::HasGpuDriver() const {
  return access((proc_ + "/driver/nvidia").c_str(), F_OK) == 0;
}

int32_t ProcReader::OpenGpus(int32_t pid) const {
  const std::string path = OfProcess(pid, "fd");
  const Directory directory(opendir(path.c_str()), closedir);
  if (!directory) return 0;
  std::vector<std::string> gpus;
  char link[64];
  for (int looked = 0; looked < kMaxDescriptors; ++looked) {
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) break;
    const ssize_t n = readlinkat(dirfd(directory.get()), entry->d_name, link, sizeof link);
    if (n <= 0) continue;
    const std::string_view target(link, static_cast<size_t>(n));
    if (!IsGpuDevice(target)) continue;
    if (std::find(gpus.begin(), gpus.end(), target) == gpus.end()) gpus.emplace_back(target);
  }
  return static_cast<int32_t>(gpus.size());
}

std::optional<int64_t> ProcReader::HostMemoryAvailable() const {
  const auto text = ReadFile(proc_ + "/meminfo", kSmallFile);
  return text ? FindNumber(*text, "MemAvailable") : std::nullopt;
}

std::optional<int64_t> ProcReader::HostOomKills() const {
  const auto text = ReadFile(proc_ + "/vmstat", kSmallFile);
  return text ? FindNumber(*text, "oom_kill") : std::nullopt;
}

MemoryCgroup ProcReader::Memory(const std::string& directory, bool v1) const {
  const std::string base = cgroup_ + (v1 ? "/memory" : "") + directory;
  const auto current =
      ReadFile(base + (v1 ? "/memory.usage_in_bytes" : "/memory.current"), kSmallFile);
  const auto limit = ReadFile(base + (v1 ? "/memory.limit_in_bytes" : "/memory.max"), kSmallFile);
  const auto events = ReadFile(base + (v1 ? "/memory.oom_control" : "/memory.events"), kSmallFile);
  MemoryCgroup memory;
  if (current) memory.current_bytes = ParseLimit(*current);
  if (limit) memory.limit_bytes = ParseLimit(*limit);
  if (events) memory.oom_kills = FindNumber(*events, "oom_kill");
  return memory;
}

std::optional<CgroupPaths> ProcReader::Cgroup(int32_t pid) const {
  const auto text = ReadFile(OfProcess(pid, "cgroup"), kSmallFile);
  return text ? std::optional<CgroupPaths>(ParseCgroup(*text)) : std::nullopt;
}

std::optional<bool> ProcReader::Frozen(const std::string& directory, bool v1) const {
  const std::string base = cgroup_ + (v1 ? "/freezer" : "") + directory;
  const auto text = ReadFile(base + (v1 ? "/freezer.state" : "/cgroup.events"), kSmallFile);
  return text ? ParseFrozen(*text, v1) : std::nullopt;
}

std::optional<double> ProcReader::CpuQuota(const std::string& directory, bool v1) const {
  const std::string base = cgroup_ + (v1 ? "/cpu" : "") + directory;
  if (!v1) {
    const auto text = ReadFile(base + "/cpu.max", kSmallFile);
    return text ? ParseCpuQuota(*text) : std::nullopt;
  }
  const auto quota = ReadFile(base + "/cpu.cfs_quota_us", kSmallFile);
  const auto period = ReadFile(base + "/cpu.cfs_period_us", kSmallFile);
  if (!quota || !period) return std::nullopt;
  return ParseCpuQuota(quota->substr(0, quota->find('\n')) + " " + *period);
}

CpuPeriods ProcReader::Periods(const std::string& directory, bool v1) const {
  const auto text = ReadFile(cgroup_ + (v1 ? "/cpu" : "") + directory + "/cpu.stat", kSmallFile);
  if (!text) return {};
  return {FindNumber(*text, "nr_periods"), FindNumber(*text, "nr_throttled")};
}

std::string ProcReader::BootId() const {
  auto text = ReadFile(proc_ + "/sys/kernel/random/boot_id", kSmallFile).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace rankscope::collectors
