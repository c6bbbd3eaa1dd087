// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Slurm 26.05 names a job's cgroup by its SLUID instead of its number (unless cgroup.conf has
// CgroupJobIdPaths=yes). The number stands in the title that the step's daemon gives itself,
// "slurmstepd: [7312.0]"; its pid is in step_<step>/slurm/cgroup.procs of the job's directory. So
// no prolog is needed. The title is believed of a process of root with slurmstepd's name: only root
// can put a process into that directory. Any thread.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace rankscope::collectors {

// The number in a title: "slurmstepd: [7312.0]", "[7312.batch]", "[7312+1.0]". Empty: none. Pure.
std::string JobOfTitle(std::string_view title);

class SluidTable {
 public:
  // A directory whose job nobody names is read again after `retry` at the earliest.
  SluidTable(std::string proc_root, std::string cgroup_root,
             std::chrono::milliseconds retry = std::chrono::seconds(1));

  // `cgroup`: the text of /proc/PID/cgroup, or one path. The same with the job's number added where
  // a directory is named by a SLUID (attribution::NameSluid); unchanged where there is none, or
  // where no step's daemon names the number.
  std::string WithJobId(std::string_view cgroup);

 private:
  static constexpr size_t kMaxJobs = 1024;

  std::string JobOf(std::string_view directory);
  std::string ReadJobOf(std::string_view directory) const;

  struct Unnamed {
    std::string directory;
    std::chrono::steady_clock::time_point retry;
  };

  const std::string proc_root_;
  const std::string cgroup_root_;
  const std::chrono::milliseconds retry_;
  std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> jobs_;  // directory -> number
  Unnamed unnamed_;  // the newest; each exec in it would read all its steps
};

}  // namespace rankscope::collectors
