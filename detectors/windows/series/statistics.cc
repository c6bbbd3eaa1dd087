// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/series/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rankscope::windows {
namespace {

// Of so many values only two matter: they are selected, not sorted.
double QuantileInPlace(std::vector<double>& values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const double rest = position - static_cast<double>(below);
  if (below + 1 >= values.size()) return *std::max_element(values.begin(), values.end());
  const auto lower = values.begin() + static_cast<ptrdiff_t>(below);
  std::nth_element(values.begin(), lower, values.end());
  return *lower * (1 - rest) + *std::min_element(lower + 1, values.end()) * rest;
}

// Mann-Kendall's z of a score, which is how many pairs rise minus how many fall.
double ZOfScore(std::span<const double> values, int64_t s) {
  const auto count = static_cast<double>(values.size());
  double variance = count * (count - 1) * (2 * count + 5);
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0, end = 0; i < sorted.size(); i = end) {
    while (end < sorted.size() && sorted[end] == sorted[i]) ++end;
    const auto t = static_cast<double>(end - i);
    variance -= t * (t - 1) * (2 * t + 5);
  }
  variance /= 18;
  if (!(variance > 0)) return 0;
  const auto score = static_cast<double>(s);
  return (score > 0 ? score - 1 : score < 0 ? score + 1 : 0) / std::sqrt(variance);
}

int64_t Sign(double rise) {
  return static_cast<int64_t>(rise > 0) - static_cast<int64_t>(rise < 0);
}

}  // namespace

double Median(std::span<const double> values) {
  return Quantile(values, 0.5);
}

double Quantile(std::span<const double> values, double q) {
  std::vector<double> copy(values.begin(), values.end());
  return QuantileInPlace(copy, q);
}

double NoiseSigma(std::span<const double> values) {
  if (values.size() < 3) return 0;
  std::vector<double> differences;
  differences.reserve(values.size() - 1);
  for (size_t i = 1; i < values.size(); ++i) differences.push_back(values[i] - values[i - 1]);
  const double middle = QuantileInPlace(differences, 0.5);
  for (double& difference : differences) difference = std::abs(difference - middle);
  return 1.4826 * QuantileInPlace(differences, 0.5) / std::sqrt(2.0);
}

Trend MonotonicTrend(std::span<const double> values) {
  const size_t n = values.size();
  if (n < 3) return {};
  std::vector<double> slopes;
  slopes.reserve(n * (n - 1) / 2);
  int64_t s = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      const double rise = values[j] - values[i];
      slopes.push_back(rise / static_cast<double>(j - i));
      s += Sign(rise);
    }
  }
  return {QuantileInPlace(slopes, 0.5), ZOfScore(values, s)};
}

double TrendZ(std::span<const double> values) {
  if (values.size() < 3) return 0;
  int64_t s = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j) s += Sign(values[j] - values[i]);
  }
  return ZOfScore(values, s);
}

std::vector<double> Decimate(std::span<const double> values, size_t n) {
  if (values.size() <= n || n < 2) return {values.begin(), values.end()};
  std::vector<double> taken;
  taken.reserve(n);
  for (size_t i = 0; i < n; ++i) taken.push_back(values[i * (values.size() - 1) / (n - 1)]);
  return taken;
}

}  // namespace rankscope::windows
