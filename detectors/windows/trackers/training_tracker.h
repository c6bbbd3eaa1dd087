// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the training records of one attempt say besides the loss: gradient norm, zeros, loss scale,
// learning rate, step time, throughput, skipped and NaN iterations, checkpoints. Keeps sightings
// for warnings; nothing here explains how a run ended. Bounded; allocates nothing per record once
// its rings are full. Fed in order; single writer.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "detectors/logs/record.h"
#include "detectors/windows/series/robust_band.h"
#include "detectors/windows/trackers/learning_rate_tracker.h"
#include "detectors/windows/trackers/metric_series.h"
#include "detectors/windows/trackers/save_tracker.h"
#include "detectors/windows/trackers/sighting.h"

namespace rankscope::windows {

// Which printed number is this run's measure of speed; the first that it prints stays.
enum class ThroughputMeasure : uint8_t { kNone, kTokens, kSamples, kTflops, kMfu };

class TrainingTracker {
 public:
  static constexpr int64_t kWarmUp = 20;  // records in which scales are searched for

  void Add(const TrackedRecord& record);
  void OnMarker(const logs::Marker& marker, uint32_t stream, const LogLine* line, Timestamp t);

  int64_t records() const { return records_; }
  // A save or an evaluation lies before the next record.
  bool disturbed() const { return disturbed_; }
  double last_step() const { return last_step_; }  // NaN: none is printed

  // Records whose gradient norm is far above the run's own; cites the highest.
  const Sighting& grad_norm_high() const { return grad_norm_high_; }
  int64_t last_high_index() const { return last_high_index_; }  // of the newest such record; -1
  // The longest row of records that print a gradient norm of 0; cites its first. Usual: the newest
  // norm that was another, NaN where none was.
  const Sighting& grad_norm_zero() const { return grad_norm_zero_; }
  // The newest number of zeros among the gradient's elements, and how many records in a row it has
  // been ten times what it was.
  const Sighting& gradient_zeros() const { return gradient_zeros_; }
  // Halvings of the loss scale without a rise between them, after it had settled.
  const Sighting& scale_falls() const { return scale_falls_; }
  const LearningRateTracker& learning_rate() const { return learning_rate_; }
  const Sighting& slow_steps() const { return slow_steps_; }  // cites the slowest
  int64_t timed_steps() const { return timed_steps_; }
  // Iterations skipped after the warm-up, and iterations in that time; cites the newest.
  const Sighting& skipped() const { return skipped_; }
  double skippable() const { return skippable_; }
  const Sighting& nan_iterations() const { return nan_iterations_; }  // cites the first
  const SaveTracker& saves() const { return saves_; }
  const MetricSeries& metrics() const { return metrics_; }

  // Throughput as the job prints it: what the first records after the warm-up gave, and the newest.
  ThroughputMeasure throughput_measure() const { return measure_; }
  const std::vector<double>& early_throughput() const { return early_throughput_; }
  std::vector<double> late_throughput() const { return late_throughput_.ToVector(); }
  int64_t throughput_records() const { return throughput_records_; }
  // Tokens, samples and steps a second and MFU, as printed, of the newest records past the warm-up
  // that no save or evaluation lies before.
  static constexpr size_t kSpeeds = 4;
  const Ring<double, 32>& speed(size_t which) const { return speeds_[which]; }

  template <class A>
  void Fields(A& a) {
    a(records_, last_step_, disturbed_, grad_norms_, grad_norm_high_, last_high_index_, zero_norms_,
      zero_begin_, grad_norm_zero_, zeros_, gradient_zeros_, scale_, scale_top_, scale_steady_,
      scale_halvings_, scale_rises_, scale_falls_, learning_rate_, step_seconds_, timed_steps_,
      slow_steps_, skipped_, skippable_, cumulative_skips_, nan_iterations_, saves_, measure_,
      early_throughput_, late_throughput_, throughput_records_, metrics_, speeds_);
    if (measure_ > ThroughputMeasure::kMfu) measure_ = ThroughputMeasure::kNone;  // damaged bytes
  }

 private:
  void AddGradNorm(const TrackedRecord& record);
  void AddZeros(const TrackedRecord& record);
  void AddScale(const TrackedRecord& record);
  void AddStepTime(const TrackedRecord& record);
  void AddSkips(const TrackedRecord& record, double steps);
  void AddThroughput(const TrackedRecord& record);
  void AddSpeeds(const logs::Progress& progress);

  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  int64_t records_ = 0;
  double last_step_ = kNone;
  bool disturbed_ = false;  // a save or an evaluation lies before the next record
  RobustBand grad_norms_;
  Sighting grad_norm_high_;
  int64_t last_high_index_ = -1;
  int64_t zero_norms_ = 0;  // in a row, the first of which is zero_begin_
  CitedPoint zero_begin_;
  Sighting grad_norm_zero_;
  Ring<double, 64> zeros_;
  Sighting gradient_zeros_;
  double scale_ = kNone;
  double scale_top_ = kNone;     // before the halvings that are being counted
  int64_t scale_steady_ = 0;     // records since it last changed
  int64_t scale_halvings_ = -1;  // in a row; -1: it has not settled yet
  int64_t scale_rises_ = 0;
  Sighting scale_falls_;
  LearningRateTracker learning_rate_;
  RobustBand step_seconds_;
  int64_t timed_steps_ = 0;
  Sighting slow_steps_;
  Sighting skipped_;
  double skippable_ = 0;
  double cumulative_skips_ = kNone;
  Sighting nan_iterations_;
  SaveTracker saves_;
  ThroughputMeasure measure_ = ThroughputMeasure::kNone;
  std::vector<double> early_throughput_;
  Ring<double, 32> late_throughput_;
  int64_t throughput_records_ = 0;
  std::array<Ring<double, 32>, kSpeeds> speeds_;
  MetricSeries metrics_;
};

}  // namespace rankscope::windows
