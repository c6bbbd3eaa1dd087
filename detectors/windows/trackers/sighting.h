// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Something out of the ordinary among the training records: how often, against what, and the
// record that shows it best. Shared by the trackers of windows/; single writer.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "detectors/logs/record.h"
#include "detectors/windows/trackers/loss_tracker.h"

namespace rankscope::windows {

// One training record and where it stands. The views live as long as the call that carries them.
struct TrackedRecord {
  const logs::Progress& progress;
  uint32_t stream = 0;
  int64_t offset = 0;
  std::string_view line;
  Timestamp t;
  int64_t index = 0;  // of the record in its attempt

  // Quoting costs a copy: only for records that a sentence may come to cite.
  void Cite(double value, CitedPoint& point) const {
    point.value = value;
    point.step = progress.step;
    point.index = index;
    point.stream = stream;
    point.offset = offset;
    point.t = t;
    point.line.assign(line.substr(0, logs::kCitationCap));
  }
};

struct Sighting {
  int64_t times = 0;
  double usual = std::numeric_limits<double>::quiet_NaN();
  CitedPoint point;

  bool seen() const { return times > 0; }
  template <class A>
  void Fields(A& a) {
    a(times, usual, point);
  }
};

}  // namespace rankscope::windows
