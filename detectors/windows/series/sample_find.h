// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reading a batch and an event by name. Pure; any thread.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "detectors/model/observation.h"

namespace rankscope::windows {

// A number that is one; none of these signals is ever below 0.
inline std::optional<double> FindSample(const SampleBatch& batch, SignalId signal) {
  for (const Sample& sample : batch.samples) {
    if (sample.signal == signal && std::isfinite(sample.value) && sample.value >= 0)
      return sample.value;
  }
  return std::nullopt;
}

// NaN where the event does not say.
inline double NumberOf(const Event& event, std::string_view key) {
  for (const IntKeyValue& pair : event.num) {
    if (pair.key == key) return static_cast<double>(pair.value);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

inline std::string_view TextOf(const Event& event, std::string_view key) {
  for (const KeyValue& pair : event.str) {
    if (pair.key == key) return pair.value;
  }
  return {};
}

}  // namespace rankscope::windows
