// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The rows of the catalogue that have the names, units and labels of NVIDIA's dcgm-exporter (its
// etc/default-counters.csv, 4.x), so that dashboards and alerts made for it go on: shown with
// metrics.dcgm_names only, of what is known. Sorted by name; catalog.h merges them with the rest.
// Not among them: DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL, whose unit NVIDIA does not document, and
// DCGM_FI_PROF_PCIE_*_BYTES, which are rates under a counter's type. Any thread.
#pragma once

#include <array>

#include "exporter/metrics/metric_row.h"

namespace rankscope::metrics {

inline constexpr std::string_view kDcgmLabels =
    "gpu,UUID,pci_bus_id,device,modelName,Hostname,DCGM_FI_DRIVER_VERSION";

constexpr MetricRow DcgmRow(std::string_view name, std::string_view help,
                            MetricType type = MetricType::kGauge) {
  return {name, type, "", help, kDcgmLabels, Keep::kGpuDetail, Profile::kDcgmNames};
}

inline constexpr std::array kDcgmRows = {
    DcgmRow("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
            "Rows of memory replaced for errors that could be corrected.", MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_DEC_UTIL", "Use of the video decoder, percent."),
    DcgmRow("DCGM_FI_DEV_ENC_UTIL", "Use of the video encoder, percent."),
    DcgmRow("DCGM_FI_DEV_FB_FREE", "Free memory of the card, MiB."),
    DcgmRow("DCGM_FI_DEV_FB_RESERVED", "Memory of the card that its driver keeps, MiB."),
    DcgmRow("DCGM_FI_DEV_FB_USED", "Used memory of the card, MiB."),
    DcgmRow("DCGM_FI_DEV_GPU_TEMP", "Temperature of the die, degrees Celsius."),
    DcgmRow("DCGM_FI_DEV_GPU_UTIL", "Share of the time in which anything ran, percent."),
    DcgmRow("DCGM_FI_DEV_MEMORY_TEMP", "Temperature of the memory, degrees Celsius."),
    DcgmRow("DCGM_FI_DEV_MEM_CLOCK", "Clock of the memory, MHz."),
    DcgmRow("DCGM_FI_DEV_MEM_COPY_UTIL",
            "Share of the time in which memory was read or written, percent."),
    DcgmRow("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "Packets on PCIe that had to be repeated.",
            MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_POWER_USAGE", "Power that the card draws, W."),
    DcgmRow("DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether a bad row could not be replaced."),
    DcgmRow("DCGM_FI_DEV_SM_CLOCK", "Clock of the multiprocessors, MHz."),
    DcgmRow("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Energy used since the driver's load, mJ.",
            MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
            "Rows of memory replaced for errors that could not be corrected.",
            MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_XID_ERRORS",
            "The newest Xid of the card in the kernel's log, 0 if there was none."),
    DcgmRow("DCGM_FI_PROF_DRAM_ACTIVE", "Share of the memory's bandwidth that is used."),
    DcgmRow("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Share of the time in which the engine was on."),
    DcgmRow("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "Share of the peak of the FP16 units."),
    DcgmRow("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "Share of the peak of the FP32 units."),
    DcgmRow("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "Share of the peak of the FP64 units."),
    DcgmRow("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Share of the peak of the tensor cores."),
    DcgmRow("DCGM_FI_PROF_SM_ACTIVE", "Share of the multiprocessors' time with work."),
    DcgmRow("DCGM_FI_PROF_SM_OCCUPANCY", "Warps resident on multiprocessors, of the most."),
};

}  // namespace rankscope::metrics
