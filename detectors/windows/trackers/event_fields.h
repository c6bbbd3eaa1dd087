// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The values of an event by name. Any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "detectors/model/observation.h"

namespace rankscope::windows {

// Empty where there is none.
inline std::string_view TextOf(const Event& event, std::string_view key) {
  for (const KeyValue& pair : event.str) {
    if (pair.key == key) return pair.value;
  }
  return {};
}

// NaN where there is none.
inline double NumberOrNan(const Event& event, std::string_view key) {
  for (const IntKeyValue& pair : event.num) {
    if (pair.key == key) return static_cast<double>(pair.value);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// 0 where there is none.
inline int64_t NumberOf(const Event& event, std::string_view key) {
  for (const IntKeyValue& pair : event.num) {
    if (pair.key == key) return pair.value;
  }
  return 0;
}

}  // namespace rankscope::windows
