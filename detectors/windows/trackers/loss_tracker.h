// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The whole loss curve in bounded memory: the beginning exactly, the end exactly, everything
// between decimated evenly. Fed with training records in order; judged by features and families.
// Single writer.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "detectors/logs/record.h"
#include "detectors/windows/series/ring.h"

namespace rankscope::windows {

// Where a number was printed, so that a verdict can quote it.
struct CitedPoint {
  double value = std::numeric_limits<double>::quiet_NaN();
  double step = std::numeric_limits<double>::quiet_NaN();
  int64_t index = -1;  // record number; -1 = never
  uint32_t stream = 0;
  int64_t offset = 0;
  Timestamp t;
  std::string line;

  bool present() const { return index >= 0; }
  template <class A>
  void Fields(A& a) {
    a(value, step, index, stream, offset, t, line);
  }
};

class LossTracker {
 public:
  static constexpr size_t kCurve = 512;  // decimated points of the whole curve: 512 x 8 B
  static constexpr size_t kTail = 128;   // exact points at the end
  static constexpr size_t kHead = 10;    // exact points at the beginning
  static constexpr size_t kLevel = 6;    // points whose median is a level: one lucky batch is none

  // One record; `line` is cited when the record is a landmark.
  void Add(const logs::Progress& progress, uint32_t stream, int64_t offset, std::string_view line,
           Timestamp t);

  int64_t points() const { return points_; }  // records with a loss, finite or not
  int64_t nonfinite() const { return nonfinite_; }
  int64_t trailing_nonfinite() const { return trailing_nonfinite_; }  // consecutive, at the end
  int64_t silent_nan() const {
    return trailing_silent_nan_;
  }  // consecutive loss 0.0 with NaN grad norm, or loss key missing
  int64_t spikes() const { return spikes_; }
  // Finite values: the whole run decimated, and the exact end.
  const std::vector<double>& curve() const { return curve_; }
  int64_t curve_stride() const { return stride_; }
  std::vector<double> Tail() const { return tail_.ToVector(); }
  // The first kHead of them, and the lowest level of any kLevel in a row (looked at each kLevel /
  // 2; absent before there were as many), with its place among the finite values.
  const std::vector<double>& head() const { return head_; }
  double lowest_level() const { return lowest_level_; }
  int64_t lowest_level_at() const { return lowest_level_at_; }
  std::vector<double> GradNorms() const { return grad_norms_.ToVector(); }
  std::vector<double> LearningRates() const { return learning_rates_.ToVector(); }
  double early_grad_norm() const { return early_grad_norm_; }  // median of the first ten

  const CitedPoint& first() const { return first_; }
  const CitedPoint& last() const { return last_; }
  const CitedPoint& lowest() const { return lowest_; }
  const CitedPoint& highest() const { return highest_; }
  const CitedPoint& first_nonfinite() const { return first_nonfinite_; }
  const CitedPoint& first_silent_nan() const { return first_silent_nan_; }
  const CitedPoint& last_spike() const { return last_spike_; }
  const CitedPoint& highest_grad_norm() const { return highest_grad_norm_; }
  // Records in a row, at the end, whose loss is printed as exactly 0, the first of them, and what
  // it was just before (the level, or the last one if that is lower); and those whose gradient norm
  // is not finite while their loss is.
  int64_t trailing_zeros() const { return trailing_zeros_; }
  const CitedPoint& first_zero() const { return first_zero_; }
  double level_before_zeros() const { return level_before_zeros_; }
  int64_t trailing_bad_grads() const { return trailing_bad_grads_; }
  const CitedPoint& first_bad_grad() const { return first_bad_grad_; }
  double level_at_bad_grads() const { return level_at_bad_grads_; }
  // Records in a row, at the end, whose learning rate is printed as exactly 0.
  int64_t trailing_zero_rates() const { return trailing_zero_rates_; }

  template <class A>
  void Fields(A& a) {
    a(points_, finite_, nonfinite_, trailing_nonfinite_, trailing_silent_nan_, spikes_, stride_,
      curve_, tail_, grad_norms_, learning_rates_, early_grads_, early_grad_norm_, first_, last_,
      lowest_, highest_, first_nonfinite_, first_silent_nan_, last_spike_, level_, deviation_,
      highest_grad_norm_, trailing_zero_rates_, keyless_, trailing_zeros_, first_zero_,
      level_before_zeros_, trailing_bad_grads_, first_bad_grad_, level_at_bad_grads_, head_,
      lowest_level_, lowest_level_at_);
    // Restored from damaged bytes.
    if (stride_ < 1) stride_ = 1;
    if (head_.size() > kHead) head_.resize(kHead);
    if (lowest_level_at_ < 0) lowest_level_at_ = 0;
  }

 private:
  void AddFinite(double loss);
  bool IsSpike(double loss) const;

  int64_t points_ = 0;
  int64_t finite_ = 0;
  int64_t nonfinite_ = 0;
  int64_t trailing_nonfinite_ = 0;
  int64_t trailing_silent_nan_ = 0;
  int64_t spikes_ = 0;
  int64_t stride_ = 1;
  std::vector<double> curve_, head_;
  double lowest_level_ = std::numeric_limits<double>::quiet_NaN();
  int64_t lowest_level_at_ = 0;
  Ring<double, kTail> tail_;
  Ring<double, 64> grad_norms_;
  Ring<double, 64> learning_rates_;
  std::vector<double> early_grads_;
  double early_grad_norm_ = std::numeric_limits<double>::quiet_NaN();
  CitedPoint first_, last_, lowest_, highest_, first_nonfinite_, first_silent_nan_, last_spike_;
  double level_ =
      std::numeric_limits<double>::quiet_NaN();  // exponentially weighted mean of the finite losses
  double deviation_ = 0;                         // and of their distance from it
  CitedPoint highest_grad_norm_;
  int64_t trailing_zero_rates_ = 0;
  int64_t trailing_zeros_ = 0;
  CitedPoint first_zero_;
  double level_before_zeros_ = std::numeric_limits<double>::quiet_NaN();
  int64_t trailing_bad_grads_ = 0;
  CitedPoint first_bad_grad_;
  double level_at_bad_grads_ = std::numeric_limits<double>::quiet_NaN();
  int64_t keyless_ = 0;  // records without a loss before the first that has one
};

}  // namespace rankscope::windows
