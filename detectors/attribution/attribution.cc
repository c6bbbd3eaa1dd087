// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/attribution/attribution.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace rankscope::attribution {
namespace {

std::string_view EnvironmentValue(const ProcessStart& start, std::string_view key) {
  for (const KeyValue& entry : start.env) {
    if (entry.key == key) return entry.value;
  }
  return {};
}

int32_t EnvironmentInt(const ProcessStart& start, std::string_view key, int32_t absent) {
  const std::string_view text = EnvironmentValue(start, key);
  int32_t value = absent;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : absent;
}

struct RankKeyRow {
  std::string_view rank, local_rank, world_size;
};
constexpr RankKeyRow kRankKeys[] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMIX_RANK", "", ""},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
};

// FNV-1a: a short stable name for a launcher that has no id of its own.
std::string HashedJobId(std::string_view boot_id, const ProcessKey& root) {
  uint32_t hash = 2166136261u;
  const auto mix = [&hash](std::string_view bytes) {
    for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 16777619u;
  };
  mix(boot_id);
  mix(std::to_string(root.pid));
  mix(std::to_string(root.start_ticks));
  char text[16];
  std::snprintf(text, sizeof text, "proc-%08x", hash);
  return text;
}

std::string JoinArguments(const std::vector<std::string>& argv) {
  std::string joined;
  for (const std::string& argument : argv) {
    if (!joined.empty()) joined += ' ';
    joined += argument;
    if (joined.size() > Attribution::kCommandCap) {
      joined.resize(Attribution::kCommandCap);
      break;
    }
  }
  return joined;
}

// SLURM_PROCID is inherited by everything below an srun task; on its own it names the task, not a
// rank of a launcher that starts several. Interpreters of launchers are recognised by their command
// line.
bool LooksLikeLauncher(const ProcessInfo& process) {
  for (const std::string_view name :
       {"torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate", "deepspeed",
        "mpirun", "mpiexec", "srun", "orted", "composer"}) {
    if (process.command.find(name) != std::string::npos || process.comm == name) return true;
  }
  return false;
}

}  // namespace

void Attribution::OnRunBegin(const RunMark& mark, Timestamp t) {
  if (mark.root.pid == 0) return;
  if (!processes_.contains(mark.root)) MakeRoom();
  ProcessInfo& info = processes_[mark.root];
  info.key = mark.root;
  info.job_id = mark.job_id;
  info.job_by = "the run wrapper started it";
  if (info.command.empty()) info.command = JoinArguments(mark.argv);
  info.started = t;
}

const ProcessInfo* Attribution::OnStart(const ProcessStart& start, std::string_view boot_id,
                                        Timestamp t) {
  const auto parent = processes_.find(start.parent);
  const ProcessInfo* parent_info = parent == processes_.end() ? nullptr : &parent->second;

  ProcessInfo info;
  if (const auto known = processes_.find(start.key); known != processes_.end())
    info = known->second;  // exec: facts anew
  info.key = start.key;
  if (start.parent.pid != 0) info.parent = start.parent;
  info.uid = start.uid;
  info.comm = start.comm;
  if (!start.argv.empty()) info.command = JoinArguments(start.argv);
  if (info.started.ns == 0) info.started = t;
  info.slurm_restart = EnvironmentInt(start, "SLURM_RESTART_COUNT", 0);
  info.elastic_restart = EnvironmentInt(start, "TORCHELASTIC_RESTART_COUNT", 0);

  const RankKeyRow* keys = nullptr;
  for (const RankKeyRow& row : kRankKeys) {
    if (EnvironmentInt(start, row.rank, -1) < 0) continue;
    keys = &row;
    break;
  }
  if (!start.job_id.empty()) {
    info.job_id = start.job_id;
    info.job_by = "the source that started it";
  } else if (info.job_id.empty() && parent_info != nullptr && !parent_info->job_id.empty()) {
    info.job_id = parent_info->job_id;
    info.job_by = "its parent, pid " + std::to_string(parent_info->key.pid);
  } else if (info.job_id.empty()) {
    if (const std::string_view slurm = EnvironmentValue(start, "SLURM_JOB_ID");
        !slurm.empty() && slurm.size() <= 32) {
      info.job_id = slurm;
      info.job_by = "SLURM_JOB_ID in its environment";
    } else if (keys != nullptr) {
      // Ranks of one launcher are siblings: the launcher names the job.
      const ProcessKey root = start.parent.pid > 1 ? start.parent : start.key;
      info.job_id = HashedJobId(boot_id, root);
      info.job_by = "boot id and launcher pid " + std::to_string(root.pid);
    }
  }
  if (info.job_id.empty()) return nullptr;

  const bool below_a_rank =
      parent_info != nullptr && parent_info->job_id == info.job_id &&
      (parent_info->role == ProcessRole::kRank || parent_info->role == ProcessRole::kWorker);
  const bool only_slurm = keys != nullptr && keys->rank == "SLURM_PROCID";
  if (below_a_rank && !(parent_info->rank_by == "SLURM_PROCID" && !only_slurm)) {
    info.role = ProcessRole::kWorker;
    info.rank = parent_info->rank;
    info.local_rank = parent_info->local_rank;
    info.world_size = parent_info->world_size;
    info.rank_by = "its parent is rank " + std::to_string(parent_info->rank);
  } else if (keys != nullptr && !(only_slurm && LooksLikeLauncher(info))) {
    info.role = ProcessRole::kRank;
    info.rank = EnvironmentInt(start, keys->rank, -1);
    if (!keys->local_rank.empty()) info.local_rank = EnvironmentInt(start, keys->local_rank, -1);
    if (!keys->world_size.empty()) info.world_size = EnvironmentInt(start, keys->world_size, 0);
    info.rank_by = keys->rank;
  } else {
    info.role = ProcessRole::kLauncher;
  }
  if (!processes_.contains(start.key)) MakeRoom();
  return &(processes_[start.key] = std::move(info));
}

const ProcessInfo* Attribution::OnExit(const ProcessExit& exit, Timestamp t) {
  const auto found = processes_.find(exit.key);
  if (found == processes_.end()) return nullptr;
  ProcessInfo& info = found->second;
  if (info.alive) info.ended = t;
  info.alive = false;
  if (exit.status_known && !info.status_known) {
    info.status_known = true;
    info.wait_status = exit.wait_status;
    info.core = exit.core;
  }
  return &info;
}

void Attribution::ForgetJob(std::string_view job_id) {
  std::erase_if(processes_, [&](const auto& entry) { return entry.second.job_id == job_id; });
}

const ProcessInfo* Attribution::Find(const ProcessKey& key) const {
  const auto found = processes_.find(key);
  return found == processes_.end() ? nullptr : &found->second;
}

const ProcessInfo* Attribution::FindPid(int32_t pid) const {
  const auto after = processes_.upper_bound(ProcessKey{pid, INT64_MAX});
  if (after == processes_.begin()) return nullptr;
  const auto last = std::prev(after);
  return last->first.pid == pid ? &last->second : nullptr;
}

std::vector<const ProcessInfo*> Attribution::OfJob(std::string_view job_id) const {
  std::vector<const ProcessInfo*> found;
  for (const auto& [key, info] : processes_) {
    if (info.job_id == job_id) found.push_back(&info);
  }
  return found;
}

void Attribution::MakeRoom() {
  if (processes_.size() < kMaxProcesses) return;
  auto oldest = processes_.end();
  for (auto it = processes_.begin(); it != processes_.end(); ++it) {
    if (it->second.alive) continue;
    if (oldest == processes_.end() || it->second.ended < oldest->second.ended) oldest = it;
  }
  processes_.erase(oldest == processes_.end() ? processes_.begin() : oldest);
  ++dropped_;
}

}  // namespace rankscope::attribution
