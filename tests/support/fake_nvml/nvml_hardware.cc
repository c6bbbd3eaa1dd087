// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Functions that say how a device is.

#include "tests/support/fake_nvml/state.h"

using namespace fake_nvml;  // NOLINT: the symbols are C's
using abi::Device;
using abi::Return;

extern "C" {

Return nvmlDeviceGetMemoryErrorCounter(Device device, uint32_t type, uint32_t scope,
                                       uint32_t location, uint64_t* count) {
  return Give(device, __func__, Key("ecc", type, scope, location), count);
}

Return nvmlDeviceGetTotalEccErrors(Device device, uint32_t type, uint32_t scope, uint64_t* count) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  bool known = false;
  *count = 0;
  for (uint32_t location = 0; location < 8; ++location) {
    const auto part = call.Get(Key("ecc", type, scope, location));
    known = known || part.has_value();
    *count += part.value_or(0);
  }
  return known ? abi::kSuccess : abi::kNotSupported;
}

Return nvmlDeviceGetEccMode(Device device, uint32_t* now, uint32_t* pending) {
  *pending = 1;
  return Give(device, __func__, "ecc_mode", now);
}

Return nvmlDeviceGetRemappedRows(Device device, uint32_t* correctable, uint32_t* uncorrectable,
                                 uint32_t* pending, uint32_t* failed) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  const auto first = call.Get("remapped_correctable");
  if (!first) return abi::kNotSupported;
  *correctable = static_cast<uint32_t>(*first);
  *uncorrectable = static_cast<uint32_t>(call.Get("remapped_uncorrectable").value_or(0));
  *pending = static_cast<uint32_t>(call.Get("remap_pending").value_or(0));
  *failed = static_cast<uint32_t>(call.Get("remap_failed").value_or(0));
  return abi::kSuccess;
}

Return nvmlDeviceGetRowRemapperHistogram(Device device, abi::RowRemapperHistogram* banks) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  if (!call.Get("remap_bank_0")) return abi::kNotSupported;
  const auto bank = [&call](int number) {
    return static_cast<uint32_t>(call.Get(Key("remap_bank", number)).value_or(0));
  };
  *banks = {bank(0), bank(1), bank(2), bank(3), bank(4)};
  return abi::kSuccess;
}

Return nvmlDeviceGetNvLinkState(Device device, uint32_t link, uint32_t* active) {
  return Give(device, __func__, Key("nvlink_state", link), active);
}

Return nvmlDeviceGetNvLinkErrorCounter(Device device, uint32_t link, uint32_t kind,
                                       uint64_t* count) {
  return Give(device, __func__, Key("nvlink_error", link, kind), count);
}

Return nvmlDeviceGetGridLicensableFeatures_v4(Device device, abi::LicensableFeatures* licence) {
  *licence = {};
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  const auto licensed = call.Get("vgpu_licensed");
  if (!licensed) return abi::kSuccess;  // that nothing is to be licensed is no error
  licence->supported = 1;
  licence->count = 1;
  licence->features[0].licensed = static_cast<uint32_t>(*licensed);
  return abi::kSuccess;
}

Return nvmlDeviceGetGpuFabricInfoV(Device device, abi::FabricInfoV2* info) {
  if (info->version != abi::kFabricInfoV2) return abi::kArgumentVersionMismatch;
  return Give(device, __func__, "fabric_state", &info->state);
}

Return nvmlDeviceGetCurrPcieLinkGeneration(Device device, uint32_t* generation) {
  return Give(device, __func__, "pcie_generation", generation);
}

Return nvmlDeviceGetMaxPcieLinkGeneration(Device device, uint32_t* generation) {
  return Give(device, __func__, "pcie_generation_max", generation);
}

Return nvmlDeviceGetCurrPcieLinkWidth(Device device, uint32_t* width) {
  return Give(device, __func__, "pcie_width", width);
}

Return nvmlDeviceGetMaxPcieLinkWidth(Device device, uint32_t* width) {
  return Give(device, __func__, "pcie_width_max", width);
}

Return nvmlDeviceGetPcieReplayCounter(Device device, uint32_t* count) {
  return Give(device, __func__, "pcie_replays", count);
}

Return nvmlDeviceGetClockInfo(Device device, uint32_t domain, uint32_t* mhz) {
  return Give(device, __func__, Key("clock", domain), mhz);
}

Return nvmlDeviceGetMaxClockInfo(Device device, uint32_t domain, uint32_t* mhz) {
  return Give(device, __func__, Key("clock_max", domain), mhz);
}

Return nvmlDeviceGetTemperature(Device device, uint32_t, uint32_t* celsius) {
  return Give(device, __func__, "temperature", celsius);
}

Return nvmlDeviceGetTemperatureV(Device device, abi::TemperatureV1* temperature) {
  if (temperature->version != abi::kTemperatureV1) return abi::kArgumentVersionMismatch;
  return Give(device, __func__, "temperature", &temperature->celsius);
}

Return nvmlDeviceGetTemperatureThreshold(Device device, uint32_t threshold, uint32_t* celsius) {
  return Give(device, __func__, Key("threshold", threshold), celsius);
}

Return nvmlDeviceGetMarginTemperature(Device device, abi::MarginTemperatureV1* margin) {
  if (margin->version != abi::kMarginTemperatureV1) return abi::kArgumentVersionMismatch;
  return Give(device, __func__, "margin", &margin->celsius);
}

Return nvmlDeviceGetFanSpeed(Device device, uint32_t* percent) {
  return Give(device, __func__, "fan", percent);
}

Return nvmlDeviceGetPowerUsage(Device device, uint32_t* milliwatts) {
  return Give(device, __func__, "power", milliwatts);
}

Return nvmlDeviceGetEnforcedPowerLimit(Device device, uint32_t* milliwatts) {
  return Give(device, __func__, "power_limit_enforced", milliwatts);
}

Return nvmlDeviceGetPowerManagementDefaultLimit(Device device, uint32_t* milliwatts) {
  return Give(device, __func__, "power_limit_default", milliwatts);
}

Return nvmlDeviceGetPowerManagementLimitConstraints(Device device, uint32_t* least,
                                                    uint32_t* most) {
  *least = 100000;
  return Give(device, __func__, "power_limit_max", most);
}

Return nvmlDeviceGetTotalEnergyConsumption(Device device, uint64_t* millijoules) {
  return Give(device, __func__, "energy", millijoules);
}

Return nvmlDeviceGetPerformanceState(Device device, uint32_t* state) {
  return Give(device, __func__, "performance_state", state);
}

Return nvmlDeviceGetPersistenceMode(Device device, uint32_t* mode) {
  return Give(device, __func__, "persistence", mode);
}

Return nvmlDeviceGetComputeMode(Device device, uint32_t* mode) {
  return Give(device, __func__, "compute_mode", mode);
}

Return nvmlDeviceGetMigMode(Device device, uint32_t* now, uint32_t* pending) {
  *pending = 0;
  return Give(device, __func__, "mig_mode", now);
}

Return nvmlDeviceGetMaxMigDeviceCount(Device device, uint32_t* count) {
  const Call call(device, __func__);
  *count = 7;
  return call.result;
}

}  // extern "C"
