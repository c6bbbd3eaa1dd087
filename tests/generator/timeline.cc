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
    if (doing != Doing::kCompute) second.largest_gap = std::max(second.largest_gap, second.age);
    at = end;
  }
}

}  // namespace rankscope::generator
