// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a positive number lies far above what its series has been: robust z of the logarithm
// over the newest values. The logarithm, because norms and durations have no natural scale (fp16
// runs print unscaled gradient norms of thousands) and are skewed. The band moves on every kRefresh
// values, and is worked out only when a value lies so high that it matters: nearly every record
// costs a comparison. Single writer.
#pragma once

#include <cstdint>
#include <limits>

#include "detectors/windows/series/ring.h"

namespace rankscope::windows {

struct BandLimits {
  double z = 6;
  // Smallest deviation of the logarithm that is believed: a series that hardly moves makes every
  // hiccup an outlier.
  double least_sigma = 0.1;
};

class RobustBand {
 public:
  static constexpr size_t kWindow = 128;
  static constexpr size_t kLeast = 32;  // values before anything can be far
  static constexpr uint32_t kRefresh = 32;
  static_assert(kRefresh >= kLeast);

  // Takes a positive, finite value; true where it is far above those before it. The limits of a
  // band are the same each time.
  bool Add(double value, const BandLimits& limits);

  // Median of the values that the newest far one was compared with.
  double usual() const { return usual_; }

  template <class A>
  void Fields(A& a) {
    a(values_, usual_, high_, floor_, since_refresh_, stale_);
  }

 private:
  void Refresh(const BandLimits& limits);
  void WorkOut(const BandLimits& limits);

  Ring<double, kWindow + kRefresh> values_;  // those since the refresh lie behind its window
  double usual_ = std::numeric_limits<double>::quiet_NaN();
  double high_ = std::numeric_limits<double>::infinity();
  double floor_ = std::numeric_limits<double>::infinity();  // the band does not end below it
  uint32_t since_refresh_ = 0;
  bool stale_ = false;  // usual_ and high_ are those of an earlier window
};

}  // namespace rankscope::windows
