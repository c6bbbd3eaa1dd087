// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether checkpoints are still written as often as this run itself has written them. In steps,
// since a save every N steps is what programs promise; runs that save only when a score improves
// have no interval and are never overdue. Single writer.
#pragma once

#include <cstdint>
#include <limits>

#include "detectors/windows/series/ring.h"
#include "detectors/windows/trackers/loss_tracker.h"

namespace rankscope::windows {

class SaveTracker {
 public:
  static constexpr size_t kLeastIntervals = 2;

  // A save begins or has ended at `step`; both are told of most saves, and by several ranks.
  void OnSave(double step, uint32_t stream, int64_t offset, std::string_view line, Timestamp t);

  int64_t saves() const { return saves_; }
  // Steps between saves; NaN where they are too few or irregular.
  double Interval() const;
  const CitedPoint& last() const { return last_; }  // value: its step

  template <class A>
  void Fields(A& a) {
    a(saves_, intervals_, last_);
  }

 private:
  int64_t saves_ = 0;
  Ring<double, 16> intervals_;
  CitedPoint last_;
};

}  // namespace rankscope::windows
