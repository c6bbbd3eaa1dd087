// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/gpu_reading.h"

namespace rankscope {

GpuHealth HealthOf(const GpuStatus& gpu) {
  if (gpu.state == GpuState::kLost) return GpuHealth::kLost;
  if (gpu.state == GpuState::kUnresponsive) return GpuHealth::kUnresponsive;
  const GpuReading& reading = gpu.reading;
  if (gpu.state == GpuState::kFailed || reading.remap_failed.value_or(0) > 0 ||
      reading.recovery_action.value_or(0) > 0) {
    return GpuHealth::kUnhealthy;
  }
  const bool uncorrected = reading.ecc_total[1][0].value_or(0) > 0;
  const bool pending =
      reading.remap_pending.value_or(0) > 0 || reading.retired_pending.value_or(0) > 0;
  const bool severe = (reading.throttle_bits.value_or(0) & kSevereThrottleBits) != 0;
  return uncorrected || pending || severe ? GpuHealth::kDegraded : GpuHealth::kHealthy;
}

}  // namespace rankscope
