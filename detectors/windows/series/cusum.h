// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A two-sided cumulative sum test (Page, 1954) of standardised values, each clipped, so that a save
// or a collection of garbage counts once and not by its length. A series without a change passes
// the limit once in some 10^7 values on a side (Siegmund's approximation), and a change of 1.7
// deviations takes 13 values. Plain data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace rankscope::windows {

struct Cusum {
  static constexpr double kClip = 3, kAllowance = 0.75, kLimit = 10.75;

  double high = 0, low = 0;
  uint32_t high_values = 0, low_values = 0;  // since the sum last left 0

  // `learned`: the mean is known from so many values.
  void Add(double z, double learned) {
    const double allowance = kAllowance + 0.5 / std::sqrt(std::max(1.0, learned));
    z = std::clamp(z, -kClip, kClip);
    Step(z - allowance, high, high_values);
    Step(-z - allowance, low, low_values);
  }
  bool rose() const { return high >= kLimit; }
  bool fell() const { return low >= kLimit; }
  void Clear() { *this = {}; }

  template <class A>
  void Fields(A& a) {
    a(high, low, high_values, low_values);
  }

 private:
  static void Step(double more, double& sum, uint32_t& values) {
    sum = std::max(0.0, sum + more);
    values = sum > 0 ? values + 1 : 0;
  }
};

}  // namespace rankscope::windows
