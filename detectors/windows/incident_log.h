// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What may explain a run's end, in the order it became known: typed candidates from text,
// processes, kernel and scheduler. Bounded: the first kFirst stay for ever (the initiating event is
// early), the rest is a ring of the newest, in which errors of a rank's own outlive consequences.
// Equal incidents of many ranks are one candidate with a set of ranks. Outlives attempts. Single
// writer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/logs/record.h"
#include "detectors/proto/verdict.pb.h"

namespace rankscope::windows {

struct Candidate {
  logs::Incident incident;
  proto::Store store = proto::STORE_LOG;
  uint32_t stream = 0;
  int32_t attempt = 1;  // ordinal; one more than the job's while a restart is only suspected
  int64_t order = 0;    // arrival number, over all streams
  int64_t progress_before = 0;  // training records of the attempt before it
  int64_t times = 1;            // how often it was said
  std::vector<int32_t> ranks;   // who said it, rising; empty = unknown speaker
  ProcessKey process;
  int64_t printed_ms = 0;              // newest time that its stream had printed; 0 = none
  int64_t stream_progress_before = 0;  // training records of its own rank's stream before it
  bool past = false;                   // of text that was written before anybody observed the job

  template <class A>
  void Fields(A& a) {
    a(incident, store, stream, attempt, order, progress_before, times, ranks, process, printed_ms,
      stream_progress_before, past);
    if (!proto::Store_IsValid(store)) store = proto::STORE_LOG;  // restored from damaged bytes
  }
};

class IncidentLog {
 public:
  static constexpr size_t kFirst = 128;
  static constexpr size_t kNewest = 128;      // at least; up to twice as many between two clean-ups
  static constexpr size_t kMaxRanks = 16384;  // of one candidate: as many as a job's window knows

  // Training records between two equal incidents that make them two events.
  static constexpr int64_t kProgressBetween = 3;

  void Add(Candidate candidate);
  // What was filed under attempt `from` belongs to attempt `to`.
  void MoveToAttempt(int32_t from, int32_t to);

  // In order of arrival.
  const std::vector<Candidate>& all() const { return candidates_; }
  int64_t dropped() const { return dropped_; }
  int64_t total() const { return next_order_; }

  template <class A>
  void Fields(A& a) {
    a(candidates_, next_order_, dropped_);
  }

 private:
  void DropSome();

  std::vector<Candidate> candidates_;
  std::vector<uint64_t> keys_;  // of candidates_: equal where two may be the same; made again after
                                // a restore
  int64_t next_order_ = 0;
  int64_t dropped_ = 0;
};

}  // namespace rankscope::windows
