// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What optimizers say of a dynamic loss scale while they lower it. A scale begins far too high and
// is halved until gradients fit, and once it is found an overflow halves it now and then before it
// grows back; halvings without growth after that are the gradients leaving half precision. Fed with
// the lines that say so; single writer.
#pragma once

#include <cstdint>
#include <limits>

#include "detectors/windows/trackers/loss_tracker.h"

namespace rankscope::windows {

class LossScaleTracker {
 public:
  // The scale was lowered to `scale`; `records` training records came before, the newest of `step`.
  void OnLowered(double scale, int64_t records, double step, uint32_t stream, int64_t offset,
                 std::string_view line, Timestamp t);

  // Successive falls without a rise between them; every rank may tell of the same one.
  int64_t falls() const { return falls_; }
  double scale() const { return scale_; }                // the newest; NaN: nothing was said
  double scale_before() const { return scale_before_; }  // the first fall's, after it
  int64_t records_at_first() const { return records_at_first_; }
  double step_at_first() const { return step_at_first_; }
  int64_t records_at_last() const { return records_at_last_; }
  int64_t said() const { return said_; }
  const CitedPoint& first() const { return first_; }
  const CitedPoint& last() const { return last_; }

  template <class A>
  void Fields(A& a) {
    a(falls_, scale_, scale_before_, records_at_first_, step_at_first_, records_at_last_, said_,
      first_, last_);
  }

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  int64_t falls_ = 0;
  double scale_ = kNone;
  double scale_before_ = kNone;
  int64_t records_at_first_ = 0;
  double step_at_first_ = kNone;
  int64_t records_at_last_ = 0;
  int64_t said_ = 0;
  CitedPoint first_, last_;
};

}  // namespace rankscope::windows
