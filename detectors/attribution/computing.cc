// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which process of a job is the rank, where the environment does not tell it: the one that
// computes on a GPU.
#include <algorithm>

#include "detectors/attribution/attribution.h"
#include "detectors/attribution/launchers.h"
#include "detectors/model/event_types.h"

namespace rankscope::attribution {
namespace {

constexpr std::string_view kBelowItsShell = "it computes for the shell that is rank ";

bool IsInferred(const ProcessInfo& info) {
  return info.rank_by == kByComputing || info.rank_by.starts_with(kBelowItsShell);
}

}  // namespace

const ProcessInfo* Attribution::OnComputes(const ProcessKey& key) {
  withdrawn_.clear();
  const auto found = processes_.find(key);
  if (found == processes_.end() || !found->second.alive || HasShown(key, Shown::kComputes))
    return nullptr;
  shown_[key] = Shown::kComputes;
  ProcessInfo& info = found->second;
  switch (info.role) {
    case ProcessRole::kRank:
      return GoesBeforeSiblings(info) ? &info : nullptr;
    case ProcessRole::kWorker:
      return TakesFromShell(info) ? &info : nullptr;
    case ProcessRole::kLauncher:
      return IsOnly(info) ? &info : nullptr;
    case ProcessRole::kUnknown:
      return nullptr;
  }
  return nullptr;
}

void Attribution::TakeNumber(ProcessInfo& from) {
  withdrawn_.emplace_back(from.key, from.rank);
  from.role = ProcessRole::kWorker;
  shown_[from.key] = Shown::kGaveNumber;
}

// `python train.py | tee log` in a script: Slurm numbers both.
bool Attribution::GoesBeforeSiblings(const ProcessInfo& info) {
  if (!info.task_rank) return false;
  bool before = false;
  for (const ProcessKey& key : by_job_.at(info.job_id)) {
    ProcessInfo& other = processes_.at(key);
    if (key == info.key || other.role != ProcessRole::kRank || other.rank != info.rank ||
        other.parent != info.parent || HasShown(key, Shown::kComputes))
      continue;
    TakeNumber(other);
    before = true;
  }
  return before;
}

// `srun bash -c "python train.py"`: the shell has the number, and waits.
bool Attribution::TakesFromShell(ProcessInfo& info) {
  constexpr int kDeepest = 16;
  const auto above_of = [this](const ProcessInfo& process) {
    const auto above = processes_.find(process.parent);
    return above == processes_.end() ? nullptr : &above->second;
  };
  ProcessInfo* above = above_of(info);
  for (int depth = 0; above != nullptr && above->role == ProcessRole::kWorker && depth < kDeepest;
       ++depth) {
    if (HasShown(above->key, Shown::kComputes)) return false;
    above = above_of(*above);
  }
  if (above == nullptr || above->role != ProcessRole::kRank || !IsShell(above->comm)) return false;
  info.role = ProcessRole::kRank;
  info.rank_by = std::string(kBelowItsShell) + std::to_string(info.rank);
  Settle(info, Fact::kRank, {{info.rank_by, std::to_string(info.rank)}});
  TakeNumber(*above);
  return true;
}

// `python train.py` without a launcher is rank 0 of 1. Of two such programs none is.
bool Attribution::IsOnly(ProcessInfo& info) {
  const JobFacts* const facts = FindJob(info.job_id);
  const bool one_task = facts != nullptr && facts->tasks == "1";
  if (!(info.wrapped || one_task) || info.world_size > 1 ||
      !LauncherIn(info.comm, info.command).empty())
    return false;
  ProcessInfo* only = nullptr;
  for (const ProcessKey& key : by_job_.at(info.job_id)) {
    ProcessInfo& other = processes_.at(key);
    if (key == info.key) continue;
    const bool ranked = other.role == ProcessRole::kRank;
    if (ranked && !IsInferred(other)) return false;
    if (!other.alive || !HasShown(key, Shown::kComputes)) continue;
    if (!ranked) return false;
    only = &other;
  }
  if (only != nullptr) {
    NumberBelow(only->key, ProcessRole::kLauncher, -1);
    withdrawn_.emplace_back(only->key, only->rank);
    only->role = ProcessRole::kLauncher;
    only->rank = only->local_rank = -1;
    only->rank_by.clear();
    std::erase_if(only->provenance, [](const Provenance& known) {
      return known.fact == Fact::kRank || known.fact == Fact::kLocalRank;
    });
    return false;
  }
  info.role = ProcessRole::kRank;
  info.rank = info.local_rank = 0;
  info.rank_by = kByComputing;
  Settle(info, Fact::kRank, {{info.rank_by, "0"}});
  Settle(info, Fact::kLocalRank, {{info.rank_by, "0"}});
  NumberBelow(info.key, ProcessRole::kWorker, 0);
  return true;
}

// Whom a process has started before its number was known, and whom these have.
void Attribution::NumberBelow(const ProcessKey& key, ProcessRole role, int32_t rank) {
  constexpr int kDeepest = 16;
  for (const ProcessKey& member : by_job_.at(processes_.at(key).job_id)) {
    ProcessInfo& info = processes_.at(member);
    if (info.role == ProcessRole::kRank) continue;
    ProcessKey above = info.parent;
    for (int depth = 0; above != key && depth < kDeepest; ++depth) {
      const auto found = processes_.find(above);
      if (found == processes_.end()) break;
      above = found->second.parent;
    }
    if (above != key) continue;
    info.role = role;
    info.rank = rank;
  }
}

void Attribution::KeepRole(const ProcessInfo& before, ProcessInfo& info) const {
  if (info.role == ProcessRole::kRank && HasShown(info.key, Shown::kGaveNumber)) {
    info.role = ProcessRole::kWorker;
    return;
  }
  const bool same = before.command == info.command && before.job_id == info.job_id;
  if (!same || !IsInferred(before) || info.role == ProcessRole::kRank) return;
  info.role = before.role;
  info.rank = before.rank;
  info.local_rank = before.local_rank;
  info.rank_by = before.rank_by;
}

bool Computes(const SampleBatch& batch) {
  return batch.subject.kind == Subject::Kind::kProcess &&
         std::any_of(batch.samples.begin(), batch.samples.end(), [](const Sample& sample) {
           return (sample.signal == SignalId::kKernelLaunches ||
                   sample.signal == SignalId::kGraphLaunches) &&
                  sample.value > 0;
         });
}

bool Computes(const Event& event) {
  if (event.type != WireType(EventType::kGpuProcess)) return false;
  const auto number = [&event](std::string_view key) {
    const auto found = std::find_if(event.num.begin(), event.num.end(),
                                    [key](const IntKeyValue& each) { return each.key == key; });
    return found == event.num.end() ? 0 : found->value;
  };
  return number("gone") == 0 && number("bytes") > 0;
}

}  // namespace rankscope::attribution
