// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is known of Slurm's jobs and nodes where the daemon runs beside the controller: published by
// its source, read by /events, /metrics and the page. Texts are masked and bounded. Plain data;
// immutable once published.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/model/library_call.h"
#include "detectors/model/observation.h"

namespace rankscope {

// What a job, or a node, has come to. `kind` is of the closed list below.
struct SlurmEvent {
  int64_t number = 0;   // rises by one with each; of one controller role
  int64_t wall_ns = 0;  // when it happened, as Slurm says; else when it was seen
  std::string job_id;   // empty: of a node
  std::string node;     // empty: of a job
  std::string kind;
  std::string reason;           // Slurm's word
  std::string was, is;          // states, or of "updated" the field's values
  std::string source;           // scontrol | sacct | slurmrestd
  std::vector<KeyValue> facts;  // by name: "nodes", "restarts", "exit", ...
};

// In the order of a job's life. The ends are what accounting calls them.
inline constexpr std::string_view kSlurmEventKinds[] = {
    "submitted", "blocked",      "started",   "suspended",     "resumed",   "requeued",
    "updated",   "completed",    "failed",    "cancelled",     "timeout",   "node_fail",
    "preempted", "boot_fail",    "deadline",  "out_of_memory", "node_down", "node_drain",
    "node_up",   "step_started", "step_ended"};

// How long a node has been out of service since the role has looked.
struct SlurmNodeState {
  std::string name;
  std::string state;         // up | down | drained | draining | failed | maintenance
  std::string reason_class;  // closed list; empty where it is up
  std::string reason;
  int64_t down_seconds = 0, drain_seconds = 0;
  double cpu_load = -1;  // negative: unknown, here and below
  int64_t cpus = -1, cpus_allocated = -1, gpus = -1, gpus_allocated = -1;
  int64_t memory_bytes = -1, memory_allocated_bytes = -1, memory_free_bytes = -1;
};

// A step that runs, or one of those that ended last.
struct SlurmStepState {
  std::string job_id, step_id;
  std::string name;  // its owner's words
  std::string nodes;
  // "code:signal", empty while it runs; RUNNING | COMPLETED | FAILED | OUT_OF_MEMORY ...
  std::string exit, state;
};

struct SlurmRpc {
  std::string type;  // "REQUEST_JOB_INFO"
  int64_t calls = 0;
  double seconds = 0;
};

// The controller's own word of how it is; negative: not said.
struct SlurmController {
  int64_t server_threads = -1, agent_queue = -1, dbd_agent_queue = -1;
  int64_t submitted = -1, started = -1, completed = -1, cancelled = -1, failed = -1;
  double cycle_seconds = -1, cycle_max_seconds = -1, cycle_mean_seconds = -1;
  double backfill_seconds = -1, backfill_mean_seconds = -1;
  int64_t backfill_depth = -1, queue_length = -1;
  std::vector<SlurmRpc> rpcs;
};

// States of jobs that wait or hold something, and of nodes, each of which is in one of them.
inline constexpr std::array<std::string_view, 5> kQueueStates = {
    "pending", "configuring", "running", "suspended", "completing"};
inline constexpr std::array<std::string_view, 8> kNodeUseStates = {
    "idle", "mixed", "allocated", "down", "failed", "draining", "drained", "maintenance"};

// The queue and the nodes at one poll of all of them. Bounded: what is beyond is summed under the
// name "other".
struct SlurmQueue {
  struct JobsOf {
    std::string name, account;                        // of a partition: no account
    std::array<int64_t, kQueueStates.size()> jobs{};  // by place in kQueueStates
  };
  struct Amount {
    int64_t total = 0, allocated = 0, idle = 0;  // idle: of nodes that take jobs
  };
  struct Partition {
    std::string name;
    Amount cpus, gpus, memory_bytes;
  };
  std::vector<JobsOf> partitions, users;               // by name
  std::vector<std::pair<std::string, int64_t>> waits;  // pending jobs by reason
  std::array<int64_t, kNodeUseStates.size()> nodes{};  // by place in kNodeUseStates
  std::vector<Partition> resources;                    // by name; empty: nodes are not known
};

// Copied whenever some come, so that who reads them waits for nobody.
using SlurmEvents = std::shared_ptr<const std::deque<std::shared_ptr<const SlurmEvent>>>;

struct SlurmReport {
  SlurmEvents events;      // never null; by number, oldest first
  int64_t first_kept = 1;  // events below this number have made room
  std::vector<std::pair<std::string_view, int64_t>> counts;  // by kind, all kinds
  std::vector<SlurmNodeState> nodes;
  std::vector<SlurmStepState> steps;
  SlurmController controller;
  bool controller_known = false;
  std::shared_ptr<const SlurmQueue> queue;  // null: never polled
  double last_answer_wall_seconds = 0;      // 0 = none yet
};

}  // namespace rankscope
