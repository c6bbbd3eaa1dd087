// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What Slurm says of its jobs, nodes and itself, in one shape for all the texts and all the
// versions it is read from. Plain data. Times are seconds since 1970; 0 = not set. A number that is
// absent from a text, or that Slurm gives no value, is nullopt. Texts are as Slurm prints them,
// with its words for nothing ("(null)", "None", "N/A", "None assigned", "Unknown") made empty, but
// for a job's name; not masked yet. A start or an end that lies ahead is the one that Slurm
// expects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rankscope::exporter::slurm {

// Of a job's step, a task or the job: what waitpid() would say, taken apart.
struct ExitStatus {
  int32_t code = 0;
  int32_t signal = 0;
  bool operator==(const ExitStatus&) const = default;
};

// "0:9", as Slurm prints it.
inline std::string Text(const ExitStatus& exit) {
  return std::to_string(exit.code) + ":" + std::to_string(exit.signal);
}

struct SlurmJob {
  std::string job_id;        // digits: of an array's task or a heterogeneous part, its own number
  std::string array_job_id;  // digits; empty = no array
  std::string array_task;    // "7", or "1-5,9%2" of what is still together
  std::string het_job_id;    // digits; empty = none
  int32_t het_offset = -1;
  std::string name, user, account, partition, qos, cluster;
  std::optional<int64_t> uid;  // of the user; accounting tells the name alone
  std::string state;  // base state in capitals: "RUNNING"; empty = not said, as of "COMPLETING"
  std::vector<std::string> state_flags;  // "COMPLETING", "REQUEUED", ... in capitals
  std::string reason;                    // Slurm's word: "Dependency", "NonZeroExitCode", ...
  std::string state_by;                  // uid or name of who cancelled, if the state names one
  std::string dependency;
  std::string nodes;       // host list as printed: "n[1-2]"; empty = none yet
  std::string batch_host;  // the node of the script
  std::optional<int64_t> node_count, cpus, tasks, gpus, priority, restarts;
  std::optional<int64_t> time_limit_seconds;  // nullopt: none said, or unlimited
  int64_t submit = 0, eligible = 0, start = 0, end = 0, suspend = 0, preempt = 0;
  std::optional<int64_t> elapsed_seconds, suspended_seconds;
  std::optional<ExitStatus> exit, derived_exit;  // nullopt: not ended, or not said
  std::string failed_node, comment, admin_comment, submit_line, command, work_dir, std_out, std_err;
  bool requeue = false;  // it may be requeued
  std::string step_id;   // of accounting's rows of steps: "0", "batch", "extern"; empty = the job's

  bool operator==(const SlurmJob&) const = default;
};

struct SlurmNode {
  std::string name;
  std::string state;                     // base state in capitals: "IDLE", "DOWN", "ALLOCATED"
  std::vector<std::string> state_flags;  // "DRAIN", "NOT_RESPONDING", "MAINTENANCE", in capitals
  std::string reason, reason_by;
  int64_t reason_since = 0, boot = 0, slurmd_start = 0;
  std::optional<double> cpu_load;
  std::optional<int64_t> cpus, cpus_allocated, gpus, gpus_allocated;
  std::optional<int64_t> memory_bytes, memory_allocated_bytes, memory_free_bytes;
  std::string partitions, version;

  bool operator==(const SlurmNode&) const = default;
};

// One kind of call that the controller has served since it started to count.
struct RpcCount {
  std::string name;  // "REQUEST_JOB_INFO", or a user's name
  int64_t calls = 0;
  double seconds = 0;  // together
  bool operator==(const RpcCount&) const = default;
};

struct SlurmDiag {
  int64_t since = 0;  // counts begin
  std::optional<int64_t> server_threads, agent_queue, dbd_agent_queue;
  std::optional<int64_t> submitted, started, completed, cancelled, failed, pending, running;
  std::optional<double> cycle_seconds, cycle_max_seconds, cycle_mean_seconds;
  std::optional<double> backfill_seconds, backfill_mean_seconds;
  std::optional<int64_t> backfill_depth, queue_length;
  std::vector<RpcCount> rpcs, users;
  bool whole = true;  // as of Read
};

// What could be read, and how many records could not.
template <class Record>
struct Read {
  std::vector<Record> records;
  int64_t unreadable = 0;
  bool whole = true;  // false: an answer that is not all there, so that who is missing is not gone
};

}  // namespace rankscope::exporter::slurm
