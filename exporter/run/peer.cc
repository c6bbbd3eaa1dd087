// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <vector>

#include "detectors/attribution/cgroup_path.h"
#include "exporter/loop/small_file.h"
#include "exporter/processes/sluid_table.h"
#include "exporter/run/process_facts.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; Debian 12's headers are older
#endif

namespace rankscope::run {
namespace {

// Children that are looked at. The command is the wrapper's first child, and it has one more.
constexpr size_t kMostChildren = 64;

std::string OfProcess(int32_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

std::vector<int32_t> Numbers(std::string_view text, size_t most) {
  std::vector<int32_t> numbers;
  while (numbers.size() < most) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    int32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) break;
    numbers.push_back(number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return numbers;
}

// The process that connected, by a descriptor that stays its own. Before Linux 6.5 the pid may have
// been given away between the connection and this call; the caller compares its user.
OwnedFd OpenPeer(int socket, pid_t pid) {
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) return OwnedFd(pidfd);
  return OwnedFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// A descriptor of a process is readable once it has ended.
bool IsAlive(const OwnedFd& pidfd) {
  pollfd polled{pidfd.get(), POLLIN, 0};
  return pidfd && poll(&polled, 1, 0) == 0;
}

// What is asked here is asked of this machine's own /proc.
collectors::SluidTable& Sluids() {
  static collectors::SluidTable table("/proc", "/sys/fs/cgroup");
  return table;
}

int32_t ParentOf(std::string_view stat) {
  // The name in parentheses may hold anything; behind the last one: state, parent.
  stat.remove_prefix(std::min(stat.rfind(')') + 1, stat.size()));
  if (stat.size() < 4) return 0;
  const std::vector<int32_t> parent = Numbers(stat.substr(3), 1);
  return parent.empty() ? 0 : parent[0];
}

// Outermost first, as the daemon's own namespace sees them.
std::vector<int32_t> NamespacePids(std::string_view status) {
  constexpr std::string_view kKey = "\nNSpid:";
  const size_t at = status.find(kKey);
  if (at == std::string_view::npos) return {};
  constexpr size_t kDeepest = 33;  // MAX_PID_NS_LEVEL and one
  return Numbers(status.substr(at + kKey.size()), kDeepest);
}

// By its real user: a command that is set-user-ID runs with another's rights from its first moment.
std::optional<uint32_t> RealUser(std::string_view status) {
  constexpr std::string_view kKey = "\nUid:";
  const size_t at = status.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  status.remove_prefix(at + kKey.size());
  status.remove_prefix(std::min(status.find_first_not_of(" \t"), status.size()));
  uint32_t uid = 0;
  const auto [end, error] = std::from_chars(status.data(), status.data() + status.size(), uid);
  return error == std::errc() ? std::optional(uid) : std::nullopt;
}

std::optional<ForkedProcess> ReadChild(int32_t pid, const ProcessKey& parent, uint32_t uid,
                                       const ProcessKey& claimed) {
  const std::string status = ReadSmallFile(OfProcess(pid, "status"));
  ForkedProcess forked;
  forked.ns_pids = NamespacePids(status);
  if (forked.ns_pids.empty()) forked.ns_pids = {pid};
  // In a namespace of its own it has one number more than its parent, which saw the one before.
  const std::vector<int32_t>& numbers = forked.ns_pids;
  const bool named = numbers.back() == claimed.pid || (numbers.size() > 1 && numbers.back() == 1 &&
                                                       numbers[numbers.size() - 2] == claimed.pid);
  if (!named || RealUser(status) != uid) return std::nullopt;
  forked.cgroup =
      attribution::CarriedCgroup(Sluids().WithJobId(ReadSmallFile(OfProcess(pid, "cgroup"))));
  const std::string stat = ReadSmallFile(OfProcess(pid, "stat"));
  forked.key = {pid, ParseStartTicks(stat)};
  const bool same = claimed.start_ticks == 0 || claimed.start_ticks == forked.key.start_ticks;
  if (forked.key.start_ticks == 0 || !same || ParentOf(stat) != parent.pid) return std::nullopt;
  return forked;
}

}  // namespace

std::optional<Peer> ReadPeer(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  Peer peer;
  peer.uid = credentials.uid;
  peer.identity.uid = credentials.uid;
  if (credentials.pid <= 0) return peer;
  const OwnedFd process = OpenPeer(socket, credentials.pid);
  const ProcessKey key = ReadProcessKey(credentials.pid);
  const auto identity = exporter::ReadIdentity("/proc", key);
  const std::string cgroup = ReadSmallFile(OfProcess(credentials.pid, "cgroup"));
  // It is still there, so all this was of none but it.
  if (!identity || identity->uid != credentials.uid || !IsAlive(process)) return peer;
  peer.process = key;
  peer.identity = *identity;
  peer.cgroup_job = attribution::ReadCgroup(Sluids().WithJobId(cgroup)).job_id;
  return peer;
}

std::optional<ForkedProcess> FindForked(const ProcessKey& parent, uint32_t uid,
                                        const ProcessKey& claimed) {
  if (parent.pid <= 0 || claimed.pid <= 0) return std::nullopt;
  const std::string pid = std::to_string(parent.pid);
  // The wrapper's main thread forks.
  const std::string children = ReadSmallFile("/proc/" + pid + "/task/" + pid + "/children");
  std::vector<int32_t> pids = Numbers(children, kMostChildren);
  // A kernel without that file: the number is the machine's, where the wrapper is in no container.
  if (children.empty()) pids = {claimed.pid};
  for (const int32_t child : pids) {
    auto forked = ReadChild(child, parent, uid, claimed);
    // The parent lives, so no child of it could have been another's.
    if (forked && ReadProcessKey(parent.pid) == parent) return forked;
  }
  return std::nullopt;
}

}  // namespace rankscope::run
