// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/loss_features.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "detectors/windows/series/statistics.h"

namespace rankscope::features {
namespace {

constexpr size_t kTrendPoints = 64;  // Theil-Sen and Mann-Kendall are quadratic

// How many points speak for the beginning and the end: the last max(20, 5 %), and a quarter of a
// short run.
size_t EndPoints(size_t n) {
  return n < 80 ? std::max<size_t>(1, n / 4) : std::max<size_t>(20, n / 20);
}
size_t StartPoints(size_t n) {
  return n < 40 ? std::max<size_t>(1, n / 4) : 10;
}

// A range test: the rate grows by the same factor from record to record, to the very end. A warm-up
// is linear, and its factors shrink.
bool IsSweep(std::span<const double> rates) {
  constexpr size_t kLeast = 10;
  if (rates.size() < kLeast) return false;
  const auto factor = [&](size_t i) { return rates[i] / rates[i - 1]; };
  for (size_t i = 1; i < rates.size(); ++i) {
    if (!(rates[i - 1] > 0) || !(factor(i) > 1.02)) return false;
    if (i > 1 && std::abs(std::log(factor(i)) / std::log(factor(1)) - 1) > 0.2) return false;
  }
  return true;
}

// How many of the last values satisfy `holds` in a row.
int64_t Trailing(std::span<const double> values, auto holds) {
  int64_t count = 0;
  for (size_t i = values.size(); i-- > 0 && holds(values[i]);) ++count;
  return count;
}

// Rises of a level that came back. One is an event; what happens twice is what the curve does, as
// the losses of adversaries, of cyclic rates and of data that come in turns do.
class Swings {
 public:
  explicit Swings(double noise) : least_(kSigmas * noise) {}

  void Add(double level) {
    ++at_;
    if (at_ == 1 || level < low_) {
      Begin(level);
    } else if (level > peak_) {
      peak_ = level;
    } else if (level < (low_ + peak_) / 2) {
      if (peak_ - low_ > least_) {
        heights_.push_back(peak_ - low_);
        log_heights_.push_back(low_ > 0 ? std::log(peak_ / low_) : 0);
        lengths_.push_back(static_cast<double>(at_ - since_));
      }
      Begin(level);
    }
  }

  double height() const { return Second(heights_); }
  double log_height() const { return Second(log_heights_); }
  double length() const { return Second(lengths_); }  // in levels

 private:
  void Begin(double level) {
    low_ = peak_ = level;
    since_ = at_;
  }

  static double Second(std::vector<double> values) {
    if (values.size() < 2) return 0;
    std::nth_element(values.begin(), values.begin() + 1, values.end(), std::greater<>());
    return values[1];
  }

  // Between medians of twenty values and more, whose difference has 0.4 of the noise of one.
  static constexpr double kSigmas = 2;

  double least_;
  int64_t at_ = 0, since_ = 0;
  double low_ = 0, peak_ = 0;
  std::vector<double> heights_, log_heights_, lengths_;
};

void NoteSwings(std::span<const double> curve, LossFeatures& f) {
  const size_t n = curve.size();
  const size_t width = EndPoints(n), stride = std::max<size_t>(1, width / 2);
  Swings swings(f.noise);
  for (size_t i = 0; i + width <= n; i += stride)
    swings.Add(windows::Median(curve.subspan(i, width)));
  f.swing = swings.height();
  f.log_swing = swings.log_height();
  f.points_of_swing =
      static_cast<int64_t>(swings.length() * static_cast<double>(stride)) * f.stride;
}

// The lowest median of a window, so that one lucky batch is no plateau to fall from, and the
// highest behind it. The window does not grow with the run, and what the curve has forgotten the
// tracker knows: what was learned in a few records stays learned in the eyes of the thousandth.
void NoteLowest(const windows::LossTracker& tracker, LossFeatures& f) {
  const std::span<const double> curve(f.curve);
  const size_t n = curve.size();
  const size_t width = std::max<size_t>(1, std::min(windows::LossTracker::kLevel, n / 4));
  const size_t step = std::max<size_t>(1, width / 2);
  f.lowest = f.start;
  f.lowest_points = static_cast<int64_t>(width);
  size_t at = 0;
  for (size_t i = 0; i + width <= n; i += step) {
    const double level = windows::Median(curve.subspan(i, width));
    if (level < f.lowest) {
      f.lowest = level;
      at = i;
    }
  }
  if (f.stride > 1 && tracker.lowest_level() < f.lowest) {
    f.lowest = tracker.lowest_level();
    at = static_cast<size_t>(tracker.lowest_level_at() / f.stride);
  }
  f.points_since_lowest = static_cast<int64_t>(n - std::min(n, at)) * f.stride;
  f.peak_after_lowest = f.end;
  for (size_t i = at; i + width <= n; i += step)
    f.peak_after_lowest = std::max(f.peak_after_lowest, windows::Median(curve.subspan(i, width)));
}

}  // namespace

LossFeatures BuildLossFeatures(const windows::LossTracker& tracker) {
  LossFeatures f;
  f.points = tracker.points();
  f.nonfinite = tracker.nonfinite();
  f.trailing_nonfinite = tracker.trailing_nonfinite();
  f.never_finite = f.points > 0 && f.trailing_nonfinite == f.points;
  f.trailing_silent_nan = tracker.silent_nan();
  f.trailing_zeros = tracker.trailing_zeros();
  f.before_zeros = tracker.level_before_zeros();
  f.trailing_bad_grads = tracker.trailing_bad_grads();
  f.at_bad_grads = tracker.level_at_bad_grads();
  f.spikes = tracker.spikes();
  f.curve = tracker.curve();
  f.stride = tracker.curve_stride();
  f.early_grad_norm = tracker.early_grad_norm();
  if (const std::vector<double> norms = tracker.GradNorms(); norms.size() >= 3) {
    f.late_grad_norm = windows::Median(std::span(norms).last(std::min<size_t>(norms.size(), 10)));
  }
  if (const std::vector<double> rates = tracker.LearningRates(); !rates.empty()) {
    f.late_learning_rate = rates.back();
    f.highest_learning_rate = *std::max_element(rates.begin(), rates.end());
    f.rate_sweep = IsSweep(rates);
    f.rate_climbs =
        rates.size() > 1 && rates.back() > rates.front() && rates.back() >= f.highest_learning_rate;
  }
  f.trailing_zero_rates = tracker.trailing_zero_rates();
  if (tracker.highest_grad_norm().present())
    f.highest_grad_norm = tracker.highest_grad_norm().value;
  if (tracker.highest().present()) f.highest = tracker.highest().value;
  const std::span<const double> curve(f.curve);
  if (curve.empty()) return f;
  const size_t n = curve.size();
  // The exact beginning and end, not their decimation, speak for both.
  const std::span<const double> head(tracker.head());
  const size_t start_points = std::min(head.size(), StartPoints(n));
  f.start = windows::Median(head.first(start_points));
  const std::vector<double> tail = tracker.Tail();
  const size_t end_points = std::min(tail.size(), EndPoints(n));
  f.end = windows::Median(std::span(tail).last(end_points));
  f.noise = windows::NoiseSigma(curve);
  f.start_points = static_cast<int64_t>(start_points);
  f.end_points = static_cast<int64_t>(end_points);
  if (std::all_of(curve.begin(), curve.end(), [](double loss) { return loss > 0; })) {
    std::vector<double> logs(n);
    std::transform(curve.begin(), curve.end(), logs.begin(),
                   [](double loss) { return std::log(loss); });
    f.log_noise = windows::NoiseSigma(logs);
  }
  NoteLowest(tracker, f);
  NoteSwings(curve, f);
  f.first = curve.front();
  // A daemon that came late reads the file from its beginning behind what it has heard meanwhile.
  if (tracker.highest().step < tracker.first().step) f.first = tracker.highest().value;
  f.first_three = windows::Median(head.first(std::min<size_t>(head.size(), 3)));
  f.last = tail.back();
  const double halfway = (f.lowest + f.end) / 2;
  f.points_above = Trailing(curve, [halfway](double loss) { return loss > halfway; }) * f.stride;
  f.points_climbing = Trailing(tail, [&f](double loss) { return loss > 2 * f.end; });
  constexpr double kStill = 0.005;
  f.points_still = Trailing(
      tail, [&f](double loss) { return std::abs(loss - f.last) <= kStill * std::abs(f.last); });
  const std::vector<double> whole = windows::Decimate(curve, kTrendPoints);
  const windows::Trend trend = windows::MonotonicTrend(whole);
  f.trend_z = trend.z;
  f.slope_per_point = trend.slope_per_index * static_cast<double>(whole.size() - 1) /
                      std::max(1.0, static_cast<double>(n - 1) * static_cast<double>(f.stride));
  const std::vector<double> late =
      windows::Decimate(curve.last(std::max<size_t>(1, n / 3)), kTrendPoints);
  f.late_trend_z = windows::TrendZ(late);
  return f;
}

}  // namespace rankscope::features
