// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Slurm 26.05 names a job's cgroup by its SLUID instead of its number (unless cgroup.conf has
// CgroupJobIdPaths=yes). The number stands in the title that the step's daemon gives itself,
// "slurmstepd: [7312.0]"; its pid is in step_<step>/slurm/cgroup.procs of the job's directory. So
// no prolog is needed. The title is believed of a process of root with slurmstepd's name: only root
// can put a process into that directory. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace rankscope::collectors {

// The number in a title: "slurmstepd: [7312.0]", "[7312.batch]", "[7312+1.0]". Empty: none. Pure.
std::string JobOfTitle(std::string_view title);

class SluidTable {
 public:
  SluidTable(std::string proc_root, std::string cgroup_root);

  // `cgroup`: the text of /proc/PID/cgroup, or one path. The same with the job's number added where
  // a directory is named by a SLUID (attribution::NameSluid); unchanged where there is none, or
  // where no step's daemon names the number.
  std::string WithJobId(std::string_view cgroup);

 private:
  static constexpr size_t kMaxJobs = 1024;

  std::string JobOf(std::string_view directory);
  std::string ReadJobOf(std::string_view directory) const;

  const std::string proc_root_;
  const std::string cgroup_root_;
  std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> jobs_;  // directory -> number
};

}  // namespace rankscope::collectors
