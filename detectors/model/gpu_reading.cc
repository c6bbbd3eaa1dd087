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

bool TellsBytes(const GpuReading& reading) {
  return reading.pcie_received_bytes || reading.pcie_sent_bytes || reading.nvlink_received_bytes ||
         reading.nvlink_sent_bytes;
}

void FillFrom(const GpuProfile& profile, bool with_bytes, GpuReading& reading) {
  // While another profiler has the counters, and after some Xids until DCGM is restarted, DCGM says
  // 0 of all units (NVIDIA/DCGM#303). Units that do nothing while the driver sees the card at work
  // are that, or of the time before it began to work.
  constexpr double kWorks = 0.05;
  const bool nothing = profile.sm_active.value_or(0) == 0 && profile.engine_active.value_or(0) == 0;
  if (nothing && reading.engine_active.value_or(0) > kWorks) return;
  const auto fill = [&reading](GpuValue& own, GpuValue other) {
    if (own || !other) return;
    own = other;
    reading.dcgm = true;
  };
  fill(reading.engine_active, profile.engine_active);
  fill(reading.sm_active, profile.sm_active);
  fill(reading.sm_occupancy, profile.sm_occupancy);
  fill(reading.dram_active, profile.dram_active);
  fill(reading.pipe_active[0], profile.tensor_active);  // by place in kGpuPipes
  fill(reading.pipe_active[4], profile.fp64_active);
  fill(reading.pipe_active[5], profile.fp32_active);
  fill(reading.pipe_active[6], profile.fp16_active);
  if (!with_bytes) return;
  fill(reading.pcie_received_bytes, profile.pcie_received_bytes);
  fill(reading.pcie_sent_bytes, profile.pcie_sent_bytes);
  fill(reading.nvlink_received_bytes, profile.nvlink_received_bytes);
  fill(reading.nvlink_sent_bytes, profile.nvlink_sent_bytes);
}

}  // namespace rankscope
