// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Process -> job, rank, role. Fed with process facts in any order; keeps how each fact was found,
// for `explain`.
//
//   job:  the wrapper's word for what it started > Slurm's cgroup > what the source says > the
//   parent's job > SLURM_JOB_ID > proc-<8 hex> of boot id and
//         launcher root, for processes that carry a rank's environment and for that launcher
//   rank: RANK > OMPI_COMM_WORLD_RANK, PMIX_RANK > SLURM_PROCID (only where nothing below it
//   carries RANK) > 0, for the only process that computes on a GPU in a job that numbers nobody
//
// A cgroup survives a scrubbed environment and no user can falsify it; an environment that
// contradicts it loses. An environment alone is not believed to name a job whose cgroup is known to
// be another user's.
//
// A process whose parent is already a rank's process is that rank's worker, whatever its
// environment says: environments are inherited. But a rank by SLURM_PROCID alone may turn out to be
// the shell that a launcher's ranks are below; it is withdrawn then. And where a shell has the
// number, the program below it that computes takes it over. Single writer.
//
// Bounded by kMaxProcesses. Where there is no room, the user with the most processes gives one up:
// the one that ended first, else the newest; where that is who asks, and all of his live, the new
// one is not taken. Root gives up nothing to others.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/attribution/process_info.h"
#include "detectors/attribution/told.h"
#include "detectors/model/observation.h"

namespace rankscope::attribution {

inline constexpr std::string_view kByComputing =
    "it is the only process of the job that computes on a GPU";

// Whether a process's numbers, or the driver's list of a card's processes, show that it computes.
bool Computes(const SampleBatch& batch);
bool Computes(const Event& event);

class Attribution {
 public:
  static constexpr size_t kMaxProcesses = 8192;  // about 2 kB each
  static constexpr size_t kMaxJobs = 1024;       // whose facts are kept
  static constexpr size_t kCommandCap = 200;

  // Returns the attributed process; nullptr when it belongs to no job.
  const ProcessInfo* OnStart(const ProcessStart& start, std::string_view boot_id, Timestamp t);
  // Returns the process that ended; nullptr when unknown. A known status is never replaced by an
  // unknown one.
  const ProcessInfo* OnExit(const ProcessExit& exit, Timestamp t);
  // A process computes on a GPU. Returns it if that has made it a rank, or has shown which of the
  // processes with its number is the rank.
  const ProcessInfo* OnComputes(const ProcessKey& key);
  // The wrapper names its child before any process source has seen it.
  void OnRunBegin(const RunMark& mark, Timestamp t);
  void ForgetJob(std::string_view job_id);

  const ProcessInfo* Find(const ProcessKey& key) const;
  const ProcessInfo* FindPid(int32_t pid) const;  // the newest with this pid
  // All known processes of a job, by key.
  std::vector<const ProcessInfo*> OfJob(std::string_view job_id) const;
  const JobFacts* FindJob(std::string_view job_id) const;
  int64_t dropped() const { return dropped_; }
  // The ranks that the last OnStart or OnComputes has shown to be none, with the number each had.
  std::vector<std::pair<ProcessKey, int32_t>> TakeWithdrawn() {
    return std::exchange(withdrawn_, {});
  }

  template <class A>
  void Fields(A& a) {
    a(processes_, dropped_, jobs_, shown_);
    IndexAll();
  }

 private:
  // What a process's computing has shown, of itself and of those with its number.
  enum class Shown : uint8_t { kComputes, kGaveNumber };
  bool HasShown(const ProcessKey& key, Shown what) const {
    const auto found = shown_.find(key);
    return found != shown_.end() && found->second == what;
  }
  // A process in the order in which its user gives it up: the ended ones, then the live ones from
  // the end.
  struct Place {
    bool alive = true;
    Timestamp t;  // of its end, or of its start
    ProcessKey key;
    auto operator<=>(const Place&) const = default;
  };
  void FindJobOf(const ProcessStart& start, const Told& told, const ProcessInfo* parent,
                 std::string_view boot_id, ProcessInfo& info) const;
  void FindRole(const Told& told, const ProcessInfo* parent, ProcessInfo& info);
  void WithdrawTaskRanks(const ProcessInfo* parent);
  bool GoesBeforeSiblings(const ProcessInfo& info);
  bool TakesFromShell(ProcessInfo& info);
  bool IsOnly(ProcessInfo& info);
  void TakeNumber(ProcessInfo& from);
  void NumberBelow(const ProcessKey& key, ProcessRole role, int32_t rank);
  // What its computing has shown of a process stands when its facts are told again.
  void KeepRole(const ProcessInfo& before, ProcessInfo& info) const;
  // Whether an environment may name this job.
  bool MayName(std::string_view job_id, uint32_t uid) const;
  void NoteJob(const Told& told, const ProcessInfo& info);
  // False: none of the user's own places is free, and nobody has more than he.
  bool MakeRoom(uint32_t uid);
  ProcessInfo& Put(ProcessInfo info);
  void Erase(const ProcessKey& key);
  void Index(const ProcessInfo& info);
  void Unindex(const ProcessInfo& info);
  void IndexAll();

  std::map<ProcessKey, ProcessInfo> processes_;
  std::map<uint32_t, std::set<Place>> by_user_;
  std::map<std::string, std::set<ProcessKey>, std::less<>> by_job_;
  int64_t dropped_ = 0;
  std::map<std::string, JobFacts> jobs_;
  std::map<ProcessKey, Shown> shown_;  // of processes_
  std::vector<std::pair<ProcessKey, int32_t>> withdrawn_;
};

}  // namespace rankscope::attribution
