// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The kernel's count of OOM kills in the cgroup of the job's processes. It does not say who was
// killed: a worker or a tool may have been, which the run survives. Bounded; single writer.
#pragma once

#include <cmath>
#include <deque>

#include "detectors/model/time.h"

namespace rankscope::windows {

class CgroupKills {
 public:
  static constexpr size_t kMaxGrowths = 8;  // of more, the newest

  struct Growth {
    Timestamp begin, end;  // between two samples
    double kills = 0;

    template <class A>
    void Fields(A& a) {
      a(begin, end, kills);
    }
  };

  // `own`: the cgroup is the job's and as old as the job. That of a container, of a user or of a
  // terminal may have counted before it.
  void OnCount(double kills, bool own, Timestamp t) {
    if (!std::isfinite(kills) || kills < 0) return;
    if (last_.ns == 0) {
      if (own) earlier_ = kills;
    } else if (kills > kills_) {
      growths_.push_back({last_, t, kills - kills_});
      if (growths_.size() > kMaxGrowths) growths_.pop_front();
    }
    kills_ = kills;
    last_ = t;
  }

  // That the job had when its count was first sampled.
  double earlier() const { return earlier_; }
  const std::deque<Growth>& growths() const { return growths_; }

  template <class A>
  void Fields(A& a) {
    a(last_, kills_, earlier_, growths_);
    while (growths_.size() > kMaxGrowths) growths_.pop_front();  // restored from damaged bytes
  }

 private:
  Timestamp last_;
  double kills_ = 0;
  double earlier_ = 0;
  std::deque<Growth> growths_;
};

}  // namespace rankscope::windows
