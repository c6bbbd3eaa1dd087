// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/nvml_reset.h"

#include <utility>

namespace rankscope::collectors::nvml {
namespace {

bool Fell(const GpuValue& before, const GpuValue& now) {
  return before && now && *now < *before;
}

bool AnyFell(const GpuReading& before, const GpuReading& now) {
  constexpr size_t kVolatile = 0;
  bool fell = Fell(before.pcie_replays, now.pcie_replays);
  for (size_t kind = 0; kind < before.ecc_total.size(); ++kind)
    fell = fell || Fell(before.ecc_total[kind][kVolatile], now.ecc_total[kind][kVolatile]);
  for (size_t kind = 0; kind < before.nvlink_errors.size(); ++kind)
    fell = fell || Fell(before.nvlink_errors[kind], now.nvlink_errors[kind]);
  return fell;
}

}  // namespace

ResetWatch::Sign ResetWatch::Of(const GpuStatus& gpu) {
  if (gpu.state == GpuState::kLost) lost_ = true;
  if (gpu.state != GpuState::kUp) return Sign::kNone;
  const GpuReading before = std::exchange(last_, gpu.reading);
  const bool lost = std::exchange(lost_, false);
  const GpuValue asked = asked_;
  if (gpu.reading.recovery_action) asked_ = gpu.reading.recovery_action;
  const bool energy = Fell(before.energy_joules, gpu.reading.energy_joules);
  if (lost && (energy || AnyFell(before, gpu.reading))) return Sign::kReturned;
  if (asked.value_or(0) != 0 && gpu.reading.recovery_action == 0.0) return Sign::kSettled;
  if (energy) return Sign::kReset;
  return gpu.reading.recovery_action == 0.0 ? Sign::kNothingAsked : Sign::kNone;
}

}  // namespace rankscope::collectors::nvml
