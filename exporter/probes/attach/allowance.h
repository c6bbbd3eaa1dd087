// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What one user may cause the daemon to do: so much at once, and so much each second. What is done
// already is never taken back, so it may be overdrawn, and is paid off before more is done. Pure;
// one thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rankscope::probes {

class Allowance {
 public:
  // `burst`: what may be spent at once by who has spent nothing for a while.
  Allowance(double burst, double per_second)
      : burst_(burst), per_second_(per_second), left_(burst) {}

  // Whether there is any left.
  bool Left(int64_t now_ns) {
    if (now_ns > at_ns_) {
      const double seconds = static_cast<double>(now_ns - at_ns_) * 1e-9;
      left_ = at_ns_ == 0 ? burst_ : std::min(burst_, left_ + seconds * per_second_);
      at_ns_ = now_ns;
    }
    return left_ > 0;
  }
  void Spend(double amount) { left_ -= amount; }

 private:
  double burst_;
  double per_second_;
  double left_;
  int64_t at_ns_ = 0;
};

}  // namespace rankscope::probes
