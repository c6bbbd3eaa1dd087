// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/series/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

namespace rankscope::windows {

double Median(std::span<const double> values) {
  return Quantile(values, 0.5);
}

double Quantile(std::span<const double> values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const double rest = position - static_cast<double>(below);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] * (1 - rest) + sorted[below + 1] * rest;
}

double NoiseSigma(std::span<const double> values) {
  if (values.size() < 3) return 0;
  std::vector<double> differences;
  differences.reserve(values.size() - 1);
  for (size_t i = 1; i < values.size(); ++i) differences.push_back(values[i] - values[i - 1]);
  const double middle = Median(differences);
  for (double& difference : differences) difference = std::abs(difference - middle);
  return 1.4826 * Median(differences) / std::sqrt(2.0);
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
      s += rise > 0 ? 1 : rise < 0 ? -1 : 0;
    }
  }
  std::map<double, int64_t> ties;
  for (const double value : values) ++ties[value];
  const auto count = static_cast<double>(n);
  double variance = count * (count - 1) * (2 * count + 5);
  for (const auto& [value, times] : ties) {
    const auto t = static_cast<double>(times);
    variance -= t * (t - 1) * (2 * t + 5);
  }
  variance /= 18;
  Trend trend;
  trend.slope_per_index = Median(slopes);
  if (variance > 0) {
    const auto score = static_cast<double>(s);
    trend.z = (score > 0 ? score - 1 : score < 0 ? score + 1 : 0) / std::sqrt(variance);
  }
  return trend;
}

std::vector<double> Decimate(std::span<const double> values, size_t n) {
  if (values.size() <= n || n < 2) return {values.begin(), values.end()};
  std::vector<double> taken;
  taken.reserve(n);
  for (size_t i = 0; i < n; ++i) taken.push_back(values[i * (values.size() - 1) / (n - 1)]);
  return taken;
}

}  // namespace rankscope::windows
