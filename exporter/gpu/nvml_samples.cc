// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/nvml_samples.h"

#include <algorithm>
#include <iterator>

namespace rankscope::collectors::nvml {
namespace {

struct SignalRow {
  SignalId signal;
  GpuValue (*value)(const GpuReading& r);
};

GpuValue AllLinkErrors(const GpuReading& r) {
  GpuValue sum;
  for (const GpuValue& errors : r.nvlink_errors) {
    if (errors) sum = sum.value_or(0) + *errors;
  }
  return sum;
}

GpuValue ThrottleBits(const GpuReading& r) {
  if (!r.throttle_bits) return std::nullopt;
  return static_cast<double>(*r.throttle_bits);
}

// For heat or want of power. The hardware's slowdown is of one of the two, and on some GPUs all
// that is told.
GpuValue SevereSeconds(const GpuReading& r) {
  const auto& by = r.throttled_seconds;  // 3 hw_slowdown, 5 sw, 6 hw_thermal, 7 power brake
  if (!r.throttle_bits && !by[6] && !r.thermal_throttled_seconds) return std::nullopt;
  const double heat = r.thermal_throttled_seconds.value_or(by[5].value_or(0) + by[6].value_or(0));
  return std::max(heat + by[7].value_or(0), by[3].value_or(0));
}

constexpr SignalRow kLevels[] = {
    {SignalId::kEngineActivity, [](const GpuReading& r) { return r.engine_active; }},
    {SignalId::kSmActivity, [](const GpuReading& r) { return r.sm_active; }},
    {SignalId::kTensorActivity, [](const GpuReading& r) { return r.pipe_active[0]; }},
    {SignalId::kDramActivity, [](const GpuReading& r) { return r.dram_active; }},
    {SignalId::kFramebufferUsedBytes, [](const GpuReading& r) { return r.memory_used_bytes; }},
    {SignalId::kFramebufferTotalBytes, [](const GpuReading& r) { return r.memory_total_bytes; }},
    {SignalId::kSmOccupancy, [](const GpuReading& r) { return r.sm_occupancy; }},
    {SignalId::kMemoryBusy, [](const GpuReading& r) { return r.memory_busy; }},
    {SignalId::kGpuPowerWatts, [](const GpuReading& r) { return r.power_watts; }},
    {SignalId::kGpuPowerLimitWatts, [](const GpuReading& r) { return r.power_limit_watts[0]; }},
    {SignalId::kGpuTemperatureCelsius, [](const GpuReading& r) { return r.temperature_celsius; }},
    {SignalId::kGpuMemoryTemperatureCelsius,
     [](const GpuReading& r) { return r.memory_temperature_celsius; }},
    {SignalId::kSmClockHertz, [](const GpuReading& r) { return r.clock_hertz[1]; }},
    {SignalId::kMemoryClockHertz, [](const GpuReading& r) { return r.clock_hertz[2]; }},
    {SignalId::kThrottleReasons, ThrottleBits},
    {SignalId::kEccCorrected, [](const GpuReading& r) { return r.ecc_total[0][0]; }},
    {SignalId::kEccUncorrected, [](const GpuReading& r) { return r.ecc_total[1][0]; }},
    {SignalId::kRowRemapsPending, [](const GpuReading& r) { return r.remap_pending; }},
    {SignalId::kRowRemapsFailed, [](const GpuReading& r) { return r.remap_failed; }},
    {SignalId::kRowRemapsUncorrectable,
     [](const GpuReading& r) { return r.remapped_uncorrectable; }},
    {SignalId::kNvlinkErrors, AllLinkErrors},
    {SignalId::kPcieReplays, [](const GpuReading& r) { return r.pcie_replays; }},
};

constexpr SignalRow kTotals[] = {
    {SignalId::kGpuEnergyJoules, [](const GpuReading& r) { return r.energy_joules; }},
    {SignalId::kThrottledSeconds, SevereSeconds},
    {SignalId::kNvlinkReceivedBytes, [](const GpuReading& r) { return r.nvlink_received_bytes; }},
    {SignalId::kNvlinkSentBytes, [](const GpuReading& r) { return r.nvlink_sent_bytes; }},
    {SignalId::kPcieReceivedBytes, [](const GpuReading& r) { return r.pcie_received_bytes; }},
    {SignalId::kPcieSentBytes, [](const GpuReading& r) { return r.pcie_sent_bytes; }},
};

}  // namespace

double Samples::Rising::Add(double value) {
  if (last) total += value >= *last ? value - *last : value;
  last = value;
  return total;
}

SampleBatch Samples::Of(const GpuStatus& gpu) {
  static_assert(std::size(kTotals) == kRising);
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kGpu;
  batch.subject.name = gpu.identity.uuid;
  for (const SignalRow& row : kLevels) {
    if (const GpuValue value = row.value(gpu.reading))
      batch.samples.push_back({row.signal, *value});
  }
  for (size_t i = 0; i < kRising; ++i) {
    if (const GpuValue value = kTotals[i].value(gpu.reading))
      batch.samples.push_back({kTotals[i].signal, rising_[i].Add(*value)});
  }
  return batch;
}

}  // namespace rankscope::collectors::nvml
