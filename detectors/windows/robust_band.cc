// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/robust_band.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace rankscope::windows {
namespace {

// Of the first n values, which are put out of order; nothing is allocated.
double MedianOf(std::array<double, RobustBand::kWindow>& values, size_t n) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(n / 2);
  std::nth_element(values.begin(), middle, values.begin() + static_cast<ptrdiff_t>(n));
  return *middle;
}

}  // namespace

bool RobustBand::Add(double value, const BandLimits& limits) {
  const bool far = value > high_;
  values_.Push(value);
  if (--until_refresh_ <= 0) Refresh(limits);
  return far;
}

void RobustBand::Refresh(const BandLimits& limits) {
  until_refresh_ = kRefresh;
  const size_t n = values_.size();
  if (n < kLeast) return;
  std::array<double, kWindow> logs;
  for (size_t i = 0; i < n; ++i) logs[i] = std::log(values_[i]);
  const double median = MedianOf(logs, n);
  for (size_t i = 0; i < n; ++i) logs[i] = std::abs(logs[i] - median);
  constexpr double kMadToSigma = 1.4826;  // of a normal distribution
  const double sigma = std::max(kMadToSigma * MedianOf(logs, n), limits.least_sigma);
  usual_ = std::exp(median);
  high_ = std::exp(median + limits.z * sigma);
}

}  // namespace rankscope::windows
