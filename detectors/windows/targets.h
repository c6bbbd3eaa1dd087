// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The throughput that a job should reach, as its user or its site says. Bounded. Single writer.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "detectors/model/observation.h"
#include "detectors/model/speeds.h"

namespace rankscope::windows {

class Targets {
 public:
  // An event of type kTarget: `measure`, a name of kSpeedNames, and `value`, a number above 0. The
  // newest of each measure counts.
  void OnEvent(const Event& event) {
    std::string_view measure;
    double value = 0;
    for (const KeyValue& pair : event.str) {
      if (pair.key == "measure") measure = pair.value;
      if (pair.key == "value") value = std::strtod(pair.value.c_str(), nullptr);
    }
    const auto* const at = std::find(kSpeedNames.begin(), kSpeedNames.end(), measure);
    if (at != kSpeedNames.end() && std::isfinite(value) && value > 0)
      values_[static_cast<size_t>(at - kSpeedNames.begin())] = value;
  }

  double value(Speed of) const { return values_[static_cast<size_t>(of)]; }  // 0 = none is set

  template <class A>
  void Fields(A& a) {
    a(values_);
  }

 private:
  std::array<double, kSpeedNames.size()> values_{};
};

}  // namespace rankscope::windows
