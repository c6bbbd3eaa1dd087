// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The scheduler's records of a job: a job that was put back into the queue runs several times under
// one number, and there is a record of each run. And the states of the nodes that the job had.
// Recordings of older builds have single facts in place of a record; the state is the last of them.
// Bounded; texts are a stranger's, and are cut and made one line. Single writer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/model/time.h"

namespace rankscope::windows {

// One run of the job. Numbers below 0 and empty texts were not told.
struct SchedulerRun {
  int64_t start = 0, end = 0;  // seconds since 1970; 0 = not told
  int64_t elapsed_seconds = -1;
  int64_t time_limit_seconds = -1;
  int64_t restarts = -1;
  std::string state;  // PREEMPTED, COMPLETED ...; RUNNING while it runs
  std::string by, reason, nodes, failed_node, exit, origin;
  // On the clock of the observations; only where `clocked`: else they are when it was told.
  Timestamp start_t, end_t;
  bool clocked = false;

  bool ended() const;
  double seconds() const;  // that it ran; NaN: not known

  template <class A>
  void Fields(A& a) {
    a(start, end, elapsed_seconds, time_limit_seconds, restarts, state, by, reason, nodes,
      failed_node, exit, origin, start_t, end_t, clocked);
  }
};

// The newest of what is told of one node.
struct SchedulerNode {
  std::string node;
  std::string state;         // up | down | failed | drained | draining | maintenance
  std::string reason;        // in somebody's words
  std::string reason_class;  // closed list: exporter/slurm/node_reason.h
  std::string origin;
  Timestamp t;  // of the state
  bool clocked = false;

  template <class A>
  void Fields(A& a) {
    a(node, state, reason, reason_class, origin, t, clocked);
  }
};

// Where wall times lie on the clock of the observations.
struct WallClock {
  Timestamp now;          // of the observation that tells the times
  int64_t offset_ns = 0;  // wall time = t + offset_ns; 0 = not known

  // nullopt: not known, or no time that can be meant.
  std::optional<Timestamp> At(int64_t wall_ns) const;
  std::optional<Timestamp> AtSecond(int64_t since_1970) const;
};

class SchedulerHistory {
 public:
  // A job that is put back every two minutes has as many in an hour. Of more, the newest.
  static constexpr size_t kMostRuns = 32;
  static constexpr size_t kMostNodes = 16;
  static constexpr size_t kTextCap = 200;

  // What a record says of the job's state. `run`: of which run, where that is known; valid until
  // the next record.
  struct State {
    bool changed = false;
    const SchedulerRun* run = nullptr;
    std::string by;  // who cancelled it, as this record has it
  };
  State OnRecord(SchedulerRecord record, const WallClock& clock);
  // One word of a node; or, in recordings of older builds, of a record, which is whole, and to be
  // taken by OnRecord, once its state is there.
  std::optional<SchedulerRecord> OnFact(const SchedulerFact& fact, const WallClock& clock);

  // By their starts, oldest first.
  const std::vector<SchedulerRun>& runs() const { return runs_; }
  int64_t dropped() const { return dropped_; }  // older ones, of which there was no more room
  const std::vector<SchedulerNode>& nodes() const { return nodes_; }
  // What it was told to be last, whichever run it was told of; empty = nothing.
  const std::string& state() const { return state_; }
  const std::string& state_origin() const { return state_origin_; }
  int64_t restarts() const { return restarts_; }                      // -1 = not told
  int64_t time_limit_seconds() const { return time_limit_seconds_; }  // the same
  int64_t gpus() const { return gpus_; }                              // the same, of all its nodes
  const std::string& origin() const { return origin_; }               // of the newest of these
  Timestamp submitted() const { return submitted_; }                  // the last time it was

  template <class A>
  void Fields(A& a) {
    a(runs_, dropped_, nodes_, told_, state_, state_origin_, restarts_, time_limit_seconds_, gpus_,
      origin_, submitted_);
    if (runs_.size() > kMostRuns) runs_.resize(kMostRuns);  // restored from damaged bytes
    if (nodes_.size() > kMostNodes) nodes_.resize(kMostNodes);
  }

 private:
  void OnNode(const SchedulerFact& fact, const WallClock& clock);
  State Commit(const SchedulerRecord& record, std::string_view state, const WallClock& clock);
  SchedulerRun* RunOf(int64_t start, const WallClock& clock);

  std::vector<SchedulerRun> runs_;
  int64_t dropped_ = 0;
  std::vector<SchedulerNode> nodes_;
  SchedulerRecord told_;  // in single facts, whose state is still to come
  std::string state_, state_origin_;
  int64_t restarts_ = -1, time_limit_seconds_ = -1, gpus_ = -1;
  std::string origin_;
  Timestamp submitted_;
};

// A state from which the job goes on.
bool SchedulerStateGoesOn(std::string_view state);
// It has no nodes: its start is the scheduler's guess.
bool SchedulerStateWaits(std::string_view state);

}  // namespace rankscope::windows
