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

constexpr MetricRow DcgmRow(std::string_view name, HelpText help,
                            MetricType type = MetricType::kGauge) {
  return {name, type, "", help, kDcgmLabels, Keep::kDcgm, Profile::kDcgmNames};
}

inline constexpr std::array kDcgmRows = {
    DcgmRow("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
            "Number of the GPU's memory rows remapped for correctable errors.",
            MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_DEC_UTIL", "Utilization of the GPU's video decoder in percent."),
    DcgmRow("DCGM_FI_DEV_ENC_UTIL", "Utilization of the GPU's video encoder in percent."),
    DcgmRow("DCGM_FI_DEV_FB_FREE", "Free memory of the GPU in MiB."),
    DcgmRow("DCGM_FI_DEV_FB_RESERVED", "Memory of the GPU that its driver reserves, in MiB."),
    DcgmRow("DCGM_FI_DEV_FB_USED", "Used memory of the GPU in MiB."),
    DcgmRow("DCGM_FI_DEV_GPU_TEMP", "Temperature of the GPU's die in degrees Celsius."),
    DcgmRow("DCGM_FI_DEV_GPU_UTIL",
            "Share of the time in which any work ran on the GPU, in percent."),
    DcgmRow("DCGM_FI_DEV_MEMORY_TEMP", "Temperature of the GPU's memory in degrees Celsius."),
    DcgmRow("DCGM_FI_DEV_MEM_CLOCK", "Clock of the GPU's memory in MHz."),
    DcgmRow("DCGM_FI_DEV_MEM_COPY_UTIL",
            "Share of the time in which the GPU's memory was read or written, in percent."),
    DcgmRow("DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
            "Number of PCIe packets that the GPU or its link partner had to resend.",
            MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_POWER_USAGE", "Current power draw of the GPU in watts."),
    DcgmRow("DCGM_FI_DEV_ROW_REMAP_FAILURE",
            "Whether a defective memory row of the GPU could not be remapped."),
    DcgmRow("DCGM_FI_DEV_SM_CLOCK", "Clock of the GPU's multiprocessors in MHz."),
    DcgmRow("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
            "Energy used by the GPU since its driver was loaded, in mJ.", MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
            "Number of the GPU's memory rows remapped for uncorrectable errors.",
            MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_XID_ERRORS",
            "Code of the GPU's newest Xid error in the kernel log, or 0 if there was none."),
    DcgmRow("DCGM_FI_PROF_DRAM_ACTIVE",
            "Share of the peak bandwidth of the GPU's memory that is used."),
    DcgmRow("DCGM_FI_PROF_GR_ENGINE_ACTIVE",
            "Share of the time in which the GPU's graphics or compute engine was active."),
    DcgmRow("DCGM_FI_PROF_PIPE_FP16_ACTIVE",
            "Share of the GPU's cycles in which its FP16 units were active."),
    DcgmRow("DCGM_FI_PROF_PIPE_FP32_ACTIVE",
            "Share of the GPU's cycles in which its FP32 units were active."),
    DcgmRow("DCGM_FI_PROF_PIPE_FP64_ACTIVE",
            "Share of the GPU's cycles in which its FP64 units were active."),
    DcgmRow("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
            "Share of the GPU's cycles in which its tensor cores were active."),
    DcgmRow("DCGM_FI_PROF_SM_ACTIVE",
            "Share of the time in which the GPU's multiprocessors had work, averaged over all of "
            "them."),
    DcgmRow("DCGM_FI_PROF_SM_OCCUPANCY",
            "Warps resident on the GPU's multiprocessors as a share of the maximum."),
};

}  // namespace rankscope::metrics
