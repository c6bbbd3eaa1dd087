// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Means of a ratio over whole minutes, the newest kMinutes of them. A minute with too few looks is
// no minute. 508 bytes; plain data.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "detectors/model/time.h"

namespace rankscope::windows {

class MinuteMeans {
 public:
  static constexpr size_t kMinutes = 60;
  static constexpr Duration kMinute = Seconds(60);

  static int64_t MinuteOf(Timestamp t) { return t.ns / kMinute.ns; }

  void Add(float value, Timestamp t) {
    if (!std::isfinite(value)) return;
    const int64_t minute = MinuteOf(t);
    if (minute != minute_) {
      if (count_ >= kEnough) {
        minutes_[written_ % kMinutes] = static_cast<int32_t>(minute_);
        means_[written_++ % kMinutes] = static_cast<float>(sum_ / count_);
      }
      minute_ = minute;
      sum_ = 0;
      count_ = 0;
    }
    sum_ += value;
    ++count_;
  }

  // Of the newest `n` minutes the highest and the lowest mean; NaN where fewer are known.
  double Highest(size_t n) const {
    return Extreme(n, [](float a, float b) { return a > b; });
  }
  double Lowest(size_t n) const {
    return Extreme(n, [](float a, float b) { return a < b; });
  }

  // Means of the `n` minutes that end with this one, oldest first; NaN where there is none. The one
  // that is not over yet counts as soon as it has enough looks.
  std::vector<float> Until(int64_t minute, size_t n) const {
    std::vector<float> means(n, std::numeric_limits<float>::quiet_NaN());
    const auto put = [&](int64_t at, float mean) {
      const int64_t age = minute - at;
      if (age >= 0 && age < static_cast<int64_t>(n)) means[n - 1 - static_cast<size_t>(age)] = mean;
    };
    for (size_t i = 0; i < std::min<size_t>(written_, kMinutes); ++i) put(minutes_[i], means_[i]);
    if (count_ >= kEnough) put(minute_, static_cast<float>(sum_ / count_));
    return means;
  }

  template <class A>
  void Fields(A& a) {
    a(means_, minutes_, written_, minute_, sum_, count_);
  }

 private:
  static constexpr int32_t kEnough = 20;  // looks may come every two seconds

  template <class Better>
  double Extreme(size_t n, Better better) const {
    if (n == 0 || n > std::min<size_t>(written_, kMinutes))
      return std::numeric_limits<double>::quiet_NaN();
    float found = means_[(written_ - 1) % kMinutes];
    for (size_t i = 1; i < n; ++i) {
      const float mean = means_[(written_ - 1 - i) % kMinutes];
      if (better(mean, found)) found = mean;
    }
    return found;
  }

  std::array<float, kMinutes> means_{};
  std::array<int32_t, kMinutes> minutes_{};  // of which each is
  uint32_t written_ = 0;
  int64_t minute_ = -1;
  double sum_ = 0;
  int32_t count_ = 0;
};

}  // namespace rankscope::windows
