// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Process -> job, rank, role. Fed with process facts in any order; keeps how each fact was found,
// for `explain`.
//
//   job:  what the source says (the wrapper's own child) > the parent's job > SLURM_JOB_ID >
//   proc-<8 hex> of boot id and
//         launcher root, for processes that carry a rank's environment
//   rank: RANK > OMPI_COMM_WORLD_RANK, PMIX_RANK > SLURM_PROCID (only where nothing below it
//   carries RANK)
//
// A process whose parent is already a rank's process is that rank's worker, whatever its
// environment says: environments are inherited. Bounded by kMaxProcesses; ended processes are
// forgotten first. Single writer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope::attribution {

enum class ProcessRole : uint8_t { kUnknown, kLauncher, kRank, kWorker };

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

  template <class A>
  void Fields(A& a) {
    a(key, parent, uid, comm, command, job_id, role, rank, local_rank, world_size, slurm_restart,
      elastic_restart, alive, status_known, wait_status, core, started, ended, job_by, rank_by);
  }
};

class Attribution {
 public:
  static constexpr size_t kMaxProcesses = 8192;  // about 1 kB each
  static constexpr size_t kCommandCap = 200;

  // Returns the attributed process; nullptr when it belongs to no job.
  const ProcessInfo* OnStart(const ProcessStart& start, std::string_view boot_id, Timestamp t);
  // Returns the process that ended; nullptr when unknown. A known status is never replaced by an
  // unknown one.
  const ProcessInfo* OnExit(const ProcessExit& exit, Timestamp t);
  // The wrapper names its child before any process source has seen it.
  void OnRunBegin(const RunMark& mark, Timestamp t);
  void ForgetJob(std::string_view job_id);

  const ProcessInfo* Find(const ProcessKey& key) const;
  const ProcessInfo* FindPid(int32_t pid) const;  // the newest with this pid
  // All known processes of a job, by key.
  std::vector<const ProcessInfo*> OfJob(std::string_view job_id) const;
  int64_t dropped() const { return dropped_; }

  template <class A>
  void Fields(A& a) {
    a(processes_, dropped_);
  }

 private:
  void MakeRoom();

  std::map<ProcessKey, ProcessInfo> processes_;
  int64_t dropped_ = 0;
};

}  // namespace rankscope::attribution
