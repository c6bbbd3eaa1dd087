// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/rank_activity.h"

#include <algorithm>
#include <cmath>

#include "detectors/windows/series/statistics.h"

namespace rankscope::windows {
namespace {

constexpr Duration kWindow = Seconds(60);

double MedianOf(const GpuWindow& gpu, float GpuSecond::*field, Timestamp now) {
  std::vector<double> values;
  for (size_t i = 0; i < gpu.count() && now - gpu.newest(i).t <= kWindow; ++i) {
    if (std::isfinite(gpu.newest(i).*field)) values.push_back(gpu.newest(i).*field);
  }
  return Median(values);
}

bool Holds(const ClaimedGpu& card, int32_t rank) {
  if (rank < 0) return card.ranks.empty();
  return std::find(card.ranks.begin(), card.ranks.end(), rank) != card.ranks.end();
}

double MeanOf(const std::vector<ClaimedGpu>& claimed, int32_t rank, float GpuSecond::*field,
              Timestamp now) {
  double sum = 0;
  int32_t count = 0;
  for (const ClaimedGpu& card : claimed) {
    if (!Holds(card, rank)) continue;
    const double median = MedianOf(*card.gpu, field, now);
    if (std::isnan(median)) continue;
    sum += median;
    ++count;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / count;
}

}  // namespace

RankActivity ActivityOf(const std::vector<ClaimedGpu>& claimed, int32_t rank, Timestamp now) {
  return {MeanOf(claimed, rank, &GpuSecond::engine, now),
          MeanOf(claimed, rank, &GpuSecond::sm, now)};
}

}  // namespace rankscope::windows
