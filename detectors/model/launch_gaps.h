// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The histogram of a rank's gaps between launches: where its buckets end, and which signals carry
// them. Powers of two of a second are exact in every notation of a bound. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "detectors/model/signals.h"

namespace rankscope {

// A gap of exactly a bound's length is in its bucket: 2^-10 s = 1 ms to 2^6 s = 64 s.
inline constexpr auto kLaunchGapBounds = [] {
  std::array<double, 17> bounds{};
  double bound = 1.0 / 1024;
  for (double& each : bounds) {
    each = bound;
    bound *= 2;
  }
  return bounds;
}();

// One for each bound, with the gaps beyond the one before; and one for the longer ones.
inline constexpr size_t kLaunchGapSlots = kLaunchGapBounds.size() + 1;
using LaunchGapCounts = std::array<double, kLaunchGapSlots>;

constexpr SignalId LaunchGapSignal(size_t slot) {
  return static_cast<SignalId>(static_cast<size_t>(SignalId::kLaunchGaps1Ms) + slot);
}
static_assert(LaunchGapSignal(kLaunchGapSlots - 1) == SignalId::kLaunchGapsLonger);

constexpr std::optional<size_t> LaunchGapSlot(SignalId signal) {
  if (signal < SignalId::kLaunchGaps1Ms || signal > SignalId::kLaunchGapsLonger)
    return std::nullopt;
  return static_cast<size_t>(signal) - static_cast<size_t>(SignalId::kLaunchGaps1Ms);
}

}  // namespace rankscope
