# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Alerts on GPUs, whether a job has them or not. What a GPU reports as an event pages; what it reports as a state waits for a drain."""
from rule import Alert

GPU = "<cluster>, instance, gpu, gpu_uuid"
WHERE = "GPU {{ $labels.gpu }} of {{ $labels.node }}"
WHOSE = "{{ if $labels.job_id }} It belongs to job {{ $labels.job_id }} of {{ $labels.user }}{{ if $labels.rank }}, rank {{ $labels.rank }}{{ end }}.{{ end }}"


def gpu(expression, *labels):
    return f"max by ({', '.join([GPU, *labels])}) ({expression})"


def happened(xids, within):
    """Counters of Xids begin with their first error, so that increase() would miss it; its time is there at once."""
    newest = gpu(f'rankscope_gpu_last_xid_timestamp_seconds{{xid=~"{xids}"}}', "xid")
    return f"time() - {newest} < {within}"


def rose(metric, window, more_than, *labels):
    return f"sum by ({', '.join([GPU, *labels])}) (increase({metric}[{window}])) > {more_than}"


ALERTS = [
    Alert("RankscopeGpuXid", "gpu", "critical", "infrastructure", "0m", happened("<hardware_xids>", 3600),
          "A GPU has reported an error of its hardware or driver.",
          f"{WHERE} reported Xid {{{{ $labels.xid }}}} within the last hour.{WHOSE}"),
    Alert("RankscopeGpuProgramFault", "gpu", "warning", "workload", "0m", happened("<program_xids>", 900),
          "A program has made a GPU fault.",
          f"{WHERE} reported Xid {{{{ $labels.xid }}}}, which programs cause.{WHOSE}"),
    Alert("RankscopeGpuLost", "gpu", "critical", "infrastructure", "1m", f"""
          {gpu('rankscope_gpu_health{state=~"lost|unresponsive"} == 1')}
          or
          (
            {gpu("max_over_time(rankscope_gpu_up[6h])")} == 1
              unless on (<cluster>, instance, gpu_uuid) {gpu("rankscope_gpu_up")}
              and on (<cluster>, instance) max by (<cluster>, instance) (rankscope_source_up{{source="nvml"}}) == 1
          )""",
          "A GPU is gone, or no longer answers.",
          f"{WHERE} does not answer its driver, or has disappeared from it.{WHOSE}"),
    Alert("RankscopeGpuNeedsAction", "gpu", "warning", "infrastructure", "10m",
          gpu('rankscope_gpu_xid_pending_action{action=~"reset_gpu|reboot|inspect"} == 1', "action"),
          "A GPU waits for a reset, a reboot or an inspection.",
          f"Xids of {WHERE} call for {{{{ $labels.action }}}}, and nobody has done it yet.{WHOSE}"),
    Alert("RankscopeGpuRemapPending", "gpu", "warning", "infrastructure", "10m",
          gpu("rankscope_gpu_row_remap_pending == 1 or rankscope_gpu_retired_pages_pending == 1"),
          "A GPU has defective memory that a reset would map out.",
          f"{WHERE} waits for a reset to replace defective memory.{WHOSE}"),
    Alert("RankscopeGpuRemapFailed", "gpu", "warning", "infrastructure", "10m", gpu("rankscope_gpu_row_remap_failed == 1"),
          "A GPU has no spare memory for a defective row and should be replaced.",
          f"{WHERE} could not remap a defective row of its memory.{WHOSE}"),
    Alert("RankscopeGpuEccUncorrected", "gpu", "warning", "infrastructure", "0m",
          rose('rankscope_gpu_ecc_errors_total{kind="uncorrected",scope="volatile"}', "1h", 0),
          "A GPU has counted uncorrectable memory errors.",
          f"{WHERE} counted {{{{ $value | humanize }}}} uncorrectable memory errors within an hour.{WHOSE}"),
    Alert("RankscopeGpuEccRising", "gpu", "warning", "infrastructure", "10m",
          rose('rankscope_gpu_ecc_errors_total{kind="corrected",scope="volatile"}', "1h", "<ecc_corrected>"),
          "The corrected memory errors of a GPU rise quickly.",
          f"{WHERE} corrected {{{{ $value | humanize }}}} memory errors within an hour.{WHOSE}"),
    Alert("RankscopeNvlinkDown", "gpu", "warning", "infrastructure", "2m",
          f'{gpu("rankscope_gpu_nvlink_active_links")} < {gpu("max_over_time(rankscope_gpu_nvlink_active_links[1d])")}',
          "A GPU has fewer NVLink links up than it had.",
          f"{WHERE} has {{{{ $value }}}} NVLink links up, fewer than within the last day.{WHOSE}"),
    Alert("RankscopeNvlinkErrors", "gpu", "warning", "infrastructure", "0m",
          rose('rankscope_gpu_nvlink_errors_total{kind=~"replay|recovery|crc_data"}', "15m", "<nvlink_errors>"),
          "The NVLink links of a GPU report many errors.",
          f"The links of {WHERE} reported {{{{ $value | humanize }}}} errors within a quarter of an hour.{WHOSE}"),
    Alert("RankscopeGpuFabricNotReady", "gpu", "warning", "infrastructure", "10m",
          gpu('rankscope_gpu_fabric_state{state=~"not_started|in_progress"} == 1', "state"),
          "A GPU has not joined its NVLink fabric.",
          f"The fabric registration of {WHERE} is {{{{ $labels.state }}}}: jobs that use it will fail as they start.{WHOSE}"),
    Alert("RankscopeGpuThrottled", "gpu", "warning", "infrastructure", "10m", gpu(
          'rate(rankscope_gpu_throttled_seconds_total{reason=~"hw_slowdown|hw_thermal|sw_thermal|hw_power_brake"}[10m])', "reason")
          + " > <throttled>",
          "Heat or the power supply lowers the clocks of a GPU.",
          f"{WHERE} was throttled for {{{{ $value | humanizePercentage }}}} of the last ten minutes: {{{{ $labels.reason }}}}.{WHOSE}"),
    Alert("RankscopeGpuHeldAfterJob", "gpu", "warning", "infrastructure", "5m", f"""
          {gpu('rankscope_gpu_processes{kind="compute"}')} > 0
          and on (<cluster>, instance, gpu_uuid) max by (<cluster>, instance, gpu_uuid) (last_over_time(rankscope_job_gpu[2h]))
          unless on (<cluster>, instance, gpu_uuid) max by (<cluster>, instance, gpu_uuid) (rankscope_job_gpu)""",
          "Processes hold a GPU whose job has ended.",
          f"{{{{ $value }}}} processes still compute on {WHERE}, which belongs to no job any more.{WHOSE}"),
]
