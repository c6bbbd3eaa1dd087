// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether the node stood still while nobody listened. Three witness it: the kernel's clocks and
// counts of the whole node; its count of the ranks' time on a CPU, who had run before and ran
// after; and the job's own steps, which do not advance meanwhile. Where the ranks or the node ran,
// only the daemon did not. Of one attempt; bounded; single writer.
#pragma once

#include <cstdint>
#include <limits>
#include <map>

#include "detectors/model/observation.h"
#include "detectors/windows/series/step_clock.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

// The newest long time between two samples of the ranks' CPU time.
struct StillSpan {
  Timestamp begin, end;    // between the last sample before it and the first after it
  int32_t ranks = 0;       // that used a CPU before it
  int32_t still = 0;       // of them, those that used none in it
  double usual = 0;        // cores, of those ranks together, before
  double cpu_seconds = 0;  // that they used in it

  double seconds() const { return (end - begin).seconds(); }
  bool present() const { return end.ns != 0; }
  template <class A>
  void Fields(A& a) {
    a(begin, end, ranks, still, usual, cpu_seconds);
  }
};

// What the kernel counted of the whole node while the daemon did not get to work. NaN: not told.
struct NodeGap {
  Timestamp begin, end;
  double slept = 0;  // seconds for which the node was suspended; `end` - `begin` does not hold them
  double switches = std::numeric_limits<double>::quiet_NaN();  // between tasks
  double usual = std::numeric_limits<double>::quiet_NaN();     // as many are in such a time
  double waited = std::numeric_limits<double>::quiet_NaN();    // the daemon wanted a CPU

  double seconds() const { return (end - begin).seconds(); }
  bool present() const { return end.ns != 0; }
  template <class A>
  void Fields(A& a) {
    a(begin, end, slept, switches, usual, waited);
  }
};

// How far the job's own steps went in a time in which nobody listened.
struct StepsOver {
  Timestamp begin, end;  // the newest record before it, and the first after it
  double before = 0;     // the step of that
  double seconds = 0;    // that the steps since take usually

  bool present() const { return end.ns != 0; }
  template <class A>
  void Fields(A& a) {
    a(begin, end, before, seconds);
  }
};

class StillnessTracker {
 public:
  static constexpr size_t kMaxRanks = 4096;  // a node has some dozen, a recording those of all

  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);
  void OnEvent(const Event& event, Timestamp t);
  // A record of `step` at `t`, before `clock` has it; for `stopped` of the time since the last one
  // nobody listened.
  void OnStep(double step, const StepClock& clock, Duration stopped, Timestamp t);

  const StillSpan& newest() const { return newest_; }
  const NodeGap& node() const { return node_; }
  const StepsOver& steps() const { return steps_; }

  template <class A>
  void Fields(A& a) {
    a(ranks_, newest_, node_, steps_);
    while (ranks_.size() > kMaxRanks) ranks_.erase(std::prev(ranks_.end()));  // damaged bytes
  }

 private:
  struct Rank {
    ProcessKey process;
    Timestamp last;
    double cpu = 0;    // seconds, as they were told last
    double usual = 0;  // cores, over the last twenty seconds or so
    int32_t samples = 0;

    template <class A>
    void Fields(A& a) {
      a(process, last, cpu, usual, samples);
    }
  };

  std::map<int32_t, Rank> ranks_;
  StillSpan newest_;
  NodeGap node_;
  StepsOver steps_;
};

}  // namespace rankscope::windows
