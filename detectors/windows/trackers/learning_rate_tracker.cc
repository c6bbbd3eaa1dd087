// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/learning_rate_tracker.h"

#include <algorithm>
#include <cmath>

namespace rankscope::windows {
namespace {

// "0", "0.0" and "0.000E+00" are zeros; "0.0000" may be a small rate in a fixed format.
bool IsExactZero(const logs::Progress& progress) {
  const std::string_view text = progress.learning_rate_text;
  return progress.learning_rate == 0 &&
         (text.size() <= 3 || text.find_first_of("eE") != std::string_view::npos ||
          text.size() >= 10);
}

}  // namespace

void LearningRateTracker::AddZero(const TrackedRecord& record) {
  if (!IsExactZero(record.progress)) {
    zero_.times = 0;
    return;
  }
  if (zero_.times++ == 0) {
    record.Cite(0, zero_.point);
    zero_.usual = peak_;
  }
}

// After a fall: rising records show a warm-up that began again, anything else a step down.
void LearningRateTracker::FollowFall(double rate) {
  if (!falling_) return;
  if (!(rate > last_) || rate > fall_.usual) {
    falling_ = false;
    return;
  }
  if (++rises_ < kSecondRise) return;
  falling_ = false;
  const int64_t times = restart_.times + 1;
  restart_ = fall_;
  restart_.times = times;
}

void LearningRateTracker::Add(const TrackedRecord& record) {
  const logs::Progress& progress = record.progress;
  const double rate = progress.learning_rate;
  if (!std::isfinite(rate) || rate < 0) return;
  const bool stepped = std::isfinite(progress.step);
  // Steps that begin again are another training, with a schedule of its own; a small set-back is a
  // resume, or another rank that prints late.
  if (stepped && progress.step < 0.5 * last_step_) *this = {};
  if (stepped && progress.step <= last_step_) return;
  if (stepped) last_step_ = progress.step;
  AddZero(record);
  const double at = stepped ? progress.step : static_cast<double>(record.index);
  if (records_ > 0) {
    const double distance = at - last_at_;
    const double expected = last_ + std::max(0.0, slope_) * distance;
    FollowFall(rate);
    if (records_ >= kLeast && peak_ > 0) {
      if (rate > 1.5 * peak_ && rate > 2 * expected) {
        ++jump_.times;
        jump_.usual = peak_;
        record.Cite(rate, jump_.point);
      } else if (last_ > 0.3 * peak_ && rate < 0.2 * last_) {
        falling_ = true;
        rises_ = 0;
        fall_.usual = last_;
        record.Cite(rate, fall_.point);
      }
    }
    if (distance > 0) slope_ = (rate - last_) / distance;
  }
  last_ = rate;
  last_at_ = at;
  if (records_ == 0) {
    first_ = rate;
    first_at_ = last_step_;
  }
  if (rate > peak_) peak_at_ = last_step_;
  peak_ = std::max(peak_, rate);
  record.Cite(rate, newest_);
  ++records_;
}

}  // namespace rankscope::windows
