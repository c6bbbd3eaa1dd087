// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The rows of the catalogue that are of GPUs and of whose they are, sorted by name; catalog.h
// merges them with the rest. A new one is a row here and a line in snapshot_gpus.cc. Any thread.
#pragma once

#include <array>

#include "detectors/model/library_call.h"
#include "exporter/metrics/metric_row.h"

namespace rankscope::metrics {

inline constexpr std::array kGpuRows = {
    MetricRow{"rankscope_gpu_bar1_used_bytes", MetricType::kGauge, "bytes",
              "Bytes of the GPU's BAR1 memory that are mapped for access over PCIe.",
              "gpu,gpu_uuid", Keep::kGpuDetail, Profile::kFull},
    MetricRow{"rankscope_gpu_clock_hertz", MetricType::kGauge, "hertz",
              "Current clock of the GPU in hertz, by clock domain.", "gpu,gpu_uuid,domain",
              Keep::kGpu},
    MetricRow{"rankscope_gpu_clock_max_hertz", MetricType::kGauge, "hertz",
              "Maximum clock of the GPU in hertz, by clock domain.", "gpu,gpu_uuid,domain",
              Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_decoder_active_ratio", MetricType::kGauge, "ratio",
              "Share of the time in which the GPU's video decoder was active.", "gpu,gpu_uuid",
              Keep::kGpuDetail, Profile::kFull},
    MetricRow{"rankscope_gpu_dram_active_ratio", MetricType::kGauge, "ratio",
              "Share of the peak bandwidth of the GPU's memory that is used; absent for GPUs "
              "without such counters.",
              "gpu,gpu_uuid", Keep::kGpu},
    MetricRow{
        "rankscope_gpu_ecc_errors_total", MetricType::kCounter, "",
        "Number of ECC errors of the GPU's memory, since the driver was loaded (volatile) or over "
        "the GPU's lifetime (aggregate); by location in the full profile, else summed over all.",
        "gpu,gpu_uuid,kind,scope,location", Keep::kGpu},
    MetricRow{"rankscope_gpu_encoder_active_ratio", MetricType::kGauge, "ratio",
              "Share of the time in which the GPU's video encoder was active.", "gpu,gpu_uuid",
              Keep::kGpuDetail, Profile::kFull},
    MetricRow{"rankscope_gpu_energy_joules_total", MetricType::kCounter, "joules",
              "Energy used by the GPU since its driver was loaded, in joules.", "gpu,gpu_uuid",
              Keep::kGpuDetail},
    MetricRow{
        "rankscope_gpu_engine_active_ratio", MetricType::kGauge, "ratio",
        "Share of the time in which any work ran on the GPU, however little of the GPU it used.",
        "gpu,gpu_uuid", Keep::kGpu},
    MetricRow{"rankscope_gpu_fabric_state", MetricType::kStateSet, "",
              "State of the GPU's registration with the NVLink fabric manager; absent for GPUs "
              "that are not on a fabric.",
              "gpu,gpu_uuid,state", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_fan_speed_ratio", MetricType::kGauge, "ratio",
              "Speed of the GPU's fan as a share of its maximum.", "gpu,gpu_uuid",
              Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_health", MetricType::kStateSet, "",
              "Overall health of the GPU, the worst of what it reports about itself; a summary for "
              "display that no verdict relies on.",
              "gpu,gpu_uuid,state", Keep::kGpu},
    MetricRow{"rankscope_gpu_info", MetricType::kInfo, "",
              "Model, PCI address, serial number and driver version of the GPU, as labels of a "
              "series that is always 1.",
              "gpu,gpu_uuid,model,pci_bus_id,serial,driver_version", Keep::kGpu},
    MetricRow{"rankscope_gpu_last_xid_timestamp_seconds", MetricType::kGauge, "seconds",
              "Time of the GPU's last Xid error of this code, in seconds since the Unix epoch; "
              "also of errors from before the exporter started.",
              "gpu,gpu_uuid,xid", Keep::kGpu},
    MetricRow{"rankscope_gpu_memory_busy_ratio", MetricType::kGauge, "ratio",
              "Share of the time in which the GPU's memory was read or written.", "gpu,gpu_uuid",
              Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_memory_free_bytes", MetricType::kGauge, "bytes",
              "Free memory of the GPU in bytes.", "gpu,gpu_uuid", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_memory_reserved_bytes", MetricType::kGauge, "bytes",
              "Memory of the GPU that its driver reserves, in bytes.", "gpu,gpu_uuid",
              Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_memory_total_bytes", MetricType::kGauge, "bytes",
              "Total memory of the GPU in bytes.", "gpu,gpu_uuid", Keep::kGpu},
    MetricRow{"rankscope_gpu_memory_used_bytes", MetricType::kGauge, "bytes",
              "Allocated memory of the GPU in bytes, including what its driver reserves if the "
              "driver does not report that separately.",
              "gpu,gpu_uuid", Keep::kGpu},
    MetricRow{"rankscope_gpu_mig_instances", MetricType::kGauge, "",
              "Number of MIG instances into which the GPU is divided; absent while MIG is off.",
              "gpu,gpu_uuid", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_mig_memory_total_bytes", MetricType::kGauge, "bytes",
              "Total memory of the MIG instance in bytes.", "gpu,gpu_uuid,mig", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_mig_memory_used_bytes", MetricType::kGauge, "bytes",
              "Allocated memory of the MIG instance in bytes.", "gpu,gpu_uuid,mig",
              Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_mode", MetricType::kGauge, "",
              "Whether this mode of the GPU is on: ecc, exclusive, mig or persistence.",
              "gpu,gpu_uuid,mode", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_nvlink_active_links", MetricType::kGauge, "",
              "Number of the GPU's NVLink links that are up.", "gpu,gpu_uuid", Keep::kGpu},
    MetricRow{"rankscope_gpu_nvlink_errors_total", MetricType::kCounter, "",
              "Number of errors on the GPU's NVLink links, by kind; by link in the full profile, "
              "else summed over all.",
              "gpu,gpu_uuid,link,kind", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_nvlink_receive_bytes_total", MetricType::kCounter, "bytes",
              "Bytes received by the GPU over NVLink.", "gpu,gpu_uuid", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_nvlink_speed_bytes_per_second", MetricType::kGauge, "bytes_per_second",
              "Bandwidth of the GPU's NVLink link in one direction, in bytes per second.",
              "gpu,gpu_uuid,link", Keep::kGpuDetail, Profile::kFull},
    MetricRow{"rankscope_gpu_nvlink_transmit_bytes_total", MetricType::kCounter, "bytes",
              "Bytes sent by the GPU over NVLink.", "gpu,gpu_uuid", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_nvlink_up", MetricType::kGauge, "",
              "Whether the GPU's NVLink link is up.", "gpu,gpu_uuid,link", Keep::kGpuDetail,
              Profile::kFull},
    MetricRow{"rankscope_gpu_pcie_link_generation", MetricType::kGauge, "",
              "Current PCIe generation of the GPU's link; lower while the GPU is idle.",
              "gpu,gpu_uuid", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_pcie_link_generation_max", MetricType::kGauge, "",
              "Maximum PCIe generation that the GPU and its slot support.", "gpu,gpu_uuid",
              Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_pcie_link_width", MetricType::kGauge, "",
              "Number of PCIe lanes that the GPU currently uses.", "gpu,gpu_uuid",
              Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_pcie_link_width_max", MetricType::kGauge, "",
              "Maximum number of PCIe lanes that the GPU and its slot support.", "gpu,gpu_uuid",
              Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_pcie_receive_bytes_total", MetricType::kCounter, "bytes",
              "Bytes received by the GPU over PCIe.", "gpu,gpu_uuid", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_pcie_replays_total", MetricType::kCounter, "",
              "Number of PCIe packets that the GPU or its link partner had to resend.",
              "gpu,gpu_uuid", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_pcie_transmit_bytes_total", MetricType::kCounter, "bytes",
              "Bytes sent by the GPU over PCIe.", "gpu,gpu_uuid", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_performance_state", MetricType::kGauge, "",
              "Performance state of the GPU, from 0 (fastest) to 15 (slowest).", "gpu,gpu_uuid",
              Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_pipe_active_ratio", MetricType::kGauge, "ratio",
              "Share of the GPU's cycles in which this kind of execution unit was active; only "
              "pipe tensor outside the full profile, and absent for GPUs without such counters.",
              "gpu,gpu_uuid,pipe", Keep::kGpu},
    MetricRow{"rankscope_gpu_power_limit_watts", MetricType::kGauge, "watts",
              "Power limit of the GPU in watts, by kind of limit.", "gpu,gpu_uuid,kind",
              Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_power_watts", MetricType::kGauge, "watts",
              "Current power draw of the GPU in watts.", "gpu,gpu_uuid", Keep::kGpu},
    MetricRow{"rankscope_gpu_process_memory_used_bytes", MetricType::kGauge, "bytes",
              "GPU memory allocated by the process of the rank, in bytes.",
              "gpu,gpu_uuid,job_id,rank", Keep::kRankDetail},
    MetricRow{"rankscope_gpu_processes", MetricType::kGauge, "",
              "Number of processes that use the GPU, by kind.", "gpu,gpu_uuid,kind", Keep::kGpu},
    MetricRow{"rankscope_gpu_recovery_action", MetricType::kStateSet, "",
              "Action that the driver recommends to recover the GPU.", "gpu,gpu_uuid,action",
              Keep::kGpuDetail, Profile::kFull},
    MetricRow{"rankscope_gpu_retired_pages", MetricType::kGauge, "",
              "Number of memory pages retired over the GPU's lifetime, by cause; only GPUs before "
              "Ampere retire pages.",
              "gpu,gpu_uuid,cause", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_retired_pages_pending", MetricType::kGauge, "",
              "Whether a memory page of the GPU waits for a reset to be retired.", "gpu,gpu_uuid",
              Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_row_remap_available_banks", MetricType::kGauge, "",
              "Number of the GPU's memory banks by how many spare rows they have left.",
              "gpu,gpu_uuid,level", Keep::kGpuDetail, Profile::kFull},
    MetricRow{"rankscope_gpu_row_remap_failed", MetricType::kGauge, "",
              "Whether a defective memory row of the GPU could not be remapped, so that the GPU "
              "should be replaced.",
              "gpu,gpu_uuid", Keep::kGpu},
    MetricRow{"rankscope_gpu_row_remap_pending", MetricType::kGauge, "",
              "Whether a defective memory row of the GPU waits for a reset to be remapped.",
              "gpu,gpu_uuid", Keep::kGpu},
    MetricRow{"rankscope_gpu_row_remaps", MetricType::kGauge, "",
              "Number of memory rows remapped over the GPU's lifetime, by cause.",
              "gpu,gpu_uuid,cause", Keep::kGpu},
    MetricRow{"rankscope_gpu_sm_active_ratio", MetricType::kGauge, "ratio",
              "Share of the time in which the GPU's multiprocessors had work, averaged over all of "
              "them; absent, not 0, for GPUs without such counters.",
              "gpu,gpu_uuid", Keep::kGpu},
    MetricRow{"rankscope_gpu_sm_occupancy_ratio", MetricType::kGauge, "ratio",
              "Warps resident on the GPU's multiprocessors as a share of the maximum; absent for "
              "GPUs without such counters.",
              "gpu,gpu_uuid", Keep::kGpu},
    MetricRow{"rankscope_gpu_temperature_celsius", MetricType::kGauge, "celsius",
              "Temperature of the GPU in degrees Celsius, of its die (core) or its memory.",
              "gpu,gpu_uuid,sensor", Keep::kGpu},
    MetricRow{"rankscope_gpu_temperature_margin_celsius", MetricType::kGauge, "celsius",
              "Degrees Celsius by which the GPU is below its nearest slowdown temperature.",
              "gpu,gpu_uuid", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_temperature_threshold_celsius", MetricType::kGauge, "celsius",
              "Temperature in degrees Celsius at which the GPU slows down or shuts down.",
              "gpu,gpu_uuid,threshold", Keep::kGpuDetail},
    MetricRow{"rankscope_gpu_throttle_active", MetricType::kStateSet, "",
              "Whether this reason currently limits the GPU's clocks.", "gpu,gpu_uuid,reason",
              Keep::kGpu},
    MetricRow{"rankscope_gpu_throttled_seconds_total", MetricType::kCounter, "seconds",
              "Seconds for which this reason limited the GPU's clocks, as counted by the GPU or "
              "else as sampled at each poll since the exporter started.",
              "gpu,gpu_uuid,reason", Keep::kGpu},
    MetricRow{"rankscope_gpu_throttled_source_info", MetricType::kInfo, "",
              "Source of the GPU's throttled seconds, as a label of a series that is always 1: the "
              "GPU's own counter or the exporter's polls.",
              "gpu,gpu_uuid,reason,source", Keep::kGpuDetail, Profile::kFull},
    MetricRow{"rankscope_gpu_up", MetricType::kGauge, "",
              "Whether the GPU answered the exporter's last poll in time.", "gpu,gpu_uuid",
              Keep::kGpu},
    MetricRow{"rankscope_gpu_utilization_source_info", MetricType::kInfo, "",
              "Source of the GPU's activity ratios, as a label of a series that is always 1: gpm "
              "for hardware counters, dcgm for the same counters from the node's dcgm-exporter, "
              "nvml for samples of the driver.",
              "gpu,gpu_uuid,source", Keep::kGpu},
    MetricRow{
        "rankscope_gpu_xid_errors_total", MetricType::kCounter, "",
        "Number of the GPU's Xid errors of this code since the exporter started, from the kernel "
        "log or NVML; absent until the first, and 0 for a code seen only before the start.",
        "gpu,gpu_uuid,xid", Keep::kGpu, Profile::kDefault, Since::kStart},
    MetricRow{
        "rankscope_gpu_xid_pending_action", MetricType::kStateSet, "",
        "Action that the GPU's Xid errors require and that has not been seen to happen: reset the "
        "GPU, reboot the node, or inspect the GPU; absent if no source reports Xids.",
        "gpu,gpu_uuid,action", Keep::kGpu},
    MetricRow{"rankscope_job_gpu", MetricType::kGauge, "",
              "GPU of this node that belongs to the job, used or not, as labels of a series that "
              "is always 1; source names how this is known: devices (cgroup), slurm, container, "
              "uuid or ordinal (environment), mapping (a prolog's file) or process (a process of "
              "the job uses it).",
              "job_id,gpu,gpu_uuid,source", Keep::kJob},
    MetricRow{"rankscope_job_gpu_attached", MetricType::kGauge, "",
              "Whether a process of the job computes on this GPU of the job.",
              "job_id,gpu,gpu_uuid", Keep::kJob},
    MetricRow{"rankscope_job_gpu_share_ratio", MetricType::kGauge, "ratio",
              "Share of the GPU that is the job's: 1 divided by the number of running jobs to "
              "which the GPU belongs.",
              "job_id,gpu,gpu_uuid", Keep::kJob},
    MetricRow{"rankscope_nvml_call_seconds", MetricType::kHistogram, "seconds",
              "Duration in seconds of completed calls into NVML.", "call", Keep::kGpuDetail,
              Profile::kFull, Since::kUnknown, kLibraryCallBounds},
    MetricRow{"rankscope_nvml_errors_total", MetricType::kCounter, "",
              "Number of failed calls into NVML, by NVML's error code, without calls that the GPU "
              "does not support; absent until the first.",
              "call,code", Keep::kGpuDetail, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_rank_gpu_info", MetricType::kInfo, "",
              "GPU that the rank computes on or has been given, as labels of a series that is "
              "always 1; before the rank uses a GPU, those that its environment names.",
              "job_id,rank,gpu,gpu_uuid", Keep::kRank},
};

}  // namespace rankscope::metrics
