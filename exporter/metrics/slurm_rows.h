// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The catalogue's rows of what Slurm says. Counts of a whole cluster's jobs and nodes are Slurm's
// own to tell (25.11 does): here is what it does not tell - what happened, why a node is out and
// for how long - and how the controller is. Sorted by name; catalog.h merges them. Any thread.
#pragma once

#include <array>

#include "detectors/model/library_call.h"
#include "exporter/metrics/metric_row.h"

namespace rankscope::metrics {

constexpr MetricRow SlurmRow(std::string_view name, MetricType type, std::string_view unit,
                             std::string_view help, std::string_view labels = "",
                             Profile profile = Profile::kDefault) {
  return {name, type, unit, help, labels, Keep::kSlurm, profile};
}

inline constexpr std::array kSlurmRows = {
    SlurmRow("rankscope_slurm_agent_queue_size", MetricType::kGauge, "",
             "Messages to nodes that the controller has not sent yet."),
    SlurmRow("rankscope_slurm_backfill_depth", MetricType::kGauge, "",
             "Jobs that the last backfill cycle looked at."),
    SlurmRow("rankscope_slurm_backfill_mean_seconds", MetricType::kGauge, "seconds",
             "Mean duration of a backfill cycle."),
    SlurmRow("rankscope_slurm_backfill_seconds", MetricType::kGauge, "seconds",
             "Duration of the last backfill cycle."),
    SlurmRow("rankscope_slurm_call_errors_total", MetricType::kCounter, "",
             "Calls of Slurm's commands that failed, and how.", "call,reason"),
    MetricRow{"rankscope_slurm_call_seconds", MetricType::kHistogram, "seconds",
              "Duration of a call of one of Slurm's commands that was answered.", "call",
              Keep::kSlurm, Profile::kFull, Since::kStart, kLibraryCallBounds},
    MetricRow{"rankscope_slurm_calls_total", MetricType::kCounter, "",
              "Calls of Slurm's commands that were answered.", "call", Keep::kSlurm,
              Profile::kDefault, Since::kStart},
    SlurmRow("rankscope_slurm_dbd_agent_queue_size", MetricType::kGauge, "",
             "Records that the controller has not given to accounting yet."),
    MetricRow{"rankscope_slurm_events_total", MetricType::kCounter, "",
              "What has happened to jobs and nodes since the start, by kind.", "kind", Keep::kSlurm,
              Profile::kDefault, Since::kStart},
    SlurmRow("rankscope_slurm_job_changes_total", MetricType::kCounter, "",
             "Jobs as the controller counts them since it set its counters back, by kind: "
             "submitted, started, completed, cancelled, failed.",
             "kind"),
    SlurmRow("rankscope_slurm_last_answer_timestamp_seconds", MetricType::kGauge, "seconds",
             "When the controller last told of all jobs, seconds since the epoch."),
    SlurmRow("rankscope_slurm_node_cpu_load", MetricType::kGauge, "",
             "Load of the node as slurmd says.", "node", Profile::kFull),
    SlurmRow("rankscope_slurm_node_cpus_allocated", MetricType::kGauge, "",
             "CPUs of the node that are given to jobs.", "node", Profile::kFull),
    SlurmRow("rankscope_slurm_node_gpus", MetricType::kGauge, "", "GPUs of the node.", "node",
             Profile::kFull),
    SlurmRow("rankscope_slurm_node_gpus_allocated", MetricType::kGauge, "",
             "GPUs of the node that are given to jobs.", "node", Profile::kFull),
    SlurmRow("rankscope_slurm_node_memory_allocated_bytes", MetricType::kGauge, "bytes",
             "Memory of the node that is given to jobs.", "node", Profile::kFull),
    SlurmRow("rankscope_slurm_node_memory_free_bytes", MetricType::kGauge, "bytes",
             "Free memory of the node as slurmd says.", "node", Profile::kFull),
    SlurmRow("rankscope_slurm_node_reason_info", MetricType::kInfo, "",
             "Why the node is out of service, and what kind of reason that is.",
             "node,reason_class,reason"),
    SlurmRow("rankscope_slurm_node_state", MetricType::kStateSet, "",
             "State of a node that is, or since the start was, out of service.", "node,state"),
    SlurmRow("rankscope_slurm_node_state_seconds_total", MetricType::kCounter, "seconds",
             "Time that the node was down or draining while it was looked at.", "node,state"),
    SlurmRow("rankscope_slurm_rpc_calls_total", MetricType::kCounter, "",
             "Calls that the controller has served, the forty most frequent kinds.", "rpc"),
    SlurmRow("rankscope_slurm_rpc_seconds_total", MetricType::kCounter, "seconds",
             "Time that the controller took for them.", "rpc"),
    SlurmRow("rankscope_slurm_schedule_cycle_max_seconds", MetricType::kGauge, "seconds",
             "Longest cycle of the scheduler."),
    SlurmRow("rankscope_slurm_schedule_cycle_mean_seconds", MetricType::kGauge, "seconds",
             "Mean cycle of the scheduler."),
    SlurmRow("rankscope_slurm_schedule_cycle_seconds", MetricType::kGauge, "seconds",
             "Last cycle of the scheduler."),
    SlurmRow("rankscope_slurm_schedule_queue_length", MetricType::kGauge, "",
             "Jobs that the scheduler's last cycle had before it."),
    SlurmRow("rankscope_slurm_server_threads", MetricType::kGauge, "",
             "Threads of the controller that serve calls; it stops at 256."),
};

}  // namespace rankscope::metrics
