// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/verdict/nodes.h"

#include <algorithm>

#include "detectors/model/host_list.h"

namespace rankscope::engine {
namespace {

void AddOnce(std::string name, std::vector<std::string>& names) {
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
    names.push_back(std::move(name));
}

// Only ranks with a process here are known to be on a node.
std::vector<std::string> NodesOfRanks(const VerdictContext& context) {
  std::vector<std::string> names;
  for (const int32_t rank : context.finding->ranks) {
    const auto found = context.job->ranks().find(rank);
    if (found == context.job->ranks().end() || found->second.process.pid == 0) return {};
    const std::string& node = found->second.node;
    AddOnce(node.empty() ? std::string(context.node) : node, names);
  }
  return names;
}

// The scheduler's record, else what it gave the job's processes.
std::vector<std::string> NodesOfJob(const windows::JobWindow& job) {
  const std::vector<windows::SchedulerRun>& runs = job.scheduler().runs();
  const auto told =
      std::find_if(runs.rbegin(), runs.rend(), [](const auto& run) { return !run.nodes.empty(); });
  const std::string& list = told != runs.rend() ? told->nodes : job.node_list();
  HostNames expanded = ExpandHostList(list);
  if (!list.empty() && (!expanded.whole || expanded.names.size() > kMaxNodesListed)) return {list};
  std::vector<std::string> names;
  for (std::string& name : expanded.names) AddOnce(std::move(name), names);
  if (!names.empty()) return names;
  for (const auto& [number, rank] : job.ranks()) AddOnce(rank.node, names);
  return names;
}

// What a card or a port tells of itself names its node, where the line does.
std::vector<std::string> NodesOfLines(const VerdictContext& context) {
  using features::EvidenceKind;
  std::vector<std::string> names;
  for (const features::EvidenceRef ref : context.finding->root) {
    const features::Evidence* const evidence = context.features->At(ref);
    if (evidence == nullptr ||
        (evidence->kind != EvidenceKind::kPeerLost && evidence->kind != EvidenceKind::kXid))
      continue;
    AddOnce(std::string(evidence->values.Text(FieldId::kNode)), names);
  }
  return names;
}

}  // namespace

std::vector<std::string> NodesConcerned(const VerdictContext& context) {
  std::vector<std::string> names;
  if (context.family->code == "F1") AddOnce(context.features->scheduler.failed_node, names);
  if (names.empty()) names = NodesOfRanks(context);
  if (names.empty()) names = NodesOfJob(*context.job);
  if (names.empty()) names = NodesOfLines(context);
  if (names.empty()) AddOnce(std::string(context.node), names);
  return names;
}

}  // namespace rankscope::engine
