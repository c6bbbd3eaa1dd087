// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/nccl/rank_roster.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "exporter/processes/proc_text.h"

namespace rankscope::collectors {
namespace {

// A fork shows its launcher's environment until it has executed its own program.
constexpr int kLooks = 5;
constexpr size_t kEnvironmentBytes = 512 * 1024;
constexpr size_t kSmallFile = 16 * 1024;

// In order: the first that is there is believed.
constexpr std::string_view kRankKeys[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                          "SLURM_PROCID"};

bool IsWanted(std::string_view key) {
  constexpr std::string_view kPrefixes[] = {"NCCL_RAS_", "NCCL_INSPECTOR_", "TORCH_FR_",
                                            "TORCH_NCCL_DEBUG_INFO_"};
  constexpr std::string_view kKeys[] = {"HOME", "XDG_CACHE_HOME", "SLURM_JOB_ID", "SLURM_JOBID"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys) ||
         std::find(std::begin(kRankKeys), std::end(kRankKeys), key) != std::end(kRankKeys) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [key](std::string_view prefix) { return key.starts_with(prefix); });
}

std::optional<std::string> ReadFile(const std::string& path, size_t limit) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text(limit, '\0');
  size_t used = 0;
  while (used < text.size()) {
    const ssize_t n = read(fd, text.data() + used, text.size() - used);
    if (n <= 0) break;
    used += static_cast<size_t>(n);
  }
  close(fd);
  text.resize(used);
  return text;
}

int32_t RankOf(const RankProcess& process) {
  for (const std::string_view key : kRankKeys) {
    const std::string_view value = process.Variable(key);
    int32_t rank = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), rank);
    if (error == std::errc() && end == value.data() + value.size() && rank >= 0) return rank;
  }
  return -1;
}

}  // namespace

std::string_view RankProcess::Variable(std::string_view name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view() : std::string_view(found->second);
}

RankRoster::RankRoster(std::string proc_root) : proc_(std::move(proc_root)) {
  struct stat status {};
  if (stat((proc_ + "/self/ns/mnt").c_str(), &status) == 0) own_mount_namespace_ = status.st_ino;
  if (stat((proc_ + "/self/ns/net").c_str(), &status) == 0) own_network_namespace_ = status.st_ino;
  if (const auto text = ReadFile(proc_ + "/stat", 1024 * 1024)) {
    boot_wall_s_ = FindNumber(*text, "btime").value_or(0);
  }
}

uint64_t RankRoster::Namespace(int32_t pid, const char* kind) const {
  struct stat status {};
  const std::string path = proc_ + '/' + std::to_string(pid) + "/ns/" + kind;
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

bool RankRoster::Read(const TrackedProcess& tracked, RankProcess& process) const {
  const std::string folder = proc_ + '/' + std::to_string(tracked.key.pid);
  const auto bytes = ReadFile(folder + "/environ", kEnvironmentBytes);
  if (!bytes) return false;
  process.tracked = tracked;
  for (KeyValue& variable : ParseEnvironment(*bytes, IsWanted).kept) {
    process.environment[std::move(variable.key)] = std::move(variable.value);
  }
  process.rank = RankOf(process);
  if (process.rank < 0) return false;
  // The process may have been replaced meanwhile.
  const auto stat_text = ReadFile(folder + "/stat", kSmallFile);
  const auto now = stat_text ? ParseStat(*stat_text) : std::nullopt;
  if (!now || now->start_ticks != tracked.key.start_ticks) return false;
  process.mount_namespace = Namespace(tracked.key.pid, "mnt");
  process.network_namespace = Namespace(tracked.key.pid, "net");
  if (boot_wall_s_ > 0) {
    process.begin_wall_s = boot_wall_s_ + tracked.key.start_ticks / sysconf(_SC_CLK_TCK);
  }
  return true;
}

void RankRoster::Update(const std::vector<TrackedProcess>& tracked) {
  departed_.clear();
  std::map<int32_t, const TrackedProcess*> now;
  for (const TrackedProcess& process : tracked) now[process.key.pid] = &process;
  const auto gone = [&now](int32_t pid, int64_t start_ticks) {
    const auto found = now.find(pid);
    return found == now.end() || found->second->key.start_ticks != start_ticks;
  };
  for (auto& [pid, process] : ranks_) {
    if (gone(pid, process.tracked.key.start_ticks)) departed_.push_back(process);
  }
  std::erase_if(all_, [&](const auto& entry) {
    return gone(entry.first, entry.second.tracked.key.start_ticks);
  });
  std::erase_if(others_,
                [&](const auto& entry) { return gone(entry.first, entry.second.start_ticks); });

  for (const auto& [pid, process] : now) {
    if (all_.contains(pid)) continue;
    Look& look = others_[pid];
    look.start_ticks = process->key.start_ticks;
    if (look.looks >= kLooks) continue;
    ++look.looks;
    RankProcess rank;
    if (!Read(*process, rank)) continue;
    all_[pid] = std::move(rank);
    others_.erase(pid);
  }

  const auto group_of = [&now](const TrackedProcess& process) {
    if (!process.job_id.empty()) return process.job_id;
    const TrackedProcess* top = &process;
    for (int depth = 0; depth < 64; ++depth) {
      const auto parent = now.find(top->parent.pid);
      if (parent == now.end() || parent->second == top) break;
      top = parent->second;
    }
    return std::to_string(top->key.pid) + '/' + std::to_string(top->key.start_ticks);
  };
  std::map<std::pair<std::string, int32_t>, const RankProcess*> oldest;
  for (auto& [pid, process] : all_) {
    process.tracked = *now[pid];
    process.group = group_of(process.tracked);
    const RankProcess*& first = oldest[{process.group, process.rank}];
    if (first == nullptr || process.tracked.key.start_ticks < first->tracked.key.start_ticks) {
      first = &process;
    }
  }
  ranks_.clear();
  for (const auto& [key, process] : oldest) ranks_[process->tracked.key.pid] = *process;
}

}  // namespace rankscope::collectors
