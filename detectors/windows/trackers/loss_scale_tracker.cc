// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/loss_scale_tracker.h"

#include <cmath>

namespace rankscope::windows {

void LossScaleTracker::OnLowered(double scale, int64_t records, double step, uint32_t stream,
                                 int64_t offset, std::string_view line, Timestamp t) {
  if (!std::isfinite(scale)) return;
  // The same fall, told by another rank; or DeepSpeed's hysteresis, which skips a step and leaves
  // the scale.
  if (scale == scale_) {
    // At 1 nothing is scaled and there is nothing left to lower: it overflows still.
    if (scale <= 1) records_at_last_ = records;
    return;
  }
  ++said_;
  CitedPoint point;
  point.value = scale;
  point.step = step;
  point.index = said_ - 1;
  point.stream = stream;
  point.offset = offset;
  point.t = t;
  point.line.assign(line.substr(0, logs::kCitationCap));
  if (falls_ > 0 && scale < scale_) {
    ++falls_;
  } else {
    // It has grown since: another row of falls.
    falls_ = 1;
    scale_before_ = scale;
    records_at_first_ = records;
    step_at_first_ = step;
    first_ = point;
  }
  scale_ = scale;
  records_at_last_ = records;
  last_ = std::move(point);
}

}  // namespace rankscope::windows
