// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Series under dcgm-exporter's names, of what is known of a GPU.
#include <cmath>
#include <optional>
#include <string>

#include "detectors/model/pci_card.h"
#include "exporter/metrics/snapshot_impl.h"

namespace rankscope::metrics {
namespace {

struct ValueRow {
  MetricId metric;
  GpuValue (*value)(const GpuReading& r);
};

// DCGM's are whole numbers but for power and ratios.
GpuValue Whole(GpuValue value, double factor) {
  if (!value) return std::nullopt;
  return std::floor(*value * factor + 1e-9);
}

constexpr double kPerMiB = 1.0 / (1 << 20);
constexpr double kPerMega = 1e-6;

constexpr ValueRow kValueRows[] = {
    {MetricNamed("DCGM_FI_DEV_SM_CLOCK"),
     [](const GpuReading& r) { return Whole(r.clock_hertz[1], kPerMega); }},
    {MetricNamed("DCGM_FI_DEV_MEM_CLOCK"),
     [](const GpuReading& r) { return Whole(r.clock_hertz[2], kPerMega); }},
    {MetricNamed("DCGM_FI_DEV_MEMORY_TEMP"),
     [](const GpuReading& r) { return r.memory_temperature_celsius; }},
    {MetricNamed("DCGM_FI_DEV_GPU_TEMP"),
     [](const GpuReading& r) { return r.temperature_celsius; }},
    {MetricNamed("DCGM_FI_DEV_POWER_USAGE"), [](const GpuReading& r) { return r.power_watts; }},
    {MetricNamed("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"),
     [](const GpuReading& r) { return Whole(r.energy_joules, 1000); }},
    {MetricNamed("DCGM_FI_DEV_PCIE_REPLAY_COUNTER"),
     [](const GpuReading& r) { return r.pcie_replays; }},
    {MetricNamed("DCGM_FI_DEV_GPU_UTIL"),
     [](const GpuReading& r) { return Whole(r.engine_active, 100); }},
    {MetricNamed("DCGM_FI_DEV_MEM_COPY_UTIL"),
     [](const GpuReading& r) { return Whole(r.memory_busy, 100); }},
    {MetricNamed("DCGM_FI_DEV_ENC_UTIL"),
     [](const GpuReading& r) { return Whole(r.encoder_active, 100); }},
    {MetricNamed("DCGM_FI_DEV_DEC_UTIL"),
     [](const GpuReading& r) { return Whole(r.decoder_active, 100); }},
    {MetricNamed("DCGM_FI_DEV_FB_FREE"),
     [](const GpuReading& r) { return Whole(r.memory_free_bytes, kPerMiB); }},
    {MetricNamed("DCGM_FI_DEV_FB_USED"),
     [](const GpuReading& r) { return Whole(r.memory_used_bytes, kPerMiB); }},
    {MetricNamed("DCGM_FI_DEV_FB_RESERVED"),
     [](const GpuReading& r) { return Whole(r.memory_reserved_bytes, kPerMiB); }},
    {MetricNamed("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"),
     [](const GpuReading& r) { return r.remapped_uncorrectable; }},
    {MetricNamed("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"),
     [](const GpuReading& r) { return r.remapped_correctable; }},
    {MetricNamed("DCGM_FI_DEV_ROW_REMAP_FAILURE"),
     [](const GpuReading& r) { return r.remap_failed; }},
    // The driver's own sample is another number than the counter of this name.
    {MetricNamed("DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
     [](const GpuReading& r) { return r.gpm ? r.engine_active : std::nullopt; }},
    {MetricNamed("DCGM_FI_PROF_SM_ACTIVE"), [](const GpuReading& r) { return r.sm_active; }},
    {MetricNamed("DCGM_FI_PROF_SM_OCCUPANCY"), [](const GpuReading& r) { return r.sm_occupancy; }},
    {MetricNamed("DCGM_FI_PROF_DRAM_ACTIVE"), [](const GpuReading& r) { return r.dram_active; }},
    // By place in kGpuPipes.
    {MetricNamed("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
     [](const GpuReading& r) { return r.pipe_active[0]; }},
    {MetricNamed("DCGM_FI_PROF_PIPE_FP64_ACTIVE"),
     [](const GpuReading& r) { return r.pipe_active[4]; }},
    {MetricNamed("DCGM_FI_PROF_PIPE_FP32_ACTIVE"),
     [](const GpuReading& r) { return r.pipe_active[5]; }},
    {MetricNamed("DCGM_FI_PROF_PIPE_FP16_ACTIVE"),
     [](const GpuReading& r) { return r.pipe_active[6]; }},
};

// Absent where nobody reads the kernel's log.
GpuValue NewestXid(const AgentStatus& agent, const GpuStatus& gpu) {
  if (gpu.identity.bus_id.empty()) return std::nullopt;  // never polled: its address is not known
  const std::string card = PciCard(gpu.identity.bus_id);
  GpuValue code;
  double newest = -1;
  for (const SourceStatus& source : agent.sources) {
    if (source.name == "kmsg" && source.state == Availability::kUp && !code) code = 0;
    for (const XidStatus& xid : source.xids) {
      if (xid.card != card || !(xid.last_wall_seconds > newest)) continue;
      newest = xid.last_wall_seconds;
      code = xid.code;
    }
  }
  return code;
}

}  // namespace

void SnapshotBuilder::Impl::AddDcgmNames(const AgentStatus& agent, const GpuStatus& gpu) {
  const GpuIdentity& who = gpu.identity;
  const std::string index = std::to_string(who.index);
  // By the driver's order, which is that of the device files except on machines configured
  // otherwise.
  const LabelPointer labels =
      agent_labels.Get(kDcgmLabels, {index, who.uuid, who.bus_id,
                                     "nvidia" + (who.minor < 0 ? index : std::to_string(who.minor)),
                                     who.model, agent.node, who.driver});
  if (const GpuValue xid = NewestXid(agent, gpu))
    Add(MetricNamed("DCGM_FI_DEV_XID_ERRORS"), labels, *xid);
  if (gpu.state != GpuState::kUp) return;
  for (const ValueRow& row : kValueRows) {
    if (const GpuValue value = row.value(gpu.reading)) Add(row.metric, labels, *value);
  }
}

}  // namespace rankscope::metrics
