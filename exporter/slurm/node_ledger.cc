// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/node_ledger.h"

#include <algorithm>
#include <utility>

#include "exporter/slurm/node_reason.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr size_t kReasonCap = 200;
// A round that fails now and then does not make the time between two others unknown.
constexpr int64_t kLongestGapSeconds = 600;

bool IsDown(std::string_view state) {
  return state == "down" || state == "failed";
}
bool IsDrained(std::string_view state) {
  return state == "drained" || state == "draining";
}

std::string_view KindOf(std::string_view state) {
  return IsDown(state) ? "node_down" : IsDrained(state) ? "node_drain" : "node_up";
}

}  // namespace

void NodeLedger::Remember(const SlurmEvent& event) {
  if (event.node.empty() || !event.job_id.empty() || nodes_.size() >= kMaxNodes) return;
  Known& known = nodes_[event.node];
  known.state.name = event.node;
  known.state.state = event.is;
  known.state.reason = event.reason;
  known.told = std::max(known.told, event.wall_ns / 1'000'000'000);
}

std::vector<SlurmEvent> NodeLedger::Update(const std::vector<SlurmNode>& nodes, int64_t now,
                                           std::string_view source) {
  std::vector<SlurmEvent> events;
  last_look_ = now;
  for (const SlurmNode& node : nodes) {
    const NodeCondition condition = ConditionOf(node);
    if (node.name.empty() || condition == NodeCondition::kUnknown) continue;
    if (nodes_.size() >= kMaxNodes && !nodes_.contains(node.name)) continue;
    Known& known = nodes_[node.name];
    SlurmNodeState& state = known.state;
    const std::string was = state.state;
    const std::string is(NodeConditionName(condition));
    const std::string reason = node.reason.substr(0, kReasonCap);
    // The time that went by counts for what it was when it began.
    if (known.looked > 0 && now > known.looked && now - known.looked <= kLongestGapSeconds) {
      if (IsDown(was)) state.down_seconds += now - known.looked;
      if (IsDrained(was)) state.drain_seconds += now - known.looked;
    }
    const bool never_seen = was.empty();
    const bool another = KindOf(is) != KindOf(was) || (is != "up" && reason != state.reason);
    if (never_seen ? is != "up" && is != "maintenance" : another) {
      SlurmEvent event;
      const bool dated = KindOf(is) != "node_up" && node.reason_since > known.told;
      event.wall_ns = (dated ? node.reason_since : now) * 1'000'000'000;
      event.node = node.name;
      event.kind = KindOf(is);
      event.reason = reason;
      event.was = was;
      event.is = is;
      event.source = source;
      if (is != "up")
        event.facts.push_back({"class", std::string(NodeReasonName(ClassifyReason(reason)))});
      if (!node.reason_by.empty()) event.facts.push_back({"by", node.reason_by});
      known.told = std::max(known.told, event.wall_ns / 1'000'000'000);
      events.push_back(std::move(event));
    }
    known.looked = now;
    state.name = node.name;
    state.state = is;
    state.reason = reason;
    state.reason_class = is == "up" ? "" : std::string(NodeReasonName(ClassifyReason(reason)));
    state.cpu_load = node.cpu_load.value_or(-1);
    state.cpus = node.cpus.value_or(-1);
    state.cpus_allocated = node.cpus_allocated.value_or(-1);
    state.gpus = node.gpus.value_or(-1);
    state.gpus_allocated = node.gpus_allocated.value_or(-1);
    state.memory_bytes = node.memory_bytes.value_or(-1);
    state.memory_allocated_bytes = node.memory_allocated_bytes.value_or(-1);
    state.memory_free_bytes = node.memory_free_bytes.value_or(-1);
  }
  return events;
}

std::vector<SlurmNodeState> NodeLedger::States() const {
  std::vector<SlurmNodeState> states;
  for (const auto& [name, known] : nodes_) {
    // A node that is taken out of the configuration is none any more.
    if (known.looked > 0 && known.looked == last_look_) states.push_back(known.state);
  }
  return states;
}

}  // namespace rankscope::exporter::slurm
