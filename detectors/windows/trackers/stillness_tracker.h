// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether the ranks' processes ran while nobody listened: the kernel counts their time on a CPU all
// the while. Where they stood still with the daemon, though they had run before and ran after, the
// node did; where they ran, only the daemon did not. Of one attempt; bounded; single writer.
#pragma once

#include <cstdint>
#include <map>

#include "detectors/model/observation.h"
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

class StillnessTracker {
 public:
  static constexpr size_t kMaxRanks = 4096;  // a node has some dozen, a recording those of all

  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);

  const StillSpan& newest() const { return newest_; }

  template <class A>
  void Fields(A& a) {
    a(ranks_, newest_);
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
};

}  // namespace rankscope::windows
