// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The processes that belong to training jobs, shared by the sources that watch processes so that
// each birth and each death is told once. Bounded: where the table is full, the user with the most
// processes gives one up, the newest; where he is who asks, his new one is not tracked. Root gives
// up nothing to others. Loop thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/ids.h"

namespace rankscope::collectors {

struct TrackedProcess {
  ProcessKey key;
  ProcessKey parent;
  uint32_t uid = 0;
  std::string job_id;         // when known without the engine: Slurm's, or the wrapper's
  std::string memory_cgroup;  // directory below the cgroup mount; empty = the root's
  bool memory_is_v1 = false;
  bool missing = false;  // not seen by the last scan; its end is told by the next one
  // A wrapper's command or below it: the wrapper's word for the job stands.
  bool wrapped = false;
  bool by_cgroup = false;      // job_id is by the job's cgroup
  bool unranked = false;       // there for its cgroup alone: nothing has told it a place in the job
  bool from_launcher = false;  // its parent is the launcher of ranks, which is of the job as well
};

class ProcessTable {
 public:
  // A node trains with at most some hundred ranks, each with at most some dozen data-loader
  // workers.
  static constexpr size_t kMaxTracked = 4096;
  // A job of any kind has a cgroup, and may run thousands of small programs: half of the room is
  // theirs. Both are shared by the users.
  static constexpr size_t kMaxUnranked = kMaxTracked / 2;

  // The first process of a job that somebody else has announced: it and its descendants are
  // tracked.
  void AddRoot(ProcessKey key, std::string job_id);
  // The command of a wrapper, which hears it; the newest kMaxWrapped are remembered.
  void NoteWrapped(ProcessKey key);
  const std::deque<ProcessKey>& wrapped() const { return wrapped_; }
  // Takes the roots announced since the last call.
  std::vector<std::pair<ProcessKey, std::string>> TakeRoots();
  // A process whose facts the engine wants again.
  void AskFacts(ProcessKey key);
  std::vector<ProcessKey> TakeAsked();

  // False when the table is full and nobody has more than this user: counted, not tracked. Replaces
  // an entry of the same pid. Nothing tells of a launcher itself: its facts are asked for.
  bool Add(TrackedProcess process);
  void Remove(ProcessKey key);
  // Whether its end was told a moment ago: what a scan or a worker still knows of it is old news.
  bool HasEnded(const ProcessKey& key) const { return ended_.contains(key); }
  TrackedProcess* Find(int32_t pid);
  const std::map<int32_t, TrackedProcess>& processes() const { return processes_; }
  int64_t dropped() const { return dropped_; }
  // Processes tracked so far whose parent was not: each is the first of a run, or of a node's part
  // of it.
  int64_t begun() const { return begun_; }
  // A run that is known otherwise has begun, though no process of it is here.
  void NoteBegun() { ++begun_; }

  // Whether a source tells exits as they happen; the scan then waits one round before it tells them
  // itself.
  void set_exits_told(const void* teller, bool told);
  bool exits_told() const { return !exit_tellers_.empty(); }

  // Hears of every process that is tracked from now on, or no longer.
  using OnChange = std::function<void(const ProcessKey& key, bool tracked)>;
  void set_on_change(OnChange on_change) { on_change_ = std::move(on_change); }

 private:
  // pids by user
  using Users = std::map<uint32_t, std::set<int32_t>>;
  // Whether one of this user's may be added, after another has given one up.
  bool MakeRoom(const Users& users, uint32_t uid);
  void Index(const TrackedProcess& process);
  void Unindex(const TrackedProcess& process);
  void Drop(int32_t pid);

  std::map<int32_t, TrackedProcess> processes_;
  Users users_;
  Users unranked_users_;
  size_t unranked_ = 0;
  std::vector<ProcessKey> asked_;
  static constexpr size_t kMaxWrapped = 256;  // twice the jobs that are recorded at once
  std::deque<ProcessKey> wrapped_;
  // A scan takes at most some seconds, and a job that spawns without end a thousand a second.
  static constexpr size_t kMaxEnded = 8192;
  std::set<ProcessKey> ended_;
  std::deque<ProcessKey> ended_order_;
  int64_t dropped_ = 0;
  int64_t begun_ = 0;
  std::set<const void*> exit_tellers_;
  OnChange on_change_;
};

}  // namespace rankscope::collectors
