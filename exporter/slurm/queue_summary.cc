// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/queue_summary.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "exporter/slurm/node_reason.h"
#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {
namespace {

// Each is so many times 5 series, or 9 with the resources: some 1,500 in all.
constexpr size_t kMaxPartitions = 64;
constexpr size_t kMaxUsers = 128;
constexpr size_t kMaxReasons = 32;
constexpr size_t kMaxReasonBytes = 48;
constexpr std::string_view kOther = "other";
// MaxArraySize is at most 4,000,001.
constexpr int64_t kMaxTasks = 4'000'001;

bool Has(const std::vector<std::string>& flags, std::string_view flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

// Place in kQueueStates; nothing: it has ended.
std::optional<size_t> QueueStateOf(const SlurmJob& job) {
  if (Has(job.state_flags, "COMPLETING")) return 4;
  if (Has(job.state_flags, "CONFIGURING")) return 1;
  if (job.state == "PENDING") return 0;
  if (job.state == "RUNNING") return 2;
  if (job.state == "SUSPENDED") return 3;
  return std::nullopt;
}

// Slurm's word, without the nodes and licences that some name behind it.
std::string ReasonOf(const SlurmJob& job) {
  std::string reason = job.reason.substr(0, job.reason.find_first_of(" ,:;("));
  const bool is_word =
      !reason.empty() && std::all_of(reason.begin(), reason.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
      });
  if (job.reason.empty()) return "none";
  return is_word && reason.size() <= kMaxReasonBytes ? reason : std::string(kOther);
}

// Calls `each` with every name of a comma-separated list.
template <typename Each>
void ForEachName(std::string_view names, const Each& each) {
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    if (comma > 0) each(std::string(names.substr(0, comma)));
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
}

using Key = std::pair<std::string, std::string>;  // name and account
using Counted = std::map<Key, std::array<int64_t, kQueueStates.size()>>;

// Those with the most jobs; the rest together.
std::vector<SlurmQueue::JobsOf> Most(const Counted& counted, size_t most) {
  std::vector<SlurmQueue::JobsOf> rows;
  rows.reserve(counted.size());
  for (const auto& [key, jobs] : counted) rows.push_back({key.first, key.second, jobs});
  if (rows.size() <= most) return rows;
  const auto sum = [](const SlurmQueue::JobsOf& row) {
    int64_t all = 0;
    for (const int64_t jobs : row.jobs) all += jobs;
    return all;
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const auto& a, const auto& b) { return sum(a) > sum(b); });
  SlurmQueue::JobsOf rest{std::string(kOther), {}, {}};
  for (size_t i = most - 1; i < rows.size(); ++i) {
    for (size_t state = 0; state < rest.jobs.size(); ++state)
      rest.jobs[state] += rows[i].jobs[state];
  }
  rows.resize(most - 1);
  rows.push_back(std::move(rest));
  return rows;
}

std::vector<std::pair<std::string, int64_t>> MostWaits(const std::map<std::string, int64_t>& all) {
  std::vector<std::pair<std::string, int64_t>> waits(all.begin(), all.end());
  std::stable_sort(waits.begin(), waits.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (waits.size() <= kMaxReasons) return waits;
  std::pair<std::string, int64_t> rest{kOther, 0};
  const auto kept = std::remove_if(waits.begin(), waits.end(),
                                   [](const auto& wait) { return wait.first == kOther; });
  for (auto it = kept; it != waits.end(); ++it) rest.second += it->second;
  waits.erase(kept, waits.end());
  for (size_t i = kMaxReasons - 1; i < waits.size(); ++i) rest.second += waits[i].second;
  waits.resize(std::min(waits.size(), kMaxReasons - 1));
  waits.push_back(std::move(rest));
  return waits;
}

// Place in kNodeUseStates; nothing: Slurm does not know.
std::optional<size_t> UseOf(const SlurmNode& node) {
  switch (ConditionOf(node)) {
    case NodeCondition::kUnknown:
      return std::nullopt;
    case NodeCondition::kUp:
      break;
    case NodeCondition::kDown:
      return 3;
    case NodeCondition::kFailed:
      return 4;
    case NodeCondition::kDraining:
      return 5;
    case NodeCondition::kDrained:
      return 6;
    case NodeCondition::kMaintenance:
      return 7;
  }
  if (node.state == "ALLOCATED") return 2;
  return node.state == "MIXED" ? 1 : 0;
}

void AddAmount(const std::optional<int64_t>& total, const std::optional<int64_t>& allocated,
               bool takes_jobs, SlurmQueue::Amount& sum) {
  const int64_t all = std::max<int64_t>(total.value_or(0), 0);
  const int64_t taken = std::clamp<int64_t>(allocated.value_or(0), 0, all);
  sum.total += all;
  sum.allocated += taken;
  if (takes_jobs) sum.idle += all - taken;
}

void CountNodes(const std::vector<SlurmNode>& nodes, SlurmQueue& queue) {
  std::map<std::string, SlurmQueue::Partition> partitions;
  for (const SlurmNode& node : nodes) {
    const std::optional<size_t> use = UseOf(node);
    if (!use) continue;
    ++queue.nodes[*use];
    const bool takes_jobs = *use <= 2;
    ForEachName(node.partitions, [&](std::string name) {
      if (partitions.size() >= kMaxPartitions - 1 && !partitions.contains(name)) name = kOther;
      SlurmQueue::Partition& sum = partitions[name];
      AddAmount(node.cpus, node.cpus_allocated, takes_jobs, sum.cpus);
      AddAmount(node.gpus, node.gpus_allocated, takes_jobs, sum.gpus);
      AddAmount(node.memory_bytes, node.memory_allocated_bytes, takes_jobs, sum.memory_bytes);
    });
  }
  for (auto& [name, sum] : partitions) {
    sum.name = name;
    queue.resources.push_back(std::move(sum));
  }
}

}  // namespace

int64_t CountTasks(std::string_view tasks) {
  if (tasks.starts_with('[')) tasks.remove_prefix(1);
  tasks = tasks.substr(0, tasks.find_first_of("%]"));
  int64_t count = 0;
  while (!tasks.empty()) {
    const size_t comma = std::min(tasks.find(','), tasks.size());
    std::string_view range = tasks.substr(0, comma);
    tasks.remove_prefix(std::min(comma + 1, tasks.size()));
    const size_t colon = range.find(':');
    const int64_t stride =
        colon == std::string_view::npos ? 1 : ReadInteger(range.substr(colon + 1)).value_or(0);
    range = range.substr(0, colon);
    const size_t dash = range.find('-');
    const auto first = ReadInteger(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ReadInteger(range.substr(dash + 1));
    // Slurm cuts long lists and ends them with "...".
    if (!first || !last || *first < 0 || *last < *first || *last > kMaxTasks || stride < 1)
      continue;
    count += (*last - *first) / stride + 1;
  }
  return std::clamp<int64_t>(count, 1, kMaxTasks);
}

SlurmQueue Summarize(const std::vector<SlurmJob>& jobs, const std::vector<SlurmNode>& nodes) {
  SlurmQueue queue;
  Counted partitions, users;
  std::map<std::string, int64_t> waits;
  for (const SlurmJob& job : jobs) {
    const std::optional<size_t> state = QueueStateOf(job);
    if (!state || !job.step_id.empty()) continue;
    const int64_t count = *state == 0 ? CountTasks(job.array_task) : 1;
    ForEachName(job.partition, [&](std::string name) {
      partitions[{std::move(name), {}}][*state] += count;
    });
    const std::string user = !job.user.empty() ? job.user
                             : job.uid         ? std::to_string(*job.uid)
                                               : "unknown";
    users[{user, job.account}][*state] += count;
    if (*state == 0) waits[ReasonOf(job)] += count;
  }
  queue.partitions = Most(partitions, kMaxPartitions);
  queue.users = Most(users, kMaxUsers);
  queue.waits = MostWaits(waits);
  CountNodes(nodes, queue);
  // An empty partition has a queue, too.
  for (const SlurmQueue::Partition& one : queue.resources) {
    const bool counted = std::any_of(queue.partitions.begin(), queue.partitions.end(),
                                     [&](const auto& row) { return row.name == one.name; });
    if (!counted && queue.partitions.size() < kMaxPartitions)
      queue.partitions.push_back({one.name, {}, {}});
  }
  return queue;
}

}  // namespace rankscope::exporter::slurm
