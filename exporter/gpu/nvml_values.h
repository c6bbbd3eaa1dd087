// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of NVML that are none: its own "not available" is the widest unsigned value, management
// software below it hands through "blank" values (2^31-16, 2^63-16 and 2^47 and the few above
// them), and hardware counters without a time to divide by give NaN. Any thread.
#pragma once

#include <cmath>
#include <cstdint>

#include "detectors/model/gpu_reading.h"
#include "exporter/gpu/nvml_abi.h"

namespace rankscope::collectors::nvml {

inline GpuValue Known(uint32_t value) {
  constexpr uint32_t kBlank = 0x7FFFFFF0;
  if (value >= kBlank) return std::nullopt;
  return static_cast<double>(value);
}

inline GpuValue Known(uint64_t value) {
  constexpr uint64_t kBlank = 0x7FFFFFFFFFFFFFF0;
  if (value >= kBlank) return std::nullopt;
  return static_cast<double>(value);
}

inline GpuValue Known(double value) {
  constexpr double kBlank = 140737488355328.0;
  if (!std::isfinite(value) || value < 0 || value >= kBlank) return std::nullopt;
  return value;
}

inline GpuValue Times(GpuValue value, double factor) {
  if (value) *value *= factor;
  return value;
}

// Degrees; what no GPU survives is no temperature.
inline GpuValue Degrees(GpuValue value) {
  constexpr double kAbsurd = 1000;
  if (value && std::abs(*value) > kAbsurd) return std::nullopt;
  return value;
}

// Percent as a ratio. A MIG slice may read a little above 100.
inline GpuValue Ratio(GpuValue percent) {
  constexpr double kAbsurd = 1000;
  if (percent && *percent > kAbsurd) return std::nullopt;
  return Times(percent, 0.01);
}

inline GpuValue FieldNumber(const FieldValue& field) {
  if (field.status != kSuccess) return std::nullopt;
  switch (field.type) {
    case kDouble:
      return Known(field.value.d);
    case kUnsignedInt:
      return Known(field.value.u);
    case kUnsignedLong:
    case kUnsignedLongLong:
      return Known(field.value.ull);
    case kSignedInt:
      return field.value.i < 0 ? std::nullopt : Known(static_cast<uint32_t>(field.value.i));
    case kSignedLongLong:
      return field.value.sll < 0 ? std::nullopt : Known(static_cast<uint64_t>(field.value.sll));
  }
  return std::nullopt;  // of a type that is yet to come
}

}  // namespace rankscope::collectors::nvml
