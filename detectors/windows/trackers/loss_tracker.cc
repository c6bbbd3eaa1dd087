// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/loss_tracker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "detectors/windows/series/statistics.h"

namespace rankscope::windows {
namespace {

// A spike: robust z of the value among the exact tail. 8, with the published healthy maximum
// at 4.5.
constexpr double kSpikeZ = 8;
constexpr size_t kSpikeHistory = 20;

// A dynamic loss scale begins at 2^32 at the most, and each skipped iteration halves it; twice as
// many with DeepSpeed's hysteresis of 2. Until then no iteration need have a loss.
constexpr int64_t kScaleSearch = 64;

// Weight of the newest record in the running level and deviation: a memory of some twenty records.
constexpr double kAlpha = 0.1;
constexpr size_t kLevelRecords = 15;  // whose median is what the loss was about then

}  // namespace

bool LossTracker::IsSpike(double loss) const {
  if (!(loss > level_ + 0.2 * std::abs(level_)) || tail_.size() < kSpikeHistory) return false;
  // For a normal distribution sigma is 1.2533 x the mean absolute deviation.
  const double sigma = std::max(1.2533 * deviation_, 1e-3 * std::abs(level_));
  return loss - level_ > kSpikeZ * sigma;
}

void LossTracker::Add(const logs::Progress& progress, uint32_t stream, int64_t offset,
                      std::string_view line, Timestamp t) {
  const bool has_grad = !progress.grad_norm_text.empty();
  if (has_grad && std::isfinite(progress.grad_norm)) {
    grad_norms_.Push(progress.grad_norm);
    if (early_grads_.size() < 10) {
      early_grads_.push_back(progress.grad_norm);
      early_grad_norm_ = Median(early_grads_);
    }
  }
  if (!progress.learning_rate_text.empty() && std::isfinite(progress.learning_rate)) {
    learning_rates_.Push(progress.learning_rate);
    trailing_zero_rates_ = progress.learning_rate == 0 ? trailing_zero_rates_ + 1 : 0;
  }
  const bool has_loss = !progress.loss_text.empty();
  if (!has_loss && !progress.loss_key_missing) return;

  // Quoting costs a copy, so only records that become landmarks are quoted.
  const auto quote = [&, index = points_](CitedPoint& point) {
    point.value = progress.loss;
    point.step = progress.step;
    point.index = index;
    point.stream = stream;
    point.offset = offset;
    point.t = t;
    point.line.assign(line.substr(0, logs::kCitationCap));
  };

  if (has_grad && std::isfinite(progress.grad_norm) &&
      !(progress.grad_norm <= highest_grad_norm_.value)) {
    quote(highest_grad_norm_);
    highest_grad_norm_.value = progress.grad_norm;
  }
  if (progress.loss_key_missing && points_ == 0) ++keyless_;

  // Hugging Face's nan filter prints 0.0 for a NaN loss; Megatron leaves the key out when
  // iterations were skipped.
  const bool silent_nan =
      (has_loss && progress.loss == 0 && has_grad && std::isnan(progress.grad_norm)) ||
      (progress.loss_key_missing &&
       (progress.nan_iterations > 0 ||
        (progress.skipped_iterations > 0 && (points_ > 0 || keyless_ > kScaleSearch))));
  if (silent_nan) {
    if (trailing_silent_nan_ == 0) quote(first_silent_nan_);
    ++trailing_silent_nan_;
  } else if (has_loss) {
    trailing_silent_nan_ = 0;
  }
  if (!has_loss) return;

  ++points_;
  if (!std::isfinite(progress.loss)) {
    ++nonfinite_;
    if (trailing_nonfinite_ == 0) quote(first_nonfinite_);
    ++trailing_nonfinite_;
    quote(last_);
    return;
  }
  trailing_nonfinite_ = 0;
  const bool bad_grad = has_grad && !std::isfinite(progress.grad_norm) && progress.loss != 0;
  if (bad_grad && ++trailing_bad_grads_ == 1) {
    quote(first_bad_grad_);
    first_bad_grad_.value = progress.grad_norm;
  }
  if (trailing_bad_grads_ == static_cast<int64_t>(kLevelRecords)) {
    const std::vector<double> tail = tail_.ToVector();
    level_at_bad_grads_ = Median(std::span(tail).last(std::min(tail.size(), kLevelRecords)));
  }
  if (!bad_grad) trailing_bad_grads_ = 0;
  const bool zero = progress.loss == 0 && !silent_nan;
  if (zero && trailing_zeros_++ == 0) {
    quote(first_zero_);
    // The level follows slowly: one that is learned away still lies far above its last values.
    level_before_zeros_ = tail_.size() == 0 ? level_ : std::min(level_, tail_.back());
  }
  if (!zero) trailing_zeros_ = 0;
  if (!silent_nan) {
    if (IsSpike(progress.loss)) {
      ++spikes_;
      quote(last_spike_);
    }
    AddFinite(progress.loss);
    if (!first_.present()) quote(first_);
    if (!lowest_.present() || progress.loss < lowest_.value) quote(lowest_);
    if (!highest_.present() || progress.loss > highest_.value) quote(highest_);
  }
  quote(last_);
}

void LossTracker::AddFinite(double loss) {
  tail_.Push(loss);
  // Winsorised, so that a spike does not hide the next one.
  if (std::isnan(level_)) {
    level_ = loss;
  } else {
    const double away = std::abs(loss - level_);
    const double clipped = tail_.size() < kSpikeHistory ? away : std::min(away, 5 * deviation_);
    deviation_ += kAlpha * (clipped - deviation_);
    level_ += kAlpha * std::clamp(loss - level_, -clipped, clipped);
  }
  if ((finite_ & (stride_ - 1)) == 0) {  // a power of two: it only ever doubles
    curve_.push_back(loss);
    if (curve_.size() > kCurve) {
      for (size_t i = 0; i * 2 < curve_.size(); ++i) curve_[i] = curve_[i * 2];
      curve_.resize((curve_.size() + 1) / 2);
      stride_ *= 2;
    }
  }
  if (head_.size() < kHead) head_.push_back(loss);
  ++finite_;
  if (tail_.size() < kLevel || finite_ % (kLevel / 2) != 0) return;
  std::array<double, kLevel> newest;
  for (size_t i = 0; i < kLevel; ++i) newest[i] = tail_[tail_.size() - kLevel + i];
  if (const double level = Median(newest); !(level >= lowest_level_)) {
    lowest_level_ = level;
    lowest_level_at_ = finite_;
  }
}

}  // namespace rankscope::windows
