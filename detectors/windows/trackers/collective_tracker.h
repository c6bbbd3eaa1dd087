// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: communicators and collectives as the calls into NCCL show them, and the questions
// that a watchdog asks of their events. Counting may begin late and leave out some: growth since a
// rank was first heard, and when it grew last, hold all the same; sequences are only said of what
// was counted from its beginning. Bounded: 64 ranks of one node x ~700 B. Single writer.
//
//   rank 0  . . . E E c . . . . . . .      E enters a collective, c one is through
//   rank 1  . . . E E c . . . . . . .      q its watchdog asks: one is in flight, for so long
//   rank 2  . . . E . c . . . . . . .      rank 2 entered one less, and nothing of it is in flight
//                       q q q q q q q      at the standstill 0 and 1 wait for 2
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "detectors/model/observation.h"
#include "detectors/windows/trackers/launch_tracker.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

class RankCollective {
 public:
  // `unheard_until`: as in Speaker.
  void OnSamples(const SampleBatch& batch, Timestamp t, Timestamp unheard_until);
  // Of the same process, from other sources: bytes written to files, seconds on a CPU.
  void OnOthers(const SampleBatch& batch);
  void OnCommunicator(double ranks, std::string_view what);
  void OnCallFailed(std::string_view call, double result);
  void OnExit() { alive_ = false; }
  void Reset(const ProcessKey& process);

  const ProcessKey& process() const { return process_; }
  bool counted() const { return counted_; }
  bool alive() const { return alive_; }
  Timestamp first() const { return first_; }
  Timestamp last() const { return last_; }
  double entered() const { return entered_; }      // since first heard
  double completed() const { return completed_; }  // the same
  Timestamp last_entered() const { return last_entered_; }
  // Entered one or saw one end.
  Timestamp last_advance() const { return last_advance_; }
  // Its number of the newest one on the communicator of the most ranks; negative: not counted from
  // that one's beginning.
  double sequence() const { return sequence_; }
  // Whether it is known what is in flight: of a process whose calls may be counted only since it
  // had begun one, not before it enters the next.
  bool flight_known() const { return flight_known_; }
  double in_flight() const { return in_flight_; }
  double FlightSeconds(Timestamp now) const;  // of the oldest in flight; 0: none is
  bool ever_asked() const { return asked_; }
  Timestamp last_asked() const { return last_asked_; }
  const Pauses& pauses() const { return pauses_; }
  double written_since() const { return written_.value - written_at_entered_; }
  double cpu_since() const { return cpu_.value - cpu_at_entered_; }
  double communicators() const { return communicators_; }
  double inits_in_flight() const { return inits_in_flight_; }
  double InitSeconds(Timestamp now) const;
  double aborts() const { return aborts_.value; }
  double ranks_of_largest() const { return ranks_of_largest_; }

  template <class A>
  void Fields(A& a) {
    a(process_, counted_, alive_, first_, last_, entered_, completed_, last_entered_, last_advance_,
      enqueued_total_, completed_total_, queries_, aborts_, written_, cpu_, sequence_,
      ranks_of_largest_, in_flight_, oldest_seconds_, asked_, last_asked_, pauses_,
      written_at_entered_, cpu_at_entered_, communicators_, inits_in_flight_, init_seconds_,
      failed_call_, failed_result_, flight_known_, carried_);
  }

 private:
  ProcessKey process_;
  bool counted_ = false;
  bool alive_ = true;
  Timestamp first_, last_;
  double entered_ = 0;
  double completed_ = 0;
  Timestamp last_entered_, last_advance_;
  Total enqueued_total_, completed_total_, queries_, aborts_, written_, cpu_;
  double sequence_ = -1;
  double ranks_of_largest_ = 0;
  double in_flight_ = 0;
  double oldest_seconds_ = 0;
  bool asked_ = false;
  Timestamp last_asked_;
  Pauses pauses_;
  double written_at_entered_ = 0;
  double cpu_at_entered_ = 0;
  double communicators_ = 0;
  double inits_in_flight_ = 0;
  double init_seconds_ = 0;
  std::string failed_call_;
  double failed_result_ = 0;
  bool flight_known_ = false;
  bool carried_ = false;  // counted anew since a restart of the daemon; what was in flight still is
};

class CollectiveTracker {
 public:
  static constexpr size_t kMaxRanks = 4096;  // a node has some dozen, a recording those of all

  void OnEvent(const Event& event, const Speaker& speaker, Timestamp t);
  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);
  void OnProcessExit(const ProcessKey& process);

  const std::map<int32_t, RankCollective>& ranks() const { return ranks_; }

  template <class A>
  void Fields(A& a) {
    a(ranks_);
    while (ranks_.size() > kMaxRanks) ranks_.erase(std::prev(ranks_.end()));  // damaged bytes
  }

 private:
  RankCollective* Find(const Speaker& speaker);

  std::map<int32_t, RankCollective> ranks_;
};

}  // namespace rankscope::windows
