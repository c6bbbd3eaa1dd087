// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/attribution/explanation.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "detectors/model/hidden_text.h"

namespace rankscope::attribution {
namespace {

std::string Number(int64_t number) {
  return number < 0 ? std::string() : std::to_string(number);
}

std::string Joined(const std::string& first, std::string_view between, const std::string& second) {
  return second.empty() ? first : first + std::string(between) + second;
}

std::string ValueOf(const ProcessInfo& process, Fact fact) {
  switch (fact) {
    case Fact::kJob:
      return process.job_id;
    case Fact::kStep:
      return process.step_id;
    case Fact::kTask:
      return Number(process.task);
    case Fact::kRank:
      return Number(process.rank);
    case Fact::kLocalRank:
      return Number(process.local_rank);
    case Fact::kWorldSize:
      return process.world_size > 0 ? Number(process.world_size) : std::string();
    case Fact::kNodeRank:
      return Number(process.node_rank);
    case Fact::kNode:
      return process.node_name;
    case Fact::kLauncher:
      return process.launcher;
    case Fact::kMaster:
      return process.master_addr;
    case Fact::kContainer:
      return process.container_id;
    case Fact::kPod:
      return process.pod_uid;
    case Fact::kArray:
      return Joined(process.array_job_id, ", task ", process.array_task);
    case Fact::kHet:
      return Joined(process.het_job_id, ", component ", Number(process.het_component));
  }
  return {};
}

struct Row {
  Fact fact;
  std::string_view name;
  bool always;  // its absence is worth a line
};
constexpr Row kRows[] = {
    {Fact::kJob, "job", true},
    {Fact::kArray, "of the array", false},
    {Fact::kHet, "of the heterogeneous job", false},
    {Fact::kStep, "step", true},
    {Fact::kTask, "task", true},
    {Fact::kRank, "rank", false},
    {Fact::kLocalRank, "local rank", true},
    {Fact::kWorldSize, "world size", true},
    {Fact::kNodeRank, "node rank", false},
    {Fact::kNode, "node", false},
    {Fact::kLauncher, "launcher", true},
    {Fact::kMaster, "ranks meet at", false},
    {Fact::kContainer, "container", true},
    {Fact::kPod, "pod", true},
};

const Provenance* ProvenanceOf(const ProcessInfo& process, Fact fact) {
  const auto found = std::find_if(process.provenance.begin(), process.provenance.end(),
                                  [fact](const Provenance& known) { return known.fact == fact; });
  return found == process.provenance.end() ? nullptr : &*found;
}

}  // namespace

std::string_view NameOf(ProcessRole role) {
  constexpr std::string_view kNames[] = {"", "launcher", "rank", "worker"};
  const auto at = static_cast<size_t>(role);
  return at < std::size(kNames) ? kNames[at] : std::string_view();
}

std::string Explain(const ProcessInfo& process, const GpuWords& gpus, std::string_view ras) {
  std::string name = process.comm;
  std::replace(name.begin(), name.end(), '\n', ' ');  // a line of its own would be believed
  std::string text = "pid " + std::to_string(process.key.pid) + " (" + name + ")";
  if (process.inner_pid > 0)
    text += ", pid " + std::to_string(process.inner_pid) + " in its own namespace";
  text += ", started at tick " + std::to_string(process.key.start_ticks) +
          (process.alive ? ", alive" : ", ended") + "\n";
  if (const std::string_view role = NameOf(process.role); !role.empty())
    text += "role: " + std::string(role) + "\n";
  for (const Row& row : kRows) {
    const std::string value = ValueOf(process, row.fact);
    if (value.empty() && !row.always) continue;
    text += std::string(row.name) + (value.empty() ? ": none" : " " + value);
    if (const Provenance* how = value.empty() ? nullptr : ProvenanceOf(process, row.fact)) {
      text += ": by " + how->by;
      if (!how->against.empty()) text += "; " + how->against;
    } else if (row.fact == Fact::kJob) {
      text += ": by " + process.job_by;
    }
    text += "\n";
  }
  if (process.rank < 0) {
    text +=
        "no rank: none of RANK, OMPI_COMM_WORLD_RANK, PMIX_RANK, SLURM_PROCID applies to it, "
        "and it is not the only process of the job that computes on a GPU\n";
  }
  if (!ras.empty()) text += "nccl ras: " + std::string(ras) + "\n";
  if (gpus.empty()) text += "gpus: none known\n";
  for (const std::string& gpu : gpus) text += "gpu " + gpu + "\n";
  return Legible(text);
}

}  // namespace rankscope::attribution
