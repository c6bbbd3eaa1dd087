// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A level over the whole of a run in at most kBins peaks of equal width, which doubles when they
// are used up: a short run in seconds, one of days in hours, in the same few bytes. Plain data.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "detectors/model/time.h"

namespace rankscope::windows {

class PeakCurve {
 public:
  static constexpr size_t kBins = 64;

  void Add(float value, Timestamp t) {
    if (!std::isfinite(value)) return;
    if (begin_.ns == 0) {
      begin_ = t;
      peaks_.fill(kNothing);
    }
    // A clock that was put back fills the newest bin.
    auto bin = static_cast<size_t>(std::max<int64_t>(0, (t - begin_).ns) / width_.ns);
    while (bin >= kBins) {
      Halve();
      bin /= 2;
    }
    last_ = std::max(last_, bin);
    peaks_[last_] = std::isnan(peaks_[last_]) ? value : std::max(peaks_[last_], value);
  }

  bool empty() const { return begin_.ns == 0; }
  Timestamp begin() const { return begin_; }
  Duration width() const { return width_; }
  // Oldest first; NaN where nothing was seen.
  std::vector<double> Peaks() const {
    if (empty()) return {};
    return {peaks_.begin(), peaks_.begin() + static_cast<ptrdiff_t>(last_) + 1};
  }

  template <class A>
  void Fields(A& a) {
    a(begin_, width_, peaks_, last_);
    // Restored from damaged bytes.
    if (width_.ns < Seconds(1).ns) width_ = Seconds(1);
    last_ = std::min(last_, static_cast<uint64_t>(kBins - 1));
  }

 private:
  static constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

  void Halve() {
    for (size_t i = 0; i < kBins; ++i) {
      const size_t from = 2 * i;
      if (from >= kBins) {
        peaks_[i] = kNothing;
        continue;
      }
      const float a = peaks_[from], b = peaks_[from + 1];
      peaks_[i] = std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b);
    }
    last_ /= 2;
    width_ = Duration{2 * width_.ns};
  }

  Timestamp begin_;
  Duration width_ = Seconds(1);
  std::array<float, kBins> peaks_{};
  uint64_t last_ = 0;
};

}  // namespace rankscope::windows
