// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What reinforcement learning prints instead of a loss that falls: rewards, how far the rewards of
// one group differ (no difference, no gradient), the distance from the reference model, and how
// many completions run into the length limit. Fed with training records in order; single writer.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "detectors/logs/record.h"
#include "detectors/windows/series/ring.h"
#include "detectors/windows/trackers/loss_tracker.h"

namespace rankscope::windows {

class RewardTracker {
 public:
  void Add(const logs::Progress& progress, uint32_t stream, int64_t offset, std::string_view line,
           Timestamp t);

  int64_t records() const { return records_; }  // with any of these numbers
  // Records in a row, at the end, whose groups do not differ; `flat` cites the first of them.
  int64_t trailing_flat() const { return trailing_flat_; }
  const CitedPoint& flat() const { return flat_; }
  // Whether any group ever differed: a reward that never did has no signal from the start on.
  bool ever_differed() const { return ever_differed_; }

  double first_reward() const;  // median of the first ten; NaN: none
  double last_reward() const;   // median of the last ten
  double best_reward() const { return best_reward_; }
  double best_median() const { return best_median_; }  // the highest median of ten in a row
  int64_t reward_records() const { return reward_records_; }
  const CitedPoint& first() const { return first_; }
  const CitedPoint& last() const { return last_; }

  double usual_kl() const;  // median of the first 64; before a sudden rise among them, of that time
  bool rose_early() const;  // there was such a rise
  double last_kl() const;   // median of the last ten
  int64_t kl_records() const { return kl_records_; }
  const CitedPoint& highest_kl() const { return highest_kl_; }

  // Share of completions that ran into the length limit: medians of the first ten and of the last
  // ten; NaN: none is printed.
  double early_clipped() const;
  double late_clipped() const;
  const CitedPoint& last_clipped() const { return last_clipped_; }

  template <class A>
  void Fields(A& a) {
    a(records_, trailing_flat_, ever_differed_, best_reward_, rewards_, early_rewards_, early_kl_,
      late_kl_, kl_records_, flat_, first_, last_, highest_kl_, kl_before_rise_, best_median_,
      reward_records_, early_clipped_, late_clipped_, last_clipped_);
  }

 private:
  void NoteEarlyRise();

  int64_t records_ = 0;
  int64_t trailing_flat_ = 0;
  bool ever_differed_ = false;
  double best_reward_ = std::numeric_limits<double>::quiet_NaN();
  Ring<double, 10> rewards_;
  std::vector<double> early_rewards_;  // at most ten
  std::vector<double> early_kl_;       // at most 64
  Ring<double, 10> late_kl_;
  int64_t kl_records_ = 0;
  double kl_before_rise_ = std::numeric_limits<double>::quiet_NaN();
  double best_median_ = std::numeric_limits<double>::quiet_NaN();
  int64_t reward_records_ = 0;
  std::vector<double> early_clipped_;  // at most ten
  Ring<double, 10> late_clipped_;
  CitedPoint flat_, first_, last_, highest_kl_, last_clipped_;
};

}  // namespace rankscope::windows
