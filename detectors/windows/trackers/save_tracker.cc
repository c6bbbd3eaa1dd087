// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/save_tracker.h"

#include <algorithm>
#include <cmath>

namespace rankscope::windows {

void SaveTracker::OnSave(double step, uint32_t stream, int64_t offset, std::string_view line,
                         Timestamp t) {
  if (!std::isfinite(step)) return;
  const double since = step - last_.value;
  if (saves_ > 0) {
    // The same save told again: its end, or another rank's word. An asynchronous save ends some
    // steps after it began.
    const double interval = Interval();
    if (since >= 0 && since < (std::isfinite(interval) ? 0.4 * interval : 1)) return;
    if (since < 0) intervals_.Clear();  // training was set back
    if (since > 0) intervals_.Push(since);
  }
  ++saves_;
  last_.value = last_.step = step;
  last_.index = saves_;
  last_.stream = stream;
  last_.offset = offset;
  last_.t = t;
  last_.line.assign(line.substr(0, logs::kCitationCap));
}

double SaveTracker::Interval() const {
  if (intervals_.size() < kLeastIntervals) return logs::kAbsent;
  double least = intervals_[0], most = intervals_[0];
  for (size_t i = 1; i < intervals_.size(); ++i) {
    least = std::min(least, intervals_[i]);
    most = std::max(most, intervals_[i]);
  }
  return most <= 1.5 * least ? most : logs::kAbsent;
}

}  // namespace rankscope::windows
