// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whose a process is, by the names of its cgroups. A job's directories are made by root and a
// process does not leave them, whatever it does to its environment:
//
//   v1  .../slurm[_<node>]/uid_<uid>/job_<id>/step_<step>[/task_<n>]
//   v2  .../[<node>_]slurmstepd.scope/job_<id>/step_<step>/{slurm,user/task_<n>,user/task_special}
//
// Slurm 26.05 names the job's directory of v2 by its SLUID instead, unless CgroupJobIdPaths=yes. No
// path has the number then: who reads the path adds it ("job_<id>@<sluid>", see NameSluid).
//
// What stands before is the machine's own: a slurmd in a pod has the pod's path there, so these are
// found anywhere in a path. The outermost is believed, because what is below a job may be its
// user's to make; so is what is below user@<uid>.service, where none is believed. Pure, takes any
// bytes. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rankscope::attribution {

enum class CgroupLayout : uint8_t {
  kNone,    // no path names a job
  kV1,      // the job is in a hierarchy of v1
  kV2,      // the job is in the one hierarchy of v2
  kHybrid,  // as kV1, on a machine that has both
};

struct CgroupFacts {
  std::string job_id;     // Slurm's number; empty: none
  std::string step_id;    // a number, "0+1" of a heterogeneous step, batch, extern, interactive
  int32_t task = -1;      // of the step; Slurm's versions count it on the node or in the step
  int64_t uid = -1;       // v1 only
  std::string sluid;      // where the number was found by it
  std::string node_name;  // of a host that runs several slurmd
  bool slurm_process = false;  // the directory of Slurm's own process (v2)
  std::string container_id;    // the innermost: 64 hexadecimal digits, or the name of an LXC one
  std::string pod_uid;         // with dashes
  CgroupLayout layout = CgroupLayout::kNone;

  bool operator==(const CgroupFacts&) const = default;
};

// A path of the kernel's is shorter; a longer one says nothing.
constexpr size_t kCgroupPathCap = 4096;
// Lines looked at: a kernel has at most 13 hierarchies of v1, and systemd's.
constexpr size_t kCgroupLinesCap = 32;

// `text`: of /proc/PID/cgroup, whole or some of its lines; or one path.
CgroupFacts ReadCgroup(std::string_view text);

// The lines of a /proc/PID/cgroup that ReadCgroup needs to say the same, as far as they fit into
// kCarriedCgroupCap; of a process that is in no job and no container, the longest path. One path
// where the file has but one.
constexpr size_t kCarriedCgroupCap = 1024;
std::string CarriedCgroup(std::string_view text);

// A job's identity in the cluster since Slurm 26.05: "s" and 13 characters of Crockford's base32.
bool IsSluid(std::string_view component);

// The part of `path` that ends with a job's directory named by a SLUID; empty where there is none.
std::string_view SluidDirectory(std::string_view path);

// `path` (or the text of /proc/PID/cgroup), whose SluidDirectory is `directory`, with the job's
// number added to it. `directory` must be a part of `text`.
std::string NameSluid(std::string_view text, std::string_view directory, std::string_view job_id);

// v1 | v2 | hybrid; empty for kNone.
std::string_view NameOf(CgroupLayout layout);

}  // namespace rankscope::attribution
