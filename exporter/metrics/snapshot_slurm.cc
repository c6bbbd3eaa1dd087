// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reports of Slurm, as series.

#include <numeric>
#include <string_view>
#include <utility>

#include "exporter/metrics/snapshot_impl.h"

namespace rankscope::metrics {
namespace {

constexpr std::string_view kNodeStates[] = {"up",       "down",   "drained",
                                            "draining", "failed", "maintenance"};

// Numbers that are not known are negative.
double Known(double value) {
  return value < 0 ? kUnknown : value;
}

}  // namespace

void SnapshotBuilder::Impl::AddSlurm(const SourceStatus& source) {
  AddSlurmCalls(source.library_calls);
  if (source.slurm == nullptr) return;
  const SlurmReport& report = *source.slurm;
  for (const auto& [kind, count] : report.counts) {
    Add(MetricNamed("rankscope_slurm_events_total"), agent_labels.Get("kind", {kind}),
        static_cast<double>(count));
  }
  if (report.last_answer_wall_seconds > 0) {
    Add(MetricNamed("rankscope_slurm_last_answer_timestamp_seconds"), nullptr,
        report.last_answer_wall_seconds);
  }
  for (const SlurmNodeState& node : report.nodes) AddSlurmNode(node);
  constexpr MetricId kStep = MetricNamed("rankscope_slurm_step_info");
  for (const SlurmStepState& step : report.steps) {
    Add(kStep,
        agent_labels.Get(kCatalog[kStep].labels,
                         {step.job_id, step.step_id, step.name, step.nodes, step.state, step.exit}),
        1);
  }
  if (report.controller_known) AddSlurmController(report.controller);
  if (report.queue != nullptr) AddSlurmQueue(*report.queue);
}

void SnapshotBuilder::Impl::AddSlurmQueue(const SlurmQueue& queue) {
  constexpr MetricId kJobs = MetricNamed("rankscope_slurm_jobs");
  for (const SlurmQueue::JobsOf& partition : queue.partitions) {
    for (size_t i = 0; i < kQueueStates.size(); ++i) {
      Add(kJobs, agent_labels.Get(kCatalog[kJobs].labels, {partition.name, kQueueStates[i]}),
          Count(partition.jobs[i]));
    }
  }
  constexpr MetricId kUsers = MetricNamed("rankscope_slurm_user_jobs");
  for (const SlurmQueue::JobsOf& user : queue.users) {
    const int64_t pending = user.jobs[0];
    const int64_t all = std::accumulate(user.jobs.begin(), user.jobs.end(), int64_t{0});
    Add(kUsers, agent_labels.Get(kCatalog[kUsers].labels, {user.name, user.account, "pending"}),
        Count(pending));
    Add(kUsers, agent_labels.Get(kCatalog[kUsers].labels, {user.name, user.account, "running"}),
        Count(all - pending));
  }
  for (const auto& [reason, count] : queue.waits) {
    Add(MetricNamed("rankscope_slurm_pending_jobs"), agent_labels.Get("reason", {reason}),
        Count(count));
  }
  if (queue.resources.empty()) return;
  for (size_t i = 0; i < kNodeUseStates.size(); ++i) {
    Add(MetricNamed("rankscope_slurm_nodes"), agent_labels.Get("state", {kNodeUseStates[i]}),
        Count(queue.nodes[i]));
  }
  const auto add = [this](MetricId id, const std::string& partition,
                          const SlurmQueue::Amount& amount) {
    for (const auto& [state, value] : {std::pair{"total", amount.total},
                                       {"allocated", amount.allocated},
                                       {"idle", amount.idle}}) {
      Add(id, agent_labels.Get(kCatalog[id].labels, {partition, state}), Count(value));
    }
  };
  for (const SlurmQueue::Partition& one : queue.resources) {
    add(MetricNamed("rankscope_slurm_partition_cpus"), one.name, one.cpus);
    add(MetricNamed("rankscope_slurm_partition_gpus"), one.name, one.gpus);
    add(MetricNamed("rankscope_slurm_partition_memory_bytes"), one.name, one.memory_bytes);
  }
}

void SnapshotBuilder::Impl::AddSlurmCalls(const std::vector<LibraryCall>& calls) {
  constexpr MetricId kSeconds = MetricNamed("rankscope_slurm_call_seconds");
  constexpr MetricId kErrors = MetricNamed("rankscope_slurm_call_errors_total");
  for (const LibraryCall& call : calls) {
    for (const auto& [reason, count] : call.errors) {
      Add(kErrors, agent_labels.Get(kCatalog[kErrors].labels, {call.function, reason}),
          static_cast<double>(count));
    }
    const int64_t answered = std::accumulate(call.counts.begin(), call.counts.end(), int64_t{0});
    if (answered == 0) continue;
    Add(MetricNamed("rankscope_slurm_calls_total"), agent_labels.Get("call", {call.function}),
        static_cast<double>(answered));
    AddCallSeconds(kSeconds, call);
  }
}

// A cluster has thousands that are up, and Slurm reports which: a state has its series from the
// first time that it is another.
void SnapshotBuilder::Impl::AddSlurmNode(const SlurmNodeState& node) {
  const LabelPointer& labels = agent_labels.Get("node", {node.name});
  Add(MetricNamed("rankscope_slurm_node_cpu_load"), labels, Known(node.cpu_load));
  const auto count = [&](MetricId id, int64_t value) {
    Add(id, labels, Known(static_cast<double>(value)));
  };
  count(MetricNamed("rankscope_slurm_node_cpus_allocated"), node.cpus_allocated);
  count(MetricNamed("rankscope_slurm_node_gpus"), node.gpus);
  count(MetricNamed("rankscope_slurm_node_gpus_allocated"), node.gpus_allocated);
  count(MetricNamed("rankscope_slurm_node_memory_allocated_bytes"), node.memory_allocated_bytes);
  count(MetricNamed("rankscope_slurm_node_memory_free_bytes"), node.memory_free_bytes);
  if (node.state == "up" && node.down_seconds == 0 && node.drain_seconds == 0) return;
  constexpr MetricId kState = MetricNamed("rankscope_slurm_node_state");
  if (Room(kState, std::size(kNodeStates))) {
    for (const std::string_view state : kNodeStates) {
      Put(kState, agent_labels.Get("node,state", {node.name, state}), node.state == state ? 1 : 0);
    }
  }
  constexpr MetricId kSeconds = MetricNamed("rankscope_slurm_node_state_seconds_total");
  Add(kSeconds, agent_labels.Get("node,state", {node.name, "down"}),
      static_cast<double>(node.down_seconds));
  Add(kSeconds, agent_labels.Get("node,state", {node.name, "drain"}),
      static_cast<double>(node.drain_seconds));
  if (node.state != "up" && !node.reason.empty()) {
    Add(MetricNamed("rankscope_slurm_node_reason_info"),
        agent_labels.Get("node,reason_class,reason", {node.name, node.reason_class, node.reason}),
        1);
  }
}

void SnapshotBuilder::Impl::AddSlurmController(const SlurmController& told) {
  const auto add = [&](MetricId id, auto value) {
    Add(id, nullptr, Known(static_cast<double>(value)));
  };
  add(MetricNamed("rankscope_slurm_agent_queue_size"), told.agent_queue);
  add(MetricNamed("rankscope_slurm_backfill_depth"), told.backfill_depth);
  add(MetricNamed("rankscope_slurm_backfill_mean_seconds"), told.backfill_mean_seconds);
  add(MetricNamed("rankscope_slurm_backfill_seconds"), told.backfill_seconds);
  add(MetricNamed("rankscope_slurm_dbd_agent_queue_size"), told.dbd_agent_queue);
  add(MetricNamed("rankscope_slurm_schedule_cycle_max_seconds"), told.cycle_max_seconds);
  add(MetricNamed("rankscope_slurm_schedule_cycle_mean_seconds"), told.cycle_mean_seconds);
  add(MetricNamed("rankscope_slurm_schedule_cycle_seconds"), told.cycle_seconds);
  add(MetricNamed("rankscope_slurm_schedule_queue_length"), told.queue_length);
  add(MetricNamed("rankscope_slurm_server_threads"), told.server_threads);
  const std::pair<std::string_view, int64_t> changes[] = {{"submitted", told.submitted},
                                                          {"started", told.started},
                                                          {"completed", told.completed},
                                                          {"cancelled", told.cancelled},
                                                          {"failed", told.failed}};
  for (const auto& [kind, count] : changes) {
    Add(MetricNamed("rankscope_slurm_job_changes_total"), agent_labels.Get("kind", {kind}),
        Known(static_cast<double>(count)));
  }
  for (const SlurmRpc& rpc : told.rpcs) {
    const LabelPointer& labels = agent_labels.Get("rpc", {rpc.type});
    Add(MetricNamed("rankscope_slurm_rpc_calls_total"), labels, static_cast<double>(rpc.calls));
    Add(MetricNamed("rankscope_slurm_rpc_seconds_total"), labels, rpc.seconds);
  }
}

}  // namespace rankscope::metrics
