// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What attribution knows of a process and how it came to know it, and of the job it is of. Plain
// data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "detectors/model/ids.h"
#include "detectors/model/time.h"

namespace rankscope::attribution {

enum class ProcessRole : uint8_t { kUnknown, kLauncher, kRank, kWorker };

enum class Fact : uint8_t {
  kJob,
  kStep,
  kTask,
  kRank,
  kLocalRank,
  kWorldSize,
  kNodeRank,
  kNode,
  kLauncher,
  kMaster,
  kContainer,
  kPod,
  kArray,
  kHet,
};

// How a fact was found: by one phrase, and which other sources said something else.
struct Provenance {
  Fact fact = Fact::kJob;
  std::string by;
  std::string against;  // "X says 1, Y says 2"; empty: nobody disagrees

  template <class A>
  void Fields(A& a) {
    a(fact, by, against);
  }
};

struct ProcessInfo {
  ProcessKey key;
  ProcessKey parent;
  uint32_t uid = 0;
  std::string comm;
  std::string command;  // argv joined, at most kCommandCap bytes
  std::string job_id;   // empty: none of ours
  ProcessRole role = ProcessRole::kUnknown;
  int32_t rank = -1;
  int32_t local_rank = -1;
  int32_t world_size = 0;
  int32_t slurm_restart = 0;
  int32_t elastic_restart = 0;
  bool alive = true;
  bool status_known = false;
  int32_t wait_status = 0;
  bool core = false;
  Timestamp started;
  Timestamp ended;
  std::string job_by;  // provenance, one phrase each
  std::string rank_by;
  bool wrapped = false;     // the wrapper's command, or below it: its word for the job stands
  bool task_rank = false;   // `rank` is the number of Slurm's task, and nothing else says it
  std::string step_id;      // of Slurm: a number, batch, extern, interactive; empty: not known
  int32_t task = -1;        // Slurm's, of the whole step
  int32_t node_rank = -1;   // the node's number among the job's
  std::string node_name;    // Slurm's name for the node
  std::string launcher;     // torchrun, srun, ...; who gave the process its rank
  std::string master_addr;  // where ranks meet
  std::string container_id;
  std::string pod_uid;
  std::string array_job_id;
  std::string array_task;
  std::string het_job_id;
  int32_t het_component = -1;
  int32_t inner_pid = 0;  // in its own pid namespace; 0: the machine's
  std::vector<Provenance> provenance;

  static constexpr size_t kMaxProvenance = 16;  // each fact once

  template <class A>
  void Fields(A& a) {
    a(key, parent, uid, comm, command, job_id, role, rank, local_rank, world_size, slurm_restart,
      elastic_restart, alive, status_known, wait_status, core, started, ended, job_by, rank_by,
      wrapped, task_rank, step_id, task, node_rank, node_name, launcher, master_addr, container_id,
      pod_uid, array_job_id, array_task, het_job_id, het_component, inner_pid, provenance);
    while (provenance.size() > kMaxProvenance)
      provenance.pop_back();  // restored from damaged bytes
  }
};

// What the environment of a job's processes says of all of it. Texts as the first of them has
// them, at most kTextCap bytes; empty: not said.
struct JobFacts {
  uint32_t uid = 0;        // of the process that told them
  bool by_cgroup = false;  // a process of it stands in the job's own cgroup
  std::string name;
  std::string user;
  std::string account;
  std::string partition;
  std::string qos;
  std::string nodes;
  std::string tasks;
  std::string dependency;
  std::string array_job_id;
  std::string array_task;
  std::string het_job_id;
  std::string launcher;

  static constexpr size_t kTextCap = 128;

  template <class A>
  void Fields(A& a) {
    a(uid, by_cgroup, name, user, account, partition, qos, nodes, tasks, dependency, array_job_id,
      array_task, het_job_id, launcher);
  }
};

}  // namespace rankscope::attribution
