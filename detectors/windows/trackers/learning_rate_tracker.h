// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether the learning rate keeps to its own schedule. Schedules are free of noise and, but for
// their corners, smooth: linear warm-up, cosine, linear, polynomial, exponential decay, plateaus.
// What they also do is step down (milestones, plateaus) and jump back up to at most their peak
// (warm restarts), so only three things count as leaving it: a jump beyond everything before, a
// fall that is followed by a second warm-up while the steps go on, and a rate of exactly zero.
// Single writer.
#pragma once

#include <cstdint>
#include <limits>

#include "detectors/windows/trackers/sighting.h"

namespace rankscope::windows {

class LearningRateTracker {
 public:
  static constexpr int64_t kLeast = 8;       // records before a jump can be told from a corner
  static constexpr int64_t kSecondRise = 4;  // rising records that make a warm-up

  // A record that prints a rate.
  void Add(const TrackedRecord& record);

  int64_t records() const { return records_; }
  // Records in a row, at the end, that print a rate of exactly 0; the sighting cites the first.
  const Sighting& zero() const { return zero_; }
  const Sighting& jump() const { return jump_; }        // usual: the highest rate before
  const Sighting& restart() const { return restart_; }  // usual: the rate before the fall
  // The curve in short, by printed steps (NaN: none are printed): the first rate, where the highest
  // was first reached, and the newest.
  double first() const { return first_; }
  double first_at() const { return first_at_; }
  double peak() const { return peak_; }
  double peak_at() const { return peak_at_; }
  double last() const { return last_; }
  double last_at() const { return last_step_; }
  const CitedPoint& newest() const { return newest_; }

  template <class A>
  void Fields(A& a) {
    a(records_, last_, last_at_, slope_, peak_, last_step_, falling_, rises_, zero_, jump_,
      restart_, fall_, first_, first_at_, peak_at_, newest_);
  }

 private:
  void AddZero(const TrackedRecord& record);
  void FollowFall(double rate);

  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  int64_t records_ = 0;
  double last_ = kNone;
  double last_at_ = kNone;  // step, or record number where none is printed
  double slope_ = 0;
  double peak_ = 0;
  double last_step_ = kNone;
  bool falling_ = false;  // a fall may turn out to be a second warm-up
  int64_t rises_ = 0;     // records since the fall, each above the one before
  double first_ = kNone, first_at_ = kNone, peak_at_ = kNone;
  CitedPoint newest_;
  Sighting zero_, jump_, restart_, fall_;
};

}  // namespace rankscope::windows
