// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Robust statistics over small, bounded samples. Pure functions; sums run in index order so that a
// replay gives the same bits. NaN elements are the caller's to remove. Any thread.
#pragma once

#include <span>
#include <vector>

namespace rankscope::windows {

// Median of a copy; NaN when empty.
double Median(std::span<const double> values);

// The q-quantile (0..1) by linear interpolation; NaN when empty.
double Quantile(std::span<const double> values, double q);

// Noise of a series around its own trend: 1.4826 * MAD of first differences / sqrt(2). Zero for
// fewer than three values. Differences, because a falling loss has a large MAD around its median
// and little noise.
double NoiseSigma(std::span<const double> values);

struct Trend {
  double slope_per_index = 0;  // Theil-Sen: median of pairwise slopes
  double z = 0;  // Mann-Kendall, tie-corrected; below -1.96 falls, above 1.96 rises (5 %)
};

// O(n^2): for decimated series of at most a few hundred values.
Trend MonotonicTrend(std::span<const double> values);

// Its z alone, which costs a fraction.
double TrendZ(std::span<const double> values);

// At most `n` values of the series, evenly taken, first and last kept.
std::vector<double> Decimate(std::span<const double> values, size_t n);

}  // namespace rankscope::windows
