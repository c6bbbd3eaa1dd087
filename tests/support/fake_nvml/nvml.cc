// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Functions that say what a device does.

#include <algorithm>
#include <cstring>

#include "tests/support/fake_nvml/state.h"

using namespace fake_nvml;  // NOLINT: the symbols are C's
using abi::Device;
using abi::GpmSample;
using abi::Return;

namespace {

// What a sample remembers: whose it is. The metrics are those of the script's now.
struct Sample {
  Device device = nullptr;
  double taken = -1;
  int64_t gpu_instance = -1;  // -1: of the whole
};

Return GivePercent(Device device, const char* function, const char* key, uint32_t* percent,
                   uint32_t* period_us) {
  *period_us = 1000000;
  return Give(device, function, key, percent);
}

std::optional<double> OfPart(const Gpu& gpu, int64_t gpu_instance, const std::string& key) {
  for (const MigPart& part : gpu.parts) {
    const auto found = part.counters.find(key);
    if (part.gpu_instance == gpu_instance && found != part.counters.end()) return found->second;
  }
  return std::nullopt;
}

// Entries as long as the script says, as drivers have had them.
Return GiveProcesses(Device device, const char* function, bool compute, uint32_t* room, void* out) {
  const Call call(device, function);
  if (call.fails()) return call.result;
  const std::vector<Process>& all = compute ? call.gpu->compute : call.gpu->graphics;
  const uint32_t asked = *room;
  *room = static_cast<uint32_t>(all.size());
  if (asked < all.size()) return abi::kInsufficientSize;
  struct Longest {
    uint32_t pid;
    uint32_t padding;
    uint64_t bytes;
    uint32_t gpu_instance, compute_instance;
    uint64_t protected_bytes;
  };
  char* entry = static_cast<char*>(out);
  for (const Process& process : all) {
    const Longest longest{process.pid, 0, process.bytes, UINT32_MAX, UINT32_MAX, 0};
    std::memcpy(entry, &longest, call.script->process_bytes);
    entry += call.script->process_bytes;
  }
  return abi::kSuccess;
}

}  // namespace

extern "C" {

Return nvmlDeviceGetMemoryInfo_v2(Device device, abi::MemoryV2* memory) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  if (memory->version != abi::kMemoryV2) return abi::kArgumentVersionMismatch;
  const auto total = call.Get("memory_total");
  const auto used = call.Get("memory_used");
  const auto reserved = call.Get("memory_reserved");
  if (!total || !used || !reserved) return abi::kNotSupported;
  memory->total = *total;
  memory->used = *used;
  memory->reserved = *reserved;
  memory->free = call.Get("memory_free").value_or(*total - *used - *reserved);
  return abi::kSuccess;
}

Return nvmlDeviceGetMemoryInfo(Device device, abi::Memory* memory) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  if (call.part != nullptr) {
    *memory = {call.part->total, call.part->total - call.part->used, call.part->used};
    return abi::kSuccess;
  }
  const auto total = call.Get("memory_total");
  const auto used = call.Get("memory_used");
  if (!total || !used) return abi::kNotSupported;
  const uint64_t reserved = call.Get("memory_reserved").value_or(0);
  *memory = {*total, *total - *used - reserved, *used + reserved};
  return abi::kSuccess;
}

Return nvmlDeviceGetBAR1MemoryInfo(Device device, abi::Bar1Memory* memory) {
  memory->total = 137438953472;
  memory->free = 0;
  return Give(device, __func__, "bar1_used", &memory->used);
}

Return nvmlDeviceGetUtilizationRates(Device device, abi::Utilization* busy) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  const auto gpu = call.Get("gpu_utilization");
  const auto memory = call.Get("memory_utilization");
  if (!gpu || !memory) return abi::kNotSupported;
  *busy = {static_cast<uint32_t>(*gpu), static_cast<uint32_t>(*memory)};
  return abi::kSuccess;
}

Return nvmlDeviceGetEncoderUtilization(Device device, uint32_t* percent, uint32_t* period_us) {
  return GivePercent(device, __func__, "encoder_utilization", percent, period_us);
}

Return nvmlDeviceGetDecoderUtilization(Device device, uint32_t* percent, uint32_t* period_us) {
  return GivePercent(device, __func__, "decoder_utilization", percent, period_us);
}

Return nvmlGpmQueryDeviceSupport(Device device, abi::GpmSupport* support) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  if (support->version != abi::kGpmSupportVersion) return abi::kArgumentVersionMismatch;
  support->supported = call.GetReal("gpm_1") ? 1 : 0;
  return abi::kSuccess;
}

Return nvmlGpmSampleAlloc(GpmSample* sample) {
  *sample = reinterpret_cast<GpmSample>(new Sample);
  return abi::kSuccess;
}

Return nvmlGpmSampleFree(GpmSample sample) {
  delete reinterpret_cast<Sample*>(sample);
  return abi::kSuccess;
}

Return nvmlGpmSampleGet(Device device, GpmSample sample) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  if (!call.GetReal("gpm_1") || call.Get("mig_mode") == 1) return abi::kNotSupported;
  *reinterpret_cast<Sample*>(sample) = {device, Seconds()};
  return abi::kSuccess;
}

Return nvmlGpmMigSampleGet(Device device, uint32_t gpu_instance, GpmSample sample) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  for (const MigPart& part : call.gpu->parts) {
    if (part.gpu_instance != gpu_instance) continue;
    *reinterpret_cast<Sample*>(sample) = {device, Seconds(), gpu_instance};
    return abi::kSuccess;
  }
  return abi::kInvalidArgument;
}

Return nvmlGpmMetricsGet(abi::GpmMetricsGet* metrics) {
  if (metrics->version != abi::kGpmMetricsVersion) return abi::kArgumentVersionMismatch;
  const Sample& first = *reinterpret_cast<const Sample*>(metrics->first);
  const Sample& second = *reinterpret_cast<const Sample*>(metrics->second);
  if (first.device == nullptr || first.device != second.device || first.taken >= second.taken ||
      first.gpu_instance != second.gpu_instance)
    return abi::kInvalidArgument;
  const Call call(second.device, __func__);
  if (call.fails()) return call.result;
  for (uint32_t i = 0; i < metrics->count; ++i) {
    abi::GpmMetric& metric = metrics->metrics[i];
    const std::string key = Key("gpm", metric.id);
    const auto value =
        second.gpu_instance < 0 ? call.GetReal(key) : OfPart(*call.gpu, second.gpu_instance, key);
    metric.status = value ? abi::kSuccess : abi::kNotSupported;
    metric.value = value.value_or(0);
  }
  return abi::kSuccess;
}

Return nvmlDeviceGetFieldValues(Device device, int32_t count, abi::FieldValue* values) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  for (int32_t i = 0; i < count; ++i) {
    abi::FieldValue& value = values[i];
    auto number = call.Get(Key("field", value.field, value.scope));
    if (!number) number = call.Get(Key("field", value.field));
    if (const uint32_t policy = value.field - abi::kFieldFirstViolationNs; !number && policy < 6)
      number = call.Get(Key("violation", policy));
    value.status = number ? abi::kSuccess : abi::kNotSupported;
    value.type = abi::kUnsignedLongLong;
    value.value.ull = number.value_or(0);
  }
  return abi::kSuccess;
}

Return nvmlDeviceGetCurrentClocksEventReasons(Device device, uint64_t* bits) {
  return Give(device, __func__, "throttle_bits", bits);
}

Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, uint64_t* bits) {
  return Give(device, __func__, "throttle_bits", bits);
}

Return nvmlDeviceGetViolationStatus(Device device, uint32_t policy, abi::ViolationTime* time) {
  time->reference_us = 0;
  return Give(device, __func__, Key("violation", policy), &time->violation_ns);
}

Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, uint32_t* count, void* out) {
  return GiveProcesses(device, __func__, true, count, out);
}

Return nvmlDeviceGetComputeRunningProcesses(Device device, uint32_t* count, void* out) {
  return GiveProcesses(device, __func__, true, count, out);
}

Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, uint32_t* count, void* out) {
  return GiveProcesses(device, __func__, false, count, out);
}

}  // extern "C"
