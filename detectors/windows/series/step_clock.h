// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How long a training step takes, and how far the run has come. One clock per job: the duration
// printed in the line where there is one, else arrival intervals (records that arrive together
// share their interval and are marked buffered). Records that were read from a file some time after
// they were written have no arrival time of their own: between them only printed dates tell how
// long anything took. Single writer.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "detectors/logs/record.h"
#include "detectors/windows/series/ring.h"

namespace rankscope::windows {

class StepClock {
 public:
  static constexpr size_t kWarmUp = 5;  // first timings, left out: compilation, caches
  static constexpr size_t kEarly = 20;  // timings that make the run's own baseline
  static constexpr size_t kNewest = 32;
  static constexpr size_t kPaceWarmUp = 2;  // of records, which are of many steps
  static constexpr size_t kEarlyPaces = 8;

  // What of the time since the last record is no training.
  struct Interval {
    Duration suspended;      // or not observed: such an interval tells nothing
    bool disturbed = false;  // by a save or an evaluation, as the text says
    bool past = false;       // it was read some time after it was written
    int64_t printed_ms = 0;  // then: the date that the record's text prints; 0 = none
  };
  void Add(const logs::Progress& progress, Timestamp t, Interval interval);
  void Add(const logs::Progress& progress, Timestamp t) { Add(progress, t, Interval()); }

  int64_t records() const { return records_; }
  double last_step() const { return last_step_; }  // NaN: the dialect prints none
  double first_step() const { return first_step_; }
  double total_steps() const { return total_steps_; }
  void SetTotalSteps(double steps) { total_steps_ = steps; }
  double epoch() const { return epoch_; }
  double first_epoch() const { return first_epoch_; }
  // How often the step fell back: a count within epochs does, a count of the training never.
  int64_t restarts() const { return restarts_; }
  // What the newest record's number counts; restarts, first_step and last_step are of that.
  logs::StepUnit unit() const { return unit_; }
  // Largest number of steps the run can be shown to have made: by step number, those of the epochs
  // before included where they are counted within epochs, else by records.
  double steps_done() const;
  bool steps_known() const;  // steps_done rests on a printed step number
  // The highest number that was printed, whatever it counts, from 1; NaN: none is printed.
  double reached() const;

  Timestamp last_progress() const { return last_arrival_; }
  Timestamp first_progress() const { return first_arrival_; }
  bool printed() const { return printed_; }    // the clock is the job's own
  bool buffered() const { return buffered_; }  // arrivals came in blocks
  double MedianStepSeconds() const;            // NaN: not known
  double NewestStepSeconds() const;            // of the newest kNewest; NaN: fewer have been timed
  double EarlyStepSeconds() const;             // NaN: fewer than kEarly steps have been timed since
  // The same of whole records, where no step is timed and each record is known to be further than
  // the one before: an epoch, or an equal share of one. NaN: not known.
  double MedianPace() const;
  double NewestPace() const;
  double EarlyPace() const;
  // A step takes no longer, in a job of `world_size` ranks; NaN: not known.
  double MaxStepSeconds(int32_t world_size) const;
  // Between records, by arrival; NaN: not known. What silence is measured against.
  double MedianRecordSeconds() const;
  // Of intervals without a save or an evaluation, unless hardly any is.
  double P99RecordSeconds() const;
  // The longest of all but the first few, whatever it was spent with; 0: not known.
  double LongestRecordSeconds() const { return longest_; }

  template <class A>
  void Fields(A& a) {
    a(records_, first_step_, last_step_, highest_step_, total_steps_, epoch_, first_arrival_,
      last_arrival_, same_arrival_, printed_, buffered_, step_seconds_, record_seconds_, early_,
      timed_, first_epoch_, restarts_, plain_seconds_, intervals_, longest_, past_, past_ms_, unit_,
      epochs_before_, in_epoch_, pace_, early_pace_, paced_);
    if (unit_ > logs::StepUnit::kSamples) unit_ = logs::StepUnit::kSteps;  // damaged bytes
  }

 private:
  // From the newest interval's begin to this record; nullopt: not known.
  std::optional<Duration> Since(Timestamp t, const Interval& interval) const;
  void Begin(Timestamp t, const Interval& interval);
  void AddStepSeconds(double seconds);
  void AddPace(double seconds);
  void CountWithinEpoch(const logs::Progress& progress);

  int64_t records_ = 0;
  double first_step_ = std::numeric_limits<double>::quiet_NaN();
  double last_step_ = std::numeric_limits<double>::quiet_NaN();
  double highest_step_ = std::numeric_limits<double>::quiet_NaN();
  double total_steps_ = std::numeric_limits<double>::quiet_NaN();
  double epoch_ = std::numeric_limits<double>::quiet_NaN();
  Timestamp first_arrival_, last_arrival_;
  int64_t same_arrival_ = 1;  // records since the previous distinct arrival
  bool printed_ = false;
  bool buffered_ = false;
  Ring<double, 128> step_seconds_;
  Ring<double, 128> record_seconds_;
  Ring<double, 128> plain_seconds_;  // of them, those that were not disturbed
  int64_t intervals_ = 0;
  double longest_ = 0;
  bool past_ = false;    // the newest record was
  int64_t past_ms_ = 0;  // then: when the newest of another date was printed; 0 = not known
  std::vector<double> early_;
  int64_t timed_ = 0;
  double first_epoch_ = std::numeric_limits<double>::quiet_NaN();
  int64_t restarts_ = 0;
  logs::StepUnit unit_ = logs::StepUnit::kSteps;
  double epochs_before_ = 0;  // steps of the epochs before the newest, where each is counted anew
  double in_epoch_ = 0;       // and within it
  Ring<double, 64> pace_;
  std::vector<double> early_pace_;
  int64_t paced_ = 0;
};

}  // namespace rankscope::windows
