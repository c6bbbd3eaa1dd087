// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/ras_roster.h"

#include <map>
#include <utility>

namespace rankscope::reports {
namespace {

constexpr size_t kMaxText = 256;

// By rank; empty where a rank is missing, or is told twice.
std::vector<RasMember> MembersOf(const RasCommunicator& communicator) {
  const auto size = static_cast<size_t>(std::max(communicator.size, 0));
  if (size == 0 || size > RasRoster::kMaxMembers || communicator.ranks.size() != size) return {};
  std::vector<RasMember> members(size);
  for (const RasRank& rank : communicator.ranks) {
    if (rank.rank < 0 || rank.rank >= communicator.size || rank.pid <= 0) return {};
    RasMember& member = members[static_cast<size_t>(rank.rank)];
    if (member.rank >= 0) return {};
    member = {rank.rank, rank.host.substr(0, kMaxText), rank.pid, rank.cuda_device,
              rank.nvml_device};
  }
  return members;
}

}  // namespace

RasRoster ReadRoster(const RasReport& report) {
  int32_t largest = 0;
  for (const RasCommunicator& communicator : report.communicators)
    largest = std::max(largest, communicator.size);
  RasRoster roster;
  for (const RasCommunicator& communicator : report.communicators) {
    if (communicator.size != largest) continue;
    std::vector<RasMember> members = MembersOf(communicator);
    if (members.empty()) continue;
    if (!roster.members.empty() && roster.members != members) return {};
    if (roster.members.empty()) roster = {communicator.id.substr(0, kMaxText), std::move(members)};
  }
  return roster;
}

std::string HostOf(const RasRoster& roster, const std::set<int64_t>& pids) {
  if (pids.empty()) return {};
  std::map<std::string_view, std::set<int64_t>> by_host;
  for (const RasMember& member : roster.members) by_host[member.host].insert(member.pid);
  std::string_view found;
  for (const auto& [host, theirs] : by_host) {
    if (theirs != pids) continue;
    if (!found.empty()) return {};
    found = host;
  }
  return std::string(found);
}

}  // namespace rankscope::reports
