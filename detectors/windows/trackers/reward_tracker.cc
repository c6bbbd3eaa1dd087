// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/reward_tracker.h"

#include <cmath>
#include <span>

#include "detectors/windows/series/statistics.h"

namespace rankscope::windows {
namespace {

constexpr size_t kEarlyRewards = 10;
constexpr size_t kEarlyKl = 64;

// No group differs, or next to none does. Standard deviations are printed with rounding noise.
bool IsFlat(const logs::Progress& progress) {
  constexpr double kNothing = 1e-6;
  constexpr double kNearlyAll = 0.9;
  if (std::isfinite(progress.zero_std_share)) return progress.zero_std_share > kNearlyAll;
  return std::isfinite(progress.reward_std) && progress.reward_std <= kNothing;
}

}  // namespace

void RewardTracker::Add(const logs::Progress& progress, uint32_t stream, int64_t offset,
                        std::string_view line, Timestamp t) {
  const bool spread = std::isfinite(progress.reward_std) || std::isfinite(progress.zero_std_share);
  const bool reward = std::isfinite(progress.reward);
  const bool kl = std::isfinite(progress.kl);
  if (!spread && !reward) return;  // a distance alone is distillation, not reinforcement
  const auto quote = [&](CitedPoint& point, double value) {
    point.value = value;
    point.step = progress.step;
    point.index = records_;
    point.stream = stream;
    point.offset = offset;
    point.t = t;
    point.line.assign(line.substr(0, logs::kCitationCap));
  };
  if (reward) {
    if (!first_.present()) quote(first_, progress.reward);
    quote(last_, progress.reward);
    rewards_.Push(progress.reward);
    ++reward_records_;
    if (early_rewards_.size() < kEarlyRewards) early_rewards_.push_back(progress.reward);
    if (!(progress.reward <= best_reward_)) best_reward_ = progress.reward;
    if (const double median = last_reward();
        reward_records_ >= static_cast<int64_t>(kEarlyRewards) && !(median <= best_median_))
      best_median_ = median;
  }
  if (spread) {
    if (IsFlat(progress)) {
      if (trailing_flat_ == 0) {
        quote(flat_, std::isfinite(progress.zero_std_share) ? progress.zero_std_share
                                                            : progress.reward_std);
      }
      ++trailing_flat_;
    } else {
      trailing_flat_ = 0;
      ever_differed_ = true;
    }
  }
  if (kl) {
    late_kl_.Push(progress.kl);
    if (early_kl_.size() < kEarlyKl) early_kl_.push_back(progress.kl);
    if (!highest_kl_.present() || progress.kl > highest_kl_.value) quote(highest_kl_, progress.kl);
    ++kl_records_;
    NoteEarlyRise();
  }
  if (std::isfinite(progress.clipped_share)) {
    if (early_clipped_.size() < kEarlyRewards) early_clipped_.push_back(progress.clipped_share);
    late_clipped_.Push(progress.clipped_share);
    quote(last_clipped_, progress.clipped_share);
  }
  ++records_;
}

// The first records are no measure of what is usual if the policy leaves its reference among them.
// From the reference, which it begins at, it departs with the square of the steps, and with their
// fourth power while the learning rate warms up: the newest ten are then less than 30 times those
// of a third to half of the way.
void RewardTracker::NoteEarlyRise() {
  constexpr size_t kLeast = 30;
  constexpr double kTimes = 30, kFar = 0.1;
  const size_t n = early_kl_.size();
  if (rose_early() || n < kLeast || kl_records_ > static_cast<int64_t>(n)) return;
  const double before = Median(std::span(early_kl_).subspan(n / 3, n / 2 - n / 3));
  const double now = last_kl();
  if (before > 0 && now > kTimes * before && now > kFar) kl_before_rise_ = before;
}

bool RewardTracker::rose_early() const {
  return std::isfinite(kl_before_rise_);
}

double RewardTracker::first_reward() const {
  return Median(early_rewards_);
}
double RewardTracker::last_reward() const {
  return Median(rewards_.ToVector());
}
double RewardTracker::usual_kl() const {
  return rose_early() ? kl_before_rise_ : Median(early_kl_);
}
double RewardTracker::early_clipped() const {
  return Median(early_clipped_);
}
double RewardTracker::late_clipped() const {
  return Median(late_clipped_.ToVector());
}
double RewardTracker::last_kl() const {
  return Median(late_kl_.ToVector());
}

}  // namespace rankscope::windows
