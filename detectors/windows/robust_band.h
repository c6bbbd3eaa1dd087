// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a positive number lies far above what its series has been: robust z of the logarithm
// over the newest values. The logarithm, because norms and durations have no natural scale (fp16
// runs print unscaled gradient norms of thousands) and are skewed. Median and deviation are taken
// anew every kRefresh values, so that a record costs a comparison. Single writer.
#pragma once

#include <cstdint>
#include <limits>

#include "detectors/windows/ring.h"

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
  static constexpr int32_t kRefresh = 32;

  // Takes a positive, finite value; true where it is far above those before it.
  bool Add(double value, const BandLimits& limits);

  double usual() const { return usual_; }  // median; NaN while there are too few values

  template <class A>
  void Fields(A& a) {
    a(values_, usual_, high_, until_refresh_);
  }

 private:
  void Refresh(const BandLimits& limits);

  Ring<double, kWindow> values_;
  double usual_ = std::numeric_limits<double>::quiet_NaN();
  double high_ = std::numeric_limits<double>::infinity();
  int32_t until_refresh_ = kRefresh;
};

}  // namespace rankscope::windows
