// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/ras_check.h"

#include <set>

namespace rankscope::features {

using reports::RasMember;

const RasMember* RasCheck::Find(int64_t pid) const {
  if (roster == nullptr || host.empty()) return nullptr;
  const RasMember* found = nullptr;
  for (const RasMember& member : roster->members) {
    if (member.pid != pid || member.host != host) continue;
    if (found != nullptr) return nullptr;
    found = &member;
  }
  return found;
}

RasCheck CheckRas(const windows::JobWindow& job, const windows::AttemptWindow& window) {
  RasCheck check;
  const reports::RasRoster& roster = window.kernel.reports.roster();
  if (roster.members.empty()) return check;
  check.roster = &roster;
  std::set<int64_t> pids;
  for (const auto& [rank, known] : job.ranks()) pids.insert(known.inner_pid());
  check.host = reports::HostOf(roster, pids);
  check.of_all_ranks = roster.size() == job.world_size();
  if (!check.of_all_ranks) return check;
  for (const auto& [rank, known] : job.ranks()) {
    const RasMember* member = check.Find(known.inner_pid());
    if (member != nullptr && member->rank != rank) check.otherwise.push_back({rank, member->rank});
  }
  return check;
}

std::string RasLine(const RasCheck& check, int32_t rank, int64_t pid) {
  if (check.roster == nullptr) return {};
  if (check.host.empty())
    return "which of its hosts this node is cannot be told: none has just the ranks known here, or "
           "several have";
  const RasMember* member = check.Find(pid);
  if (member == nullptr) return "none of its ranks is this process alone";
  std::string line = "rank " + std::to_string(member->rank) + " of " +
                     std::to_string(check.roster->size()) + ", process " +
                     std::to_string(member->pid) + " on " + member->host;
  if (member->cuda_device >= 0) line += ", CUDA device " + std::to_string(member->cuda_device);
  if (member->nvml_device >= 0)
    line += ", NVML device " + std::to_string(member->nvml_device) + " of those that it may open";
  if (!check.of_all_ranks) return line + "; a communicator of some ranks has numbers of its own";
  return line + (member->rank == rank ? "; the same rank" : "; another rank");
}

}  // namespace rankscope::features
