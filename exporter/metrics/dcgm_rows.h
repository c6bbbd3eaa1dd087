// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The rows of the catalogue that have the names, units and labels of NVIDIA's dcgm-exporter (its
// etc/default-counters.csv and dcp-metrics-included.csv, 4.x), so that dashboards and alerts made
// for it go on: shown with metrics.dcgm_names only, of what is known. What those files have in use
// is in every profile, what they have as a comment in `full`. Sorted by name; catalog.h merges them
// with the rest. Where its releases differ, the newest is right: violations are nanoseconds, and
// what goes over PCIe and NVLink is a rate, and a gauge. NVIDIA does not document the unit of
// NVLINK_BANDWIDTH_TOTAL: measured against known transfers it is MiB per second. Any thread.
#pragma once

#include <array>

#include "exporter/metrics/metric_row.h"

namespace rankscope::metrics {

inline constexpr std::string_view kDcgmLabels =
    "gpu,UUID,pci_bus_id,device,modelName,Hostname,DCGM_FI_DRIVER_VERSION";
inline constexpr std::string_view kDcgmXidLabels =
    "gpu,UUID,pci_bus_id,device,modelName,Hostname,DCGM_FI_DRIVER_VERSION,err_code,err_msg";
// Behind them where the series is of a MIG instance, where the GPU is a job's by the files of a
// prolog, and where it is a pod's: as dcgm-exporter, which has none of them elsewhere.
inline constexpr std::string_view kDcgmMigLabels = ",GPU_I_PROFILE,GPU_I_ID";
inline constexpr std::string_view kDcgmJobLabel = ",hpc_job";
inline constexpr std::string_view kDcgmPodLabels = ",container,namespace,pod";

constexpr MetricRow DcgmRow(std::string_view name, HelpText help,
                            MetricType type = MetricType::kGauge,
                            Profile profile = Profile::kDcgmNames) {
  return {name, type, "", help, kDcgmLabels, Keep::kDcgm, profile};
}

inline constexpr std::array kDcgmRows = {
    DcgmRow("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
            "Time for which the GPU's board limited its clocks, in nanoseconds.",
            MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
            "Number of the GPU's memory rows remapped for correctable errors.",
            MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_DEC_UTIL", "Utilization of the GPU's video decoder in percent."),
    DcgmRow("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
            "Number of uncorrectable ECC errors of the GPU's memory since the GPU was made.",
            MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
            "Number of uncorrectable ECC errors of the GPU's memory since its driver was loaded.",
            MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
            "Number of corrected ECC errors of the GPU's memory since the GPU was made.",
            MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
            "Number of corrected ECC errors of the GPU's memory since its driver was loaded.",
            MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_ENC_UTIL", "Utilization of the GPU's video encoder in percent."),
    DcgmRow("DCGM_FI_DEV_FB_FREE", "Free memory of the GPU in MiB."),
    DcgmRow("DCGM_FI_DEV_FB_RESERVED", "Memory of the GPU that its driver reserves, in MiB."),
    DcgmRow("DCGM_FI_DEV_FB_USED", "Used memory of the GPU in MiB."),
    DcgmRow("DCGM_FI_DEV_GPU_TEMP", "Temperature of the GPU's die in degrees Celsius."),
    DcgmRow("DCGM_FI_DEV_GPU_UTIL",
            "Share of the time in which any work ran on the GPU, in percent."),
    DcgmRow(
        "DCGM_FI_DEV_LOW_UTIL_VIOLATION",
        "Time for which the GPU's clocks were lowered because it had little work, in nanoseconds.",
        MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_MEMORY_TEMP", "Temperature of the GPU's memory in degrees Celsius."),
    DcgmRow("DCGM_FI_DEV_MEM_CLOCK", "Clock of the GPU's memory in MHz."),
    DcgmRow("DCGM_FI_DEV_MEM_COPY_UTIL",
            "Share of the time in which the GPU's memory was read or written, in percent."),
    DcgmRow("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
            "Rate of data sent and received over all NVLink links of the GPU, in MiB per second."),
    DcgmRow("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
            "Number of CRC errors of data on all NVLink links of the GPU.", MetricType::kCounter,
            Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
            "Number of CRC errors of flow control on all NVLink links of the GPU.",
            MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
            "Number of times that an NVLink link of the GPU had to recover.", MetricType::kCounter,
            Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
            "Number of packets that were resent over all NVLink links of the GPU.",
            MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
            "Number of PCIe packets that the GPU or its link partner had to resend.",
            MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_POWER_USAGE", "Current power draw of the GPU in watts."),
    DcgmRow("DCGM_FI_DEV_POWER_VIOLATION",
            "Time for which the GPU's power limit lowered its clocks, in nanoseconds.",
            MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_RELIABILITY_VIOLATION",
            "Time for which the limit of the GPU's voltage lowered its clocks, in nanoseconds.",
            MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_RETIRED_DBE",
            "Number of memory pages of the GPU retired for uncorrectable errors.",
            MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_RETIRED_PENDING",
            "Whether memory pages of the GPU wait for a restart to be retired.",
            MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_RETIRED_SBE",
            "Number of memory pages of the GPU retired for repeated corrected errors.",
            MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_ROW_REMAP_FAILURE",
            "Whether a defective memory row of the GPU could not be remapped."),
    DcgmRow("DCGM_FI_DEV_SM_CLOCK", "Clock of the GPU's multiprocessors in MHz."),
    DcgmRow("DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
            "Time for which clocks were lowered to those of the other GPUs of its group, in "
            "nanoseconds.",
            MetricType::kCounter, Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_THERMAL_VIOLATION",
            "Time for which heat lowered the GPU's clocks, in nanoseconds.", MetricType::kCounter,
            Profile::kDcgmFull),
    DcgmRow("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
            "Energy used by the GPU since its driver was loaded, in mJ.", MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
            "Number of the GPU's memory rows remapped for uncorrectable errors.",
            MetricType::kCounter),
    DcgmRow("DCGM_FI_DEV_VGPU_LICENSE_STATUS",
            "Whether the vGPU is licensed; absent on a GPU that needs no licence."),
    MetricRow{"DCGM_FI_DEV_XID_ERRORS", MetricType::kGauge, "",
              "Code of the GPU's newest Xid error in the kernel log, or 0 if there was none, and "
              "what it means in words.",
              kDcgmXidLabels, Keep::kDcgm, Profile::kDcgmNames},
    DcgmRow("DCGM_FI_PROF_DRAM_ACTIVE",
            "Share of the peak bandwidth of the GPU's memory that is used."),
    DcgmRow("DCGM_FI_PROF_GR_ENGINE_ACTIVE",
            "Share of the time in which the GPU's graphics or compute engine was active."),
    DcgmRow("DCGM_FI_PROF_NVLINK_RX_BYTES",
            "Rate of data received over all NVLink links of the GPU, without what the protocol "
            "adds, in bytes per second."),
    DcgmRow("DCGM_FI_PROF_NVLINK_TX_BYTES",
            "Rate of data sent over all NVLink links of the GPU, without what the protocol adds, "
            "in bytes per second."),
    DcgmRow("DCGM_FI_PROF_PCIE_RX_BYTES",
            "Rate of data received over PCIe, with what the protocol adds, in bytes per second."),
    DcgmRow("DCGM_FI_PROF_PCIE_TX_BYTES",
            "Rate of data sent over PCIe, with what the protocol adds, in bytes per second."),
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
