// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The catalogue's rows of Slurm: what happened, why a node is out and for how long, how the
// controller is, and what its users know from other exporters: the queue, the nodes, and what
// partitions have. Sorted by name; catalog.h merges them. Any thread.
#pragma once

#include <array>

#include "detectors/model/library_call.h"
#include "exporter/metrics/metric_row.h"

namespace rankscope::metrics {

constexpr MetricRow SlurmRow(std::string_view name, MetricType type, std::string_view unit,
                             HelpText help, std::string_view labels = "",
                             Profile profile = Profile::kDefault) {
  return {name, type, unit, help, labels, Keep::kSlurm, profile};
}

inline constexpr std::array kSlurmRows = {
    SlurmRow("rankscope_slurm_agent_queue_size", MetricType::kGauge, "",
             "Number of messages to nodes that slurmctld has not sent yet."),
    SlurmRow("rankscope_slurm_backfill_depth", MetricType::kGauge, "",
             "Number of jobs that the last backfill cycle of slurmctld examined."),
    SlurmRow("rankscope_slurm_backfill_mean_seconds", MetricType::kGauge, "seconds",
             "Mean duration of slurmctld's backfill cycles in seconds."),
    SlurmRow("rankscope_slurm_backfill_seconds", MetricType::kGauge, "seconds",
             "Duration of slurmctld's last backfill cycle in seconds."),
    SlurmRow("rankscope_slurm_call_errors_total", MetricType::kCounter, "",
             "Number of failed calls of Slurm's commands, by reason.", "call,reason"),
    MetricRow{"rankscope_slurm_call_seconds", MetricType::kHistogram, "seconds",
              "Duration in seconds of successful calls of Slurm's commands.", "call", Keep::kSlurm,
              Profile::kFull, Since::kStart, kLibraryCallBounds},
    MetricRow{"rankscope_slurm_calls_total", MetricType::kCounter, "",
              "Number of successful calls of Slurm's commands.", "call", Keep::kSlurm,
              Profile::kDefault, Since::kStart},
    SlurmRow("rankscope_slurm_dbd_agent_queue_size", MetricType::kGauge, "",
             "Number of accounting records that slurmctld has not sent to slurmdbd yet."),
    MetricRow{"rankscope_slurm_events_total", MetricType::kCounter, "",
              "Number of events of Slurm's jobs and nodes since the exporter started, by kind.",
              "kind", Keep::kSlurm, Profile::kDefault, Since::kStart},
    SlurmRow("rankscope_slurm_job_changes_total", MetricType::kCounter, "",
             "Number of jobs that slurmctld counted as submitted, started, completed, cancelled or "
             "failed since it last reset its counters.",
             "kind"),
    SlurmRow("rankscope_slurm_jobs", MetricType::kGauge, "",
             "Number of Slurm jobs that wait or hold resources, by partition and state; a job that "
             "waits for several partitions counts in each, and each task of an array is a job.",
             "partition,state"),
    SlurmRow("rankscope_slurm_last_answer_timestamp_seconds", MetricType::kGauge, "seconds",
             "Time at which slurmctld last answered a query of all jobs, in seconds since the Unix "
             "epoch."),
    SlurmRow("rankscope_slurm_node_cpu_load", MetricType::kGauge, "",
             "CPU load of the Slurm node, as reported by slurmd.", "node", Profile::kFull),
    SlurmRow("rankscope_slurm_node_cpus_allocated", MetricType::kGauge, "",
             "Number of the Slurm node's CPUs that are allocated to jobs.", "node", Profile::kFull),
    SlurmRow("rankscope_slurm_node_gpus", MetricType::kGauge, "",
             "Number of GPUs of the Slurm node.", "node", Profile::kFull),
    SlurmRow("rankscope_slurm_node_gpus_allocated", MetricType::kGauge, "",
             "Number of the Slurm node's GPUs that are allocated to jobs.", "node", Profile::kFull),
    SlurmRow("rankscope_slurm_node_memory_allocated_bytes", MetricType::kGauge, "bytes",
             "Memory of the Slurm node that is allocated to jobs, in bytes.", "node",
             Profile::kFull),
    SlurmRow("rankscope_slurm_node_memory_free_bytes", MetricType::kGauge, "bytes",
             "Free memory of the Slurm node in bytes, as reported by slurmd.", "node",
             Profile::kFull),
    SlurmRow("rankscope_slurm_node_reason_info", MetricType::kInfo, "",
             "Reason why the Slurm node is out of service, and its class, as labels of a series "
             "that is always 1.",
             "node,reason_class,reason"),
    SlurmRow("rankscope_slurm_node_state", MetricType::kStateSet, "",
             "State of the Slurm node, for nodes that are out of service or have been since the "
             "exporter started.",
             "node,state"),
    SlurmRow(
        "rankscope_slurm_node_state_seconds_total", MetricType::kCounter, "seconds",
        "Seconds for which the Slurm node was seen down or draining since the exporter started.",
        "node,state"),
    SlurmRow("rankscope_slurm_nodes", MetricType::kGauge, "", "Number of Slurm nodes by state.",
             "state"),
    SlurmRow("rankscope_slurm_partition_cpus", MetricType::kGauge, "",
             "Number of CPUs of the partition's nodes: total, allocated to jobs, or idle on nodes "
             "that are in service.",
             "partition,state"),
    SlurmRow("rankscope_slurm_partition_gpus", MetricType::kGauge, "",
             "Number of GPUs of the partition's nodes: total, allocated to jobs, or idle on nodes "
             "that are in service.",
             "partition,state"),
    SlurmRow("rankscope_slurm_partition_memory_bytes", MetricType::kGauge, "bytes",
             "Memory of the partition's nodes in bytes: total, allocated to jobs, or idle on nodes "
             "that are in service.",
             "partition,state"),
    SlurmRow("rankscope_slurm_pending_jobs", MetricType::kGauge, "",
             "Number of pending Slurm jobs by the reason that Slurm gives.", "reason"),
    SlurmRow("rankscope_slurm_rpc_calls_total", MetricType::kCounter, "",
             "Number of RPCs that slurmctld has served, for the 40 most frequent kinds.", "rpc"),
    SlurmRow("rankscope_slurm_rpc_seconds_total", MetricType::kCounter, "seconds",
             "Seconds that slurmctld took to serve RPCs of this kind.", "rpc"),
    SlurmRow("rankscope_slurm_schedule_cycle_max_seconds", MetricType::kGauge, "seconds",
             "Duration of slurmctld's longest scheduling cycle in seconds."),
    SlurmRow("rankscope_slurm_schedule_cycle_mean_seconds", MetricType::kGauge, "seconds",
             "Mean duration of slurmctld's scheduling cycles in seconds."),
    SlurmRow("rankscope_slurm_schedule_cycle_seconds", MetricType::kGauge, "seconds",
             "Duration of slurmctld's last scheduling cycle in seconds."),
    SlurmRow("rankscope_slurm_schedule_queue_length", MetricType::kGauge, "",
             "Number of jobs in the queue at slurmctld's last scheduling cycle."),
    SlurmRow("rankscope_slurm_server_threads", MetricType::kGauge, "",
             "Number of slurmctld's threads that serve RPCs, of at most 256."),
    SlurmRow(
        "rankscope_slurm_step_info", MetricType::kInfo, "",
        "State and exit code of a step of a Slurm job, running or among the last that ended, as "
        "labels of a series that is always 1.",
        "job_id,step_id,name,nodes,state,exit"),
    SlurmRow("rankscope_slurm_user_jobs", MetricType::kGauge, "",
             "Number of Slurm jobs of the user and account that are pending, or that hold "
             "resources, which is state running; the users with the fewest jobs are summed as "
             "user other.",
             "user,account,state"),
};

}  // namespace rankscope::metrics
