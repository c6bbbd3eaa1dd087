// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/reward_tracker.h"

#include <cmath>

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
    if (early_rewards_.size() < kEarlyRewards) early_rewards_.push_back(progress.reward);
    if (!(progress.reward <= best_reward_)) best_reward_ = progress.reward;
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
  }
  ++records_;
}

double RewardTracker::first_reward() const {
  return Median(early_rewards_);
}
double RewardTracker::last_reward() const {
  return Median(rewards_.ToVector());
}
double RewardTracker::usual_kl() const {
  return Median(early_kl_);
}
double RewardTracker::last_kl() const {
  return Median(late_kl_.ToVector());
}

}  // namespace rankscope::windows
