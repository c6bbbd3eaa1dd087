// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/training_tracker.h"

#include <algorithm>
#include <cmath>

namespace rankscope::windows {
namespace {

// A gradient norm doubles and halves in health; six deviations of at least 0.2 are 3.3 times.
constexpr BandLimits kGradNormLimits = {6, 0.2};
// A step that takes 1.8 times the usual, at least.
constexpr BandLimits kStepTimeLimits = {6, 0.1};
// First timings: compilation, caches, autotuning.
constexpr int64_t kUntimed = 5;
constexpr size_t kEarlyThroughput = 20;

// A record's number for the measure; NaN where it prints none.
double Throughput(const logs::Progress& progress, ThroughputMeasure measure) {
  switch (measure) {
    case ThroughputMeasure::kTokens:
      return progress.tokens_per_second;
    case ThroughputMeasure::kSamples:
      return progress.samples_per_second;
    case ThroughputMeasure::kTflops:
      return progress.tflops;
    case ThroughputMeasure::kMfu:
      return progress.mfu;
    case ThroughputMeasure::kNone:
      break;
  }
  return logs::kAbsent;
}

}  // namespace

void TrainingTracker::Add(const TrackedRecord& record) {
  const logs::Progress& progress = record.progress;
  const bool stepped = !progress.step_text.empty() && std::isfinite(progress.step);
  double steps = 1;
  if (stepped) {
    if (std::isfinite(last_step_) && progress.step > last_step_) steps = progress.step - last_step_;
    last_step_ = progress.step;
  }
  if (!progress.grad_norm_text.empty()) AddGradNorm(record);
  if (!progress.learning_rate_text.empty()) learning_rate_.Add(record);
  if (std::isfinite(progress.num_zeros)) AddZeros(record);
  if (progress.loss_scale > 0) AddScale(record);
  if (progress.step_seconds > 0) AddStepTime(record);
  if (std::isfinite(progress.skipped_iterations)) AddSkips(record, steps);
  if (progress.nan_iterations > 0) {
    if (!nan_iterations_.seen()) record.Cite(progress.nan_iterations, nan_iterations_.point);
    nan_iterations_.times += static_cast<int64_t>(std::min(progress.nan_iterations, 1e9));
  }
  AddThroughput(record);
  AddSpeeds(progress);
  disturbed_ = false;
  ++records_;
}

void TrainingTracker::OnMarker(const logs::Marker& marker, uint32_t stream, const LogLine* line,
                               Timestamp t) {
  const bool quoted = !marker.line.empty() || line == nullptr;
  const int64_t offset = quoted ? marker.offset : line->offset;
  const std::string_view text = quoted ? marker.line : line->text;
  switch (marker.kind) {
    case logs::MarkerKind::kSaveBegin:
    case logs::MarkerKind::kSaveEnd:
      disturbed_ = true;
      saves_.OnSave(std::isfinite(marker.number) ? marker.number : last_step_, stream, offset, text,
                    t);
      break;
    case logs::MarkerKind::kMetric:
      metrics_.Add(marker.text, marker.number, marker.name == logs::kGraphMetric, stream, offset,
                   text, t);
      break;
    case logs::MarkerKind::kEval:
    case logs::MarkerKind::kEvalBegin:
    case logs::MarkerKind::kSaveFailed:
    case logs::MarkerKind::kLoaded:
      disturbed_ = true;
      break;
    default:
      break;
  }
}

void TrainingTracker::AddGradNorm(const TrackedRecord& record) {
  const double norm = record.progress.grad_norm;
  if (norm == 0) {
    if (++zero_norms_ == 1) record.Cite(norm, zero_begin_);
    if (zero_norms_ <= grad_norm_zero_.times) return;
    grad_norm_zero_.times = zero_norms_;
    if (grad_norm_zero_.point.index != zero_begin_.index) grad_norm_zero_.point = zero_begin_;
    return;
  }
  zero_norms_ = 0;
  if (!std::isfinite(norm) || norm < 0) return;
  grad_norm_zero_.usual = norm;
  if (!grad_norms_.Add(norm, kGradNormLimits)) return;
  last_high_index_ = record.index;
  if (++grad_norm_high_.times > 1 && !(norm > grad_norm_high_.point.value)) return;
  grad_norm_high_.usual = grad_norms_.usual();
  record.Cite(norm, grad_norm_high_.point);
}

void TrainingTracker::AddZeros(const TrackedRecord& record) {
  const double zeros = record.progress.num_zeros;
  constexpr size_t kHistory = 20;
  constexpr double kFew = 1000;  // a handful of zeros more is no jump
  if (zeros_.size() >= kHistory) {
    if (gradient_zeros_.times == 0) {
      double sum = 0;
      for (size_t i = 0; i < zeros_.size(); ++i) sum += zeros_[i];
      gradient_zeros_.usual = sum / static_cast<double>(zeros_.size());
    }
    if (zeros > 10 * std::max(gradient_zeros_.usual, kFew)) {
      ++gradient_zeros_.times;
      record.Cite(zeros, gradient_zeros_.point);
      return;  // what it has jumped from stays
    }
    gradient_zeros_.times = 0;
  }
  zeros_.Push(zeros);
}

void TrainingTracker::AddScale(const TrackedRecord& record) {
  constexpr int64_t kSettled = 20;  // records at one scale: the search at the start is over
  constexpr int64_t kApart = 200;   // an overflow now and then is how dynamic scaling works
  const double scale = record.progress.loss_scale;
  if (scale < scale_) {
    if (scale_halvings_ >= 0) {
      if (scale_halvings_ == 0 || scale_steady_ > kApart) {
        scale_top_ = scale_;
        scale_halvings_ = 0;
      }
      scale_halvings_ += std::max<int64_t>(1, std::llround(std::log2(scale_ / scale)));
      scale_falls_.times = scale_halvings_;
      scale_falls_.usual = scale_top_;
      record.Cite(scale, scale_falls_.point);
      scale_rises_ = 0;
    }
    scale_steady_ = 0;
  } else if (scale > scale_) {
    scale_steady_ = 0;
    scale_halvings_ = std::min<int64_t>(scale_halvings_, 0);
    if (++scale_rises_ >= 2) scale_falls_ = {};  // it has recovered
  } else if (++scale_steady_ >= kSettled && scale_halvings_ < 0) {
    scale_halvings_ = 0;
  }
  scale_ = scale;
}

void TrainingTracker::AddStepTime(const TrackedRecord& record) {
  if (records_ < kUntimed || disturbed_) return;
  const double seconds = record.progress.step_seconds;
  if (!std::isfinite(seconds)) return;
  ++timed_steps_;
  if (!step_seconds_.Add(seconds, kStepTimeLimits)) return;
  ++slow_steps_.times;
  if (slow_steps_.times > 1 && !(seconds > slow_steps_.point.value)) return;
  slow_steps_.usual = step_seconds_.usual();
  record.Cite(seconds, slow_steps_.point);
}

void TrainingTracker::AddSkips(const TrackedRecord& record, double steps) {
  double skips = record.progress.skipped_iterations;
  if (record.progress.format ==
      "deepspeed") {  // counts from the beginning, not since the last line
    const double before = cumulative_skips_;
    cumulative_skips_ = skips;
    if (!(skips >= before)) return;
    skips -= before;
  }
  if (records_ < kWarmUp) return;
  skippable_ += steps;
  if (!(skips > 0)) return;
  skipped_.times += static_cast<int64_t>(std::min(skips, steps));
  record.Cite(record.progress.skipped_iterations, skipped_.point);
}

void TrainingTracker::AddSpeeds(const logs::Progress& progress) {
  if (records_ < kWarmUp || disturbed_) return;
  const double steps = progress.step_seconds > 0 ? 1 / progress.step_seconds : logs::kAbsent;
  const std::array<double, kSpeeds> speeds = {progress.tokens_per_second,
                                              progress.samples_per_second, steps, progress.mfu};
  for (size_t i = 0; i < kSpeeds; ++i) {
    if (std::isfinite(speeds[i]) && speeds[i] > 0) speeds_[i].Push(speeds[i]);
  }
}

void TrainingTracker::AddThroughput(const TrackedRecord& record) {
  if (measure_ == ThroughputMeasure::kNone) {
    for (const ThroughputMeasure measure : {ThroughputMeasure::kTokens, ThroughputMeasure::kSamples,
                                            ThroughputMeasure::kTflops, ThroughputMeasure::kMfu}) {
      if (!(Throughput(record.progress, measure) > 0)) continue;
      measure_ = measure;
      break;
    }
  }
  const double value = Throughput(record.progress, measure_);
  if (!std::isfinite(value) || !(value > 0) || records_ < kUntimed || disturbed_) return;
  ++throughput_records_;
  if (early_throughput_.size() < kEarlyThroughput) {
    early_throughput_.push_back(value);
    return;
  }
  late_throughput_.Push(value);
}

}  // namespace rankscope::windows
