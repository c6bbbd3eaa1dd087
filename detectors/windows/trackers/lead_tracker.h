// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: which rank the others wait for. All ranks of synchronous training need the same
// time for a step; the one that comes last to its collectives waits least inside them. A number of
// each rank that grows with its waiting is compared with the median of its peers, once in each
// round of at least one step and one second:
//
//   GPU    engine activity - SM activity / the usual SM activity of a busy engine: a GPU that waits
//          in a collective has its engine on and few SMs with it. Smaller for a slow GPU (more SMs)
//          and for a slow host or input (the engine rests).
//   power  the same by the power that a GPU draws, where it does not tell of its SMs: waiting needs
//          far less than computing
//   calls  the share of the time inside synchronisation
//
// The lead of a rank is how much less than its peers it waits, as a share of the time. Each rank's
// own usual lead is learned: GPUs of one model differ, and so do stages of a pipeline. A CUSUM test
// finds a change of it; the level itself tells who has been late from the beginning. Where
// collectives are counted, a round in which nobody entered any is left out: ranks that evaluate or
// save each for itself do not wait for one another, whether or not they say so.
// Bounded: 64 ranks of one node x 3 signals x ~1 kB. Single writer.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/windows/series/cusum.h"
#include "detectors/windows/series/ring.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

struct GpuWindow;

struct RankLead {
  static constexpr size_t kRounds = 128;

  // The round that is being filled.
  double busy = 0, work = 0, pace = 0, seconds = 0;
  // The usual lead and its noise, from the first kBaseline rounds on.
  double usual = 0, noise = 0;
  double learned = 0;  // the lead in those rounds
  Cusum cusum;
  bool late = false;  // its lead has grown, and has not come back
  Timestamp late_since;
  uint32_t late_rounds = 0;        // since then
  Ring<float, kRounds> leads;      // newest rounds
  Ring<uint8_t, kRounds> longest;  // 1: it had the largest lead of all

  double Level(size_t rounds) const;     // median lead of the newest rounds; NaN: fewer are known
  double Identity(size_t rounds) const;  // share of them in which it had the largest lead

  template <class A>
  void Fields(A& a) {
    a(busy, work, pace, seconds, usual, noise, learned, cusum, late, late_since, late_rounds, leads,
      longest);
  }
};

class LeadSeries {
 public:
  static constexpr size_t kMaxRanks = 4096;  // a node has some dozen, a recording those of all
  static constexpr uint32_t kBaseline = 60;  // rounds
  static constexpr uint32_t kWarmUp = 5;     // rounds that are left out
  static constexpr double kNotable =
      0.03;  // a lead that is worth a word: of a GPU, at most the whole

  // What a rank did in the last `seconds`. Its waiting is `busy` - `work` / scale; without `work`
  // it is `busy`. `pace` grows with the training that it did.
  struct Look {
    double busy = 0, work = 0, pace = 0, seconds = 0;
  };
  void Add(int32_t rank, const Look& look);
  void Close(Timestamp t);  // the round that is being filled
  void Drop();              // the same, unread

  const std::map<int32_t, RankLead>& ranks() const { return ranks_; }
  uint32_t rounds() const { return rounds_; }
  bool ready() const { return rounds_ >= kBaseline; }
  double scale() const { return scale_; }      // NaN: not known yet; 0: there is no work
  Timestamp begin() const { return begin_; }   // of the first round that counts
  double seconds() const { return seconds_; }  // of all rounds that count

  template <class A>
  void Fields(A& a) {
    a(ranks_, rounds_, seen_, scale_, pace_, early_scales_, early_paces_, begin_, seconds_);
    while (ranks_.size() > kMaxRanks) ranks_.erase(std::prev(ranks_.end()));  // damaged bytes
  }

 private:
  bool IsTraining();
  bool KnowsScale();
  void Judge(RankLead& rank, double lead, double usual_noise, Timestamp t);

  std::map<int32_t, RankLead> ranks_;
  uint32_t rounds_ = 0;                                      // that count
  uint32_t seen_ = 0;                                        // of training, with those that do not
  double scale_ = std::numeric_limits<double>::quiet_NaN();  // work of a busy rank; 0: has none
  double pace_ = 0;                                          // that is usual
  Ring<float, 16> early_scales_, early_paces_;
  Timestamp begin_;
  double seconds_ = 0;
};

class LeadTracker {
 public:
  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);
  // A look at a GPU of one rank of the job.
  void OnGpu(const GpuWindow& gpu, Timestamp t, Timestamp unheard_until);
  void OnStepSeconds(double seconds);
  // While ranks save or evaluate, they wait for one another as they never do while they train.
  void Pause(bool paused) { paused_ = paused; }

  const LeadSeries& gpus() const { return gpus_; }
  const LeadSeries& power() const { return power_; }  // of GPUs that do not tell of their SMs
  const LeadSeries& calls() const { return calls_; }
  double round_seconds() const { return round_seconds_; }

  template <class A>
  void Fields(A& a) {
    a(gpus_, power_, calls_, gpu_round_, power_round_, call_round_, totals_, enqueued_, counted_at_,
      entered_at_, round_seconds_, paused_);
    while (totals_.size() > LeadSeries::kMaxRanks) totals_.erase(std::prev(totals_.end()));
    while (enqueued_.size() > LeadSeries::kMaxRanks) enqueued_.erase(std::prev(enqueued_.end()));
  }

 private:
  struct Totals {
    ProcessKey process;
    double launches = 0, sync = 0;
    Timestamp t;

    template <class A>
    void Fields(A& a) {
      a(process, launches, sync, t);
    }
  };
  // Closes the round if it is long enough. Whether a look at `t` counts.
  bool Turn(LeadSeries& series, Timestamp& begin, Timestamp t, Timestamp unheard_until) const;

  void NoteCollectives(const SampleBatch& batch, int32_t rank, Timestamp t);
  // Collectives are counted, and nobody has entered one since then.
  bool NobodyEntered(Timestamp since) const;

  LeadSeries gpus_, power_, calls_;
  // When the one that is being filled began; 0 = none.
  Timestamp gpu_round_, power_round_, call_round_;
  std::map<int32_t, Totals> totals_;
  std::map<int32_t, double> enqueued_;  // collectives, by rank
  Timestamp counted_at_, entered_at_;   // when they were last told, and last grew
  double round_seconds_ = 10;           // until the job prints how long its steps are
  bool paused_ = false;
};

}  // namespace rankscope::windows
