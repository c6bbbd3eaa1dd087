// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/timeline.h"

#include <algorithm>
#include <cmath>

namespace rankscope::generator {

Second& Life::At(double t) {
  const auto index = static_cast<size_t>(std::max(0.0, std::floor(t) - std::floor(born)));
  if (index >= seconds.size()) seconds.resize(index + 1);
  return seconds[index];
}

void Life::Do(Doing doing, double from, double to) {
  from = std::max(from, born);
  to = std::min(to, died);
  for (double at = from; at < to;) {
    const double end = std::min(std::floor(at) + 1, to);
    Second& second = At(at);
    second.seconds[static_cast<size_t>(doing)] += static_cast<float>(end - at);
    second.last = doing;
    second.age = static_cast<float>(end - from);
    at = end;
  }
}

void Life::Add(float Second::*member, double from, double to) {
  from = std::max(from, born);
  to = std::min(to, died);
  for (double at = from; at < to;) {
    const double end = std::min(std::floor(at) + 1, to);
    At(at).*member += static_cast<float>(end - at);
    at = end;
  }
}

void Life::LaunchAll(double kernels, double from, double to) {
  from = std::max(from, born);
  to = std::min(to, died);
  if (to <= from || kernels <= 0) return;
  if (newest_launch > 0) {
    // As bpf/cuda.bpf.c counts them: up to 2^-10 s, and then by powers of two.
    const double gap = std::max(from - newest_launch, 1e-5);
    const auto slot = static_cast<size_t>(std::clamp(std::ceil(std::log2(gap)) + 10, 0.0, 18.0));
    if (slot > 0) ++At(from).gaps[slot];
    At(from).largest_gap = std::max(At(from).largest_gap, static_cast<float>(gap));
  }
  for (double at = from; at < to;) {
    const double end = std::min(std::floor(at) + 1, to);
    Second& second = At(at);
    second.launches += static_cast<float>(kernels * (end - at) / (to - from));
    second.launched = end;
    at = end;
  }
  newest_launch = to;
}

}  // namespace rankscope::generator
