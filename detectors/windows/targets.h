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
#include <utility>

#include "detectors/model/observation.h"
#include "detectors/model/speeds.h"

namespace rankscope::windows {

class Targets {
 public:
  // An event of type kTarget: `measure`, a name of kSpeedNames, `value`, a number above 0, and
  // `partition` where it is the site's for that partition. The newest of each measure counts; what
  // the user says stands instead of all that the site says.
  void OnEvent(const Event& event) {
    std::string_view measure;
    double value = 0;
    std::string partition;
    for (const KeyValue& pair : event.str) {
      if (pair.key == "measure") measure = pair.value;
      if (pair.key == "value") value = std::strtod(pair.value.c_str(), nullptr);
      if (pair.key == "partition") partition = pair.value;
    }
    const auto* const at = std::find(kSpeedNames.begin(), kSpeedNames.end(), measure);
    if (at == kSpeedNames.end() || !std::isfinite(value) || !(value > 0)) return;
    if (!partition.empty() && users_) return;
    // A job that moves to another partition leaves the targets of the first behind.
    if (partition != partition_) values_ = {};
    users_ = partition.empty();
    partition_ = std::move(partition);
    values_[static_cast<size_t>(at - kSpeedNames.begin())] = value;
  }

  // Of the site's; empty: the user's.
  const std::string& partition() const { return partition_; }

  double value(Speed of) const { return values_[static_cast<size_t>(of)]; }  // 0 = none is set

  template <class A>
  void Fields(A& a) {
    a(values_, users_, partition_);
  }

 private:
  std::array<double, kSpeedNames.size()> values_{};
  bool users_ = false;
  std::string partition_;
};

}  // namespace rankscope::windows
