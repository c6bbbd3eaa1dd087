// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reads /proc and the memory cgroups below given roots. Reading the arguments or the environment of
// a process can hang for as long as that process holds its own memory map (a stuck driver call
// does), so those calls belong on a Worker; Stat never waits. Immutable after construction; any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "detectors/attribution/cgroup_path.h"
#include "exporter/processes/proc_memory.h"
#include "exporter/processes/proc_text.h"
#include "exporter/processes/sluid_table.h"

namespace rankscope::collectors {

struct ProcessFacts {
  ProcessStart start;
  Environment environment;  // `kept` has moved into start.env
  CgroupPaths cgroup;
  attribution::CgroupFacts owner;  // whose the process is, by its cgroups
};

struct MemoryCgroup {
  std::optional<int64_t> current_bytes;
  std::optional<int64_t> limit_bytes;
  std::optional<int64_t> oom_kills;  // v1: of this directory alone; v2: of the whole subtree
};

// Of the quota of a cgroup's CPU time.
struct CpuPeriods {
  std::optional<int64_t> all;
  std::optional<int64_t> throttled;  // in which it was used up
};

class ProcReader {
 public:
  ProcReader(std::string proc_root, std::string cgroup_root, KeepKey keep);

  std::vector<int32_t> Pids() const;
  std::optional<StatLine> Stat(int32_t pid) const;
  // Everything about one process, or nothing when it ended or was replaced meanwhile.
  std::optional<ProcessFacts> Facts(const StatLine& stat) const;
  std::optional<IoCounters> Io(int32_t pid) const;
  MemoryShortage Shortage(int32_t pid) const;
  // GPUs whose device node the process holds open; 0 where no driver is loaded.
  int32_t OpenGpus(int32_t pid) const;
  // By their device nodes' numbers, of a process in this cgroup; empty: all, or not known. cgroup
  // v2 rules devices by a program, which tells nothing.
  std::vector<int32_t> AllowedGpus(const CgroupPaths& cgroup) const;
  bool HasGpuDriver() const;
  std::optional<int64_t> HostMemoryAvailable() const;
  std::optional<int64_t> HostOomKills() const;
  MemoryCgroup Memory(const std::string& directory, bool v1) const;
  std::optional<CgroupPaths> Cgroup(int32_t pid) const;
  // Whether the processes of the cgroup stand still by its freezer, or that of one above it.
  std::optional<bool> Frozen(const std::string& directory, bool v1) const;
  // The CPU quota that is set for this very cgroup, in CPUs; nullopt: none, or it cannot be read.
  std::optional<double> CpuQuota(const std::string& directory, bool v1) const;
  CpuPeriods Periods(const std::string& directory, bool v1) const;
  std::string BootId() const;
  // Copies of a reader share what they know of SLUIDs.
  SluidTable& sluids() const { return *sluids_; }

 private:
  std::optional<std::string> ReadFile(const std::string& path, size_t limit) const;
  std::string OfProcess(int32_t pid, const char* name) const;

  std::string proc_;
  std::string cgroup_;
  KeepKey keep_;
  std::shared_ptr<SluidTable> sluids_;
};

}  // namespace rankscope::collectors
