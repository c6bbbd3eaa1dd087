// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/series/robust_band.h"

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
  if (value > floor_ && stale_) WorkOut(limits);
  const bool far = value > floor_ && value > high_;
  values_.Push(value);
  if (++since_refresh_ >= kRefresh) Refresh(limits);
  return far;
}

void RobustBand::Refresh(const BandLimits& limits) {
  since_refresh_ = 0;
  stale_ = true;
  const size_t n = std::min(values_.size(), kWindow);
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t i = values_.size() - n; i < values_.size(); ++i)
    lowest = std::min(lowest, values_[i]);
  // The median is no lower, nor the deviation; what rounding may take away is less than the rest.
  constexpr double kRounding = 1 - 1e-9;
  floor_ = kRounding * lowest * std::exp(limits.z * limits.least_sigma);
}

// The band of the window that was the newest at the last refresh.
void RobustBand::WorkOut(const BandLimits& limits) {
  stale_ = false;
  const size_t end = values_.size() - std::min<size_t>(since_refresh_, values_.size());
  const size_t n = std::min(end, kWindow);
  if (n < kLeast) return;
  std::array<double, kWindow> logs;
  for (size_t i = 0; i < n; ++i) logs[i] = std::log(values_[end - n + i]);
  const double median = MedianOf(logs, n);
  for (size_t i = 0; i < n; ++i) logs[i] = std::abs(logs[i] - median);
  constexpr double kMadToSigma = 1.4826;  // of a normal distribution
  const double sigma = std::max(kMadToSigma * MedianOf(logs, n), limits.least_sigma);
  usual_ = std::exp(median);
  high_ = std::exp(median + limits.z * sigma);
}

}  // namespace rankscope::windows
