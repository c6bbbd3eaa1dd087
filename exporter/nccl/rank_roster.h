// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which of the tracked processes are ranks, and where each says that its libraries report:
// variables read from /proc at most a few times per process, the namespaces it lives in, and the
// job it is of. A data loader's worker inherits all of it from its rank; the oldest process of a
// rank is the rank. Used by one thread at a time: the worker's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/processes/process_table.h"

namespace rankscope::collectors {

struct RankProcess {
  TrackedProcess tracked;
  int32_t rank = -1;
  std::string group;  // the job: its id, or its topmost tracked process
  std::map<std::string, std::string, std::less<>> environment;
  uint64_t mount_namespace = 0;    // inode; 0 = not known
  uint64_t network_namespace = 0;  // the same
  int64_t begin_wall_s = 0;        // seconds since 1970; 0 = not known

  std::string_view Variable(std::string_view name) const;
};

class RankRoster {
 public:
  explicit RankRoster(std::string proc_root = "/proc");

  // Looks at new processes and forgets those that have gone.
  void Update(const std::vector<TrackedProcess>& tracked);

  // One process per rank and job, by pid.
  const std::map<int32_t, RankProcess>& ranks() const { return ranks_; }
  // Ranks that the last Update has found gone.
  const std::vector<RankProcess>& departed() const { return departed_; }

  const std::string& proc_root() const { return proc_; }
  uint64_t own_mount_namespace() const { return own_mount_namespace_; }
  uint64_t own_network_namespace() const { return own_network_namespace_; }

 private:
  struct Look {
    int64_t start_ticks = 0;
    int looks = 0;
  };
  bool Read(const TrackedProcess& tracked, RankProcess& process) const;
  uint64_t Namespace(int32_t pid, const char* kind) const;

  std::string proc_;
  uint64_t own_mount_namespace_ = 0;
  uint64_t own_network_namespace_ = 0;
  int64_t boot_wall_s_ = 0;
  std::map<int32_t, Look> others_;  // no rank so far
  std::map<int32_t, RankProcess> all_;
  std::map<int32_t, RankProcess> ranks_;
  std::vector<RankProcess> departed_;
};

}  // namespace rankscope::collectors
