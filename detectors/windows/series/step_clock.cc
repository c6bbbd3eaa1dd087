// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/series/step_clock.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "detectors/windows/series/statistics.h"

namespace rankscope::windows {
namespace {

// Arrivals closer than this came out of one buffer.
constexpr Duration kTogether = Milliseconds(2);

}  // namespace

void StepClock::Add(const logs::Progress& progress, Timestamp t, Interval interval) {
  const double previous_step = last_step_;
  const double previous_epoch = epoch_;
  unit_ = progress.step_unit;
  if (!progress.step_text.empty() && std::isfinite(progress.step)) {
    if (records_ == 0) first_step_ = progress.step;
    if (progress.step < last_step_) ++restarts_;
    CountWithinEpoch(progress);
    last_step_ = progress.step;
    if (!(progress.step <= highest_step_)) highest_step_ = progress.step;
  }
  if (std::isfinite(progress.total_steps)) total_steps_ = progress.total_steps;
  if (std::isfinite(progress.epoch)) {
    if (std::isnan(first_epoch_)) first_epoch_ = progress.epoch;
    epoch_ = progress.epoch;
  }
  const std::optional<Duration> known = Since(t, interval);
  const Duration since = known.value_or(Duration{});
  // Every rank may print the same step, or the same epoch where no step is printed: one step, and
  // no interval of its own.
  const bool by_step = std::isfinite(previous_step);
  const bool further = by_step ? last_step_ > previous_step : epoch_ > previous_epoch;
  const bool same = by_step ? previous_step == last_step_ : previous_epoch == epoch_;
  const bool repeated = same && since < Seconds(1);
  if (records_ == 0) first_arrival_ = t;
  if (!known) {
    Begin(t, interval);
  } else if (!repeated) {
    if (since > kTogether) {
      const double per_record = since.seconds() / static_cast<double>(same_arrival_);
      record_seconds_.Push(per_record);
      if (!interval.disturbed) plain_seconds_.Push(per_record);
      if (++intervals_ > static_cast<int64_t>(kWarmUp))
        longest_ = std::max(longest_, since.seconds());
      const double steps = last_step_ - previous_step;
      const bool counted = std::isfinite(steps) && unit_ == logs::StepUnit::kSteps;
      if (!printed_ && counted && steps > 0) AddStepSeconds(per_record / steps);
      if (!counted && further && !interval.disturbed) AddPace(per_record);
      Begin(t, interval);
    } else {
      ++same_arrival_;
      buffered_ = buffered_ || since.ns > 0;
    }
  }
  if (interval.past) last_arrival_ = t;
  if (std::isfinite(progress.step_seconds) && progress.step_seconds > 0) {
    if (!printed_) {
      step_seconds_.Clear();
      early_.clear();
      timed_ = 0;
    }
    printed_ = true;
    AddStepSeconds(progress.step_seconds);
  }
  ++records_;
}

std::optional<Duration> StepClock::Since(Timestamp t, const Interval& interval) const {
  if (records_ == 0 || interval.past != past_) return std::nullopt;
  if (!interval.past) {
    if (interval.suspended.ns > 0) return std::nullopt;
    return t - last_arrival_;
  }
  if (interval.printed_ms == 0 || past_ms_ == 0 || interval.printed_ms < past_ms_)
    return std::nullopt;
  return Milliseconds(interval.printed_ms - past_ms_);
}

void StepClock::Begin(Timestamp t, const Interval& interval) {
  last_arrival_ = t;
  same_arrival_ = 1;
  past_ = interval.past;
  past_ms_ = interval.past ? interval.printed_ms : 0;
}

void StepClock::AddStepSeconds(double seconds) {
  step_seconds_.Push(seconds);
  if (static_cast<size_t>(timed_++) >= kWarmUp && early_.size() < kEarly) early_.push_back(seconds);
}

// Counts that fall while the epoch rises begin anew with each epoch; a count that falls alone is a
// training that goes back to a checkpoint, or another one.
void StepClock::CountWithinEpoch(const logs::Progress& progress) {
  if (progress.step < last_step_ && progress.epoch > epoch_) {
    epochs_before_ += in_epoch_;
    in_epoch_ = 0;
  }
  in_epoch_ = std::max(in_epoch_, progress.step);
}

void StepClock::AddPace(double seconds) {
  pace_.Push(seconds);
  if (static_cast<size_t>(paced_++) >= kPaceWarmUp && early_pace_.size() < kEarlyPaces)
    early_pace_.push_back(seconds);
}

double StepClock::MedianPace() const {
  return pace_.size() < kPaceWarmUp ? logs::kAbsent : Median(pace_.ToVector());
}

double StepClock::NewestPace() const {
  if (pace_.size() < kEarlyPaces) return logs::kAbsent;
  const std::vector<double> paces = pace_.ToVector();
  return Median(std::span(paces).last(kEarlyPaces));
}

double StepClock::EarlyPace() const {
  if (paced_ < static_cast<int64_t>(kPaceWarmUp + 2 * kEarlyPaces)) return logs::kAbsent;
  return Median(early_pace_);
}

double StepClock::NewestStepSeconds() const {
  if (step_seconds_.size() < kNewest) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> steps = step_seconds_.ToVector();
  return Median(std::span(steps).last(kNewest));
}

double StepClock::EarlyStepSeconds() const {
  // The baseline is only one once as many again have been timed.
  if (timed_ < static_cast<int64_t>(kWarmUp + 2 * kEarly))
    return std::numeric_limits<double>::quiet_NaN();
  return Median(early_);
}

bool StepClock::steps_known() const {
  return std::isfinite(highest_step_) && unit_ == logs::StepUnit::kSteps;
}

double StepClock::steps_done() const {
  if (!steps_known()) return static_cast<double>(records_);
  return std::max(reached(), epochs_before_ + in_epoch_);
}

double StepClock::reached() const {
  // A counter that starts at 0 has made one step more than it says.
  return highest_step_ + (first_step_ == 0 ? 1 : 0);
}

double StepClock::MedianStepSeconds() const {
  return Median(step_seconds_.ToVector());
}
// Without a number, a record is of one step or more, unless so many ranks print records of their
// own that few intervals are between steps.
double StepClock::MaxStepSeconds(int32_t world_size) const {
  constexpr int32_t kFewRanks = 50;  // the longest in a hundred intervals is then between steps
  const double step = MedianStepSeconds();
  if (std::isfinite(step)) return step;
  return world_size <= kFewRanks ? P99RecordSeconds() : logs::kAbsent;
}

double StepClock::MedianRecordSeconds() const {
  return Median(record_seconds_.ToVector());
}
double StepClock::P99RecordSeconds() const {
  constexpr size_t kEnough = 8;
  const bool plain = plain_seconds_.size() >= kEnough;
  return Quantile(plain ? plain_seconds_.ToVector() : record_seconds_.ToVector(), 0.99);
}

}  // namespace rankscope::windows
