// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The steps of a Slurm job: which of them trained, and how each ended, by its processes on this
// node and by the scheduler's record. A job that has trained may copy and evaluate in further
// steps, and how these end says nothing of the training. Names are a stranger's, and are cut and
// made one line. Bounded. Single writer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/attribution/process_info.h"
#include "detectors/model/observation.h"
#include "detectors/windows/scheduler_history.h"

namespace rankscope::windows {

struct StepSeen {
  std::string id;       // a number; "batch" is the job's script
  std::string program;  // what its ranks run
  // Its ranks on this node.
  Timestamp begin, end;    // `end`: of the last that has ended
  int32_t ranks = 0;       // that were seen
  int32_t alive = 0;       // of them
  int32_t well = 0;        // that exited with 0
  int32_t world = 0;       // on all nodes
  int32_t bad_status = 0;  // the first wait status that is known and not 0
  int64_t progress = 0;    // training records
  Timestamp last_progress;
  // The scheduler's record.
  std::string state, name, exit, nodes, origin;
  Timestamp told_end;  // on the clock of the observations; 0 = not told

  bool is_batch() const { return id == "batch"; }
  bool told() const;  // the record has an end
  // By the record; without one by all its ranks, where all are on this node.
  bool ended_well() const;
  bool ended_badly() const;
  Timestamp ended_at() const { return end.ns != 0 && alive == 0 ? end : told_end; }
  // Of the record, else of a rank: 1 of "1:0". 128 + signal where that ended it.
  int32_t exit_code() const;

  template <class A>
  void Fields(A& a) {
    a(id, program, begin, end, ranks, alive, well, world, bad_status, progress, last_progress,
      state, name, exit, nodes, origin, told_end);
  }
};

class StepTable {
 public:
  static constexpr size_t kMaxSteps = 64;    // of more, the oldest that did not train makes room
  static constexpr size_t kMaxRanks = 4096;  // of one node
  static constexpr size_t kTextCap = 120;

  void OnRankStart(const attribution::ProcessInfo& rank, Timestamp t);
  void OnRankExit(const attribution::ProcessInfo& rank, Timestamp t);
  // `program`: what a rank runs.
  void OnProgram(const attribution::ProcessInfo& rank, std::string_view program);
  // A training record. `writer`: who printed it, as far as that is known.
  void OnProgress(const ProcessKey& writer, Timestamp t);
  // One word of a step's record; its state comes last. True: it has come to its end by that.
  bool OnFact(const SchedulerFact& fact, const WallClock& clock);
  // The job runs again: its steps are counted from 0.
  void Clear() { *this = {}; }

  // In the order in which they were first heard of.
  const std::vector<StepSeen>& all() const { return steps_; }
  // The newest that trained; null = none.
  const StepSeen* Training() const;
  // The step that trained, where it came to a good end and none after it trained or ran the same
  // program; null = none.
  const StepSeen* FinishedTraining() const;
  // The step that trained, where it failed and none after it came to a good end with the same
  // program; null = none.
  const StepSeen* FailedTraining() const;
  // The first step after `training` that failed; null = none.
  const StepSeen* FailedAfter(const StepSeen& training) const;
  // Of its ranks here, the one that began last; pid 0 = not known.
  ProcessKey LastRankOf(std::string_view id) const;

  template <class A>
  void Fields(A& a) {
    a(steps_, ranks_);
    if (steps_.size() > kMaxSteps) steps_.resize(kMaxSteps);  // restored from damaged bytes
    if (ranks_.size() > kMaxRanks) ranks_.resize(kMaxRanks);
  }

 private:
  struct Rank {
    ProcessKey process;
    std::string step;
    bool alive = true;

    template <class A>
    void Fields(A& a) {
      a(process, step, alive);
    }
  };

  StepSeen* Find(std::string_view id);
  StepSeen& FindOrAdd(std::string_view id);
  Rank* RankOf(const ProcessKey& process);
  StepSeen* Speaking(const ProcessKey& writer, Timestamp t);
  bool IsAfter(const StepSeen& step, const StepSeen& training) const;

  std::vector<StepSeen> steps_;
  std::vector<Rank> ranks_;  // that run, and those that ended last
};

}  // namespace rankscope::windows
