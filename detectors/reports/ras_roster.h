// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whom NCCL's RAS knows as the ranks of the whole job: process and number of each, and on which
// host. A report in JSON lists them, the text names only who stands out. Numbers in a communicator
// are the job's where it is of all ranks. Pure. Any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "detectors/reports/ras_report.h"

namespace rankscope::reports {

struct RasMember {
  int32_t rank = -1;
  std::string host;
  int64_t pid = -1;          // as the process sees it
  int32_t cuda_device = -1;  // as the process counts them, and
  int32_t nvml_device = -1;  // as NVML does for it: a container, or a job's cgroup, hides cards

  bool operator==(const RasMember&) const = default;
  template <class A>
  void Fields(A& a) {
    a(rank, host, pid, cuda_device, nvml_device);
  }
};

struct RasRoster {
  // Of each 100 bytes; a report in JSON that is told has some hundred ranks.
  static constexpr size_t kMaxMembers = 1024;
  std::string communicator;
  std::vector<RasMember> members;  // by rank, from 0 without a gap

  int32_t size() const { return static_cast<int32_t>(members.size()); }
  template <class A>
  void Fields(A& a) {
    a(communicator, members);
    if (members.size() > kMaxMembers) members.resize(kMaxMembers);
  }
};

// The members of the largest communicator; none where it is not listed whole, or where another one
// of its size numbers the same processes in another way.
RasRoster ReadRoster(const RasReport& report);

// The host of the roster that has just these processes. Empty: none has, or several have.
std::string HostOf(const RasRoster& roster, const std::set<int64_t>& pids);

}  // namespace rankscope::reports
