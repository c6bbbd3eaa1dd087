// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: what ranks ask of the CUDA runtime and driver: launches, synchronisation, copies,
// allocations. Counters come once a second and are totals; counting may begin late, and be left out
// for a while: only their growth since a rank was first heard is used. Bounded: 64 ranks of one
// node x (32 pieces of 10 s x 52 B + ~400 B) = 130 kB. Single writer.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "detectors/model/observation.h"
#include "detectors/windows/series/ring.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

// Ten seconds of a rank. Seconds and calls are of the piece alone.
struct LaunchPiece {
  int64_t index = -1;  // time / 10 s
  float wall_seconds = 0;
  float launches = 0;  // where part of the time was counted, as many as that makes of all of it
  float launch_seconds = 0;  // the same
  float sync_calls = 0;
  float sync_seconds = 0;  // and of a call that has not come back
  float copy_seconds = 0;
  float allocation_seconds = 0;
  float cpu_seconds = 0;  // of all its threads
  float counted_share = 1;
  float timed_share = 1;
  float stalls = 0;  // pauses of 2 s and more without a launch, spent in none of these calls
  float stall_seconds = 0;

  template <class A>
  void Fields(A& a) {
    a(index, wall_seconds, launches, launch_seconds, sync_calls, sync_seconds, copy_seconds,
      allocation_seconds, cpu_seconds, counted_share, timed_share, stalls, stall_seconds);
  }
};

// Pauses that came to an end: how long this rank is used to stand. The longest alone says little
// (it compiled, once); twice the same is a habit.
struct Pauses {
  double longest = 0;
  double second = 0;
  Ring<float, 64> newest;

  void Add(double seconds);
  double Median() const;  // of the newest; 0: none

  template <class A>
  void Fields(A& a) {
    a(longest, second, newest);
  }
};

// A running total as it comes: growth since the last time; starts anew when it falls.
struct Total {
  bool seen = false;
  double value = 0;

  double Grow(double next);

  template <class A>
  void Fields(A& a) {
    a(seen, value);
  }
};

class RankCalls {
 public:
  static constexpr size_t kPieces = 32;
  static constexpr size_t kTurns = 8;
  static constexpr double kStallSeconds = 2;

  // `unheard_until`: as in Speaker.
  void OnSamples(const SampleBatch& batch, Timestamp t, Timestamp unheard_until);
  void OnAllocationFailed(std::string_view call, double bytes, Timestamp t);
  void OnCpu(double seconds);
  // Everything that was counted belongs to another process of the rank.
  void Reset(const ProcessKey& process);

  const ProcessKey& process() const { return process_; }
  bool counted() const { return counted_; }
  bool alive() const { return alive_; }
  void OnExit() { alive_ = false; }
  bool launched() const { return launched_; }
  Timestamp first() const { return first_; }
  Timestamp last() const { return last_; }
  Timestamp last_launch() const { return last_launch_; }
  double launches() const { return launches_; }
  const Pauses& pauses() const { return pauses_; }
  const Ring<LaunchPiece, kPieces>& pieces() const { return pieces_; }  // whole ones
  const LaunchPiece& current() const { return current_; }
  // Launches between one stall and the next, of the newest.
  const Ring<float, kTurns>& turns() const { return turns_; }
  // How long it is in a synchronisation that has not come back; 0 = in none.
  double SyncSeconds(Timestamp now) const;
  double counted_share() const { return counted_share_; }
  double allocation_failures() const { return failures_.value; }
  double last_failed_bytes() const { return last_failed_bytes_; }  // NaN: not known
  const std::string& failed_call() const { return failed_call_; }
  Timestamp failed_at() const { return failed_at_; }
  double launches_since_failure() const { return launches_ - launches_at_failure_; }
  double cuda_errors() const { return errors_.value; }
  double last_cuda_error() const { return last_error_; }  // NaN: not known
  const std::string& error_call() const { return error_call_; }
  void OnCallFailed(std::string_view call, double result);

  template <class A>
  void Fields(A& a) {
    a(process_, counted_, alive_, launched_, first_, last_, last_launch_, launches_, kernels_,
      graphs_, launch_seconds_, sync_calls_, sync_seconds_, sync_open_seconds_, copy_seconds_,
      allocation_seconds_, cpu_, failures_, errors_, last_failed_bytes_, failed_call_, failed_at_,
      launches_at_failure_, counted_share_, calls_since_launch_, pauses_, pieces_, current_,
      last_error_, error_call_, sync_known_, turns_, turn_begun_at_);
  }

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  struct Growth;
  void TurnPiece(Timestamp t);
  void NoteLaunches(const Growth& growth, double age_seconds, double gap_seconds, Timestamp t,
                    Timestamp unheard_until);
  void NoteFailures(double failures, double bytes, Timestamp t);

  ProcessKey process_;
  bool counted_ = false;
  bool alive_ = true;
  bool launched_ = false;
  Timestamp first_, last_, last_launch_;
  double launches_ = 0;  // kernels and graphs, grown since first heard
  Total kernels_, graphs_, launch_seconds_, sync_calls_;
  Total sync_seconds_;            // with calls that have not come back
  double sync_open_seconds_ = 0;  // of the oldest of those
  bool sync_known_ = true;        // false: counted anew, while one may still be open
  Total copy_seconds_, allocation_seconds_, cpu_, failures_, errors_;
  double last_failed_bytes_ = kNone;
  std::string failed_call_;
  Timestamp failed_at_;
  double launches_at_failure_ = 0;
  double counted_share_ = 1;
  double calls_since_launch_ = 0;  // seconds in calls since the last launch
  Pauses pauses_;
  Ring<LaunchPiece, kPieces> pieces_;
  LaunchPiece current_;
  Ring<float, kTurns> turns_;
  double turn_begun_at_ = -1;  // launches when the newest stall ended; -1: there was none
  double last_error_ = kNone;
  std::string error_call_;
};

class LaunchTracker {
 public:
  static constexpr size_t kMaxRanks = 4096;  // a node has some dozen, a recording those of all

  void OnEvent(const Event& event, const Speaker& speaker, Timestamp t);
  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);
  void OnProcessExit(const ProcessKey& process);

  const std::map<int32_t, RankCalls>& ranks() const { return ranks_; }

  template <class A>
  void Fields(A& a) {
    a(ranks_);
    while (ranks_.size() > kMaxRanks) ranks_.erase(std::prev(ranks_.end()));  // damaged bytes
  }

 private:
  RankCalls* Find(const Speaker& speaker);

  std::map<int32_t, RankCalls> ranks_;
};

}  // namespace rankscope::windows
