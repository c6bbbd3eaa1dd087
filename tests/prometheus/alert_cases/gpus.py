# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Alerts on GPUs."""
from case import BARE_GPU, CARD, GPU, JOB, ON_GPU, OWNER, Case


def of(metric, more=""):
    return f"rankscope_gpu_{metric}{{{CARD}{more}}} @n1"


UP = {of("up"): "1x300"}
TAKEN = {**JOB, **GPU}
XID = of("last_xid_timestamp_seconds", ',xid="79"')
CORRECTED = of("ecc_errors_total", ',kind="corrected",scope="volatile",location="all"')
UNCORRECTED = of("ecc_errors_total", ',kind="uncorrected",scope="volatile",location="all"')
REPLAYS = of("nvlink_errors_total", ',link="all",kind="replay"')
HEAT = of("throttled_seconds_total", ',reason="hw_thermal"')
SHARED = {f'rankscope_rank_gpu_info{{job_id="42",rank="8",{CARD}}} @n1': "1x300"}
NEXT_JOB = {
    'rankscope_job_info{job_id="42",user="ada",account="science",partition="gpu",attempt="1"} @n1': "1x20 stale",
    'rankscope_job_running{job_id="42"} @n1': "1x20 stale",
    f'rankscope_job_gpu{{job_id="42",{CARD},source="slurm"}} @n1': "1x20 stale",
    f'rankscope_rank_gpu_info{{job_id="42",rank="7",{CARD}}} @n1': "1x20 stale",
}

EVENTS = [
    Case("RankscopeGpuXid", "an error of the hardware, for an hour", {**TAKEN, XID: "_x10 600x200"},
         {9: [], 11: [{**ON_GPU, "xid": "79", "severity": "critical", "domain": "infrastructure"}], 60: [{**ON_GPU, "xid": "79"}], 75: []}),
    Case("RankscopeGpuXid", "its job has ended by it and is named still", {**NEXT_JOB, of("up"): "1x200", XID: "_x20 1200x200"},
         {25: [{**ON_GPU, "xid": "79"}], 70: [{**ON_GPU, "xid": "79"}]}),
    Case("RankscopeGpuXid", "two ranks share the GPU: the job is known, the rank is not", {**TAKEN, **SHARED, XID: "_x10 600x60"},
         {15: [{**OWNER, **BARE_GPU, "xid": "79"}]}),
    Case("RankscopeGpuXid", "series of owners from before a restart of Prometheus, which nobody has ended",
         {**TAKEN, 'training_job:gpu_owner:time{instance="n1:10177",gpu_uuid="GPU-a",node="n1",job_id="41",rank="0"}': "-60 _x60",
          'training_job:gpu:time{instance="n1:10177",gpu_uuid="GPU-a",node="n1",job_id="41",rank="0"}': "-60 _x60", XID: "_x2 120x60"},
         {3: [{**ON_GPU, "xid": "79"}], 4: [{**ON_GPU, "xid": "79"}]}),
    Case("RankscopeGpuXid", "a GPU without a job", {**UP, XID: "_x10 600x60"}, {15: [{**BARE_GPU, "xid": "79"}]}),
    Case("RankscopeGpuXid", "a program's fault, the clean-up after one, and an old error",
         {**TAKEN, of("last_xid_timestamp_seconds", ',xid="31"'): "_x100 6000x20", of("last_xid_timestamp_seconds", ',xid="43"'): "_x100 6000x20",
          XID: "0x120"}, {101: [], 110: []}),
    Case("RankscopeGpuProgramFault", "an illegal address", {**TAKEN, of("last_xid_timestamp_seconds", ',xid="31"'): "_x10 600x60"},
         {11: [{**ON_GPU, "xid": "31", "severity": "warning", "domain": "workload"}], 30: []}),
    Case("RankscopeGpuProgramFault", "an error of the hardware", {**TAKEN, XID: "_x10 600x60"}, {11: []}),
    Case("RankscopeGpuLost", "it does not answer", {**TAKEN, of("health", ',state="lost"'): "0x9 1x60", of("health", ',state="healthy"'): "1x9 0x60"},
         {9: [], 12: [{**ON_GPU, "severity": "critical", "domain": "infrastructure"}]}),
    Case("RankscopeGpuLost", "the driver no longer lists it; another has its number now",
         {of("up"): "1x9 stale", 'rankscope_gpu_up{gpu="4",gpu_uuid="GPU-b"} @n1': "1x9 stale",
          'rankscope_gpu_up{gpu="3",gpu_uuid="GPU-b"} @n1': "_x10 1x60", 'rankscope_source_up{source="nvml"} @n1': "1x90"},
         {9: [], 20: [BARE_GPU]}),
    Case("RankscopeGpuLost", "a sick one, and NVML itself is down",
         {**TAKEN, of("health", ',state="unhealthy"'): "1x60", 'rankscope_gpu_up{gpu="1",gpu_uuid="GPU-b"} @n2': "1x9 stale",
          'rankscope_source_up{source="nvml"} @n2': "1x9 0x60"}, {20: []}),
    Case("RankscopeGpuEccUncorrected", "one is one too many", {**TAKEN, UNCORRECTED: "0x9 1x60"},
         {9: [], 11: [ON_GPU], 75: []}),
    Case("RankscopeGpuEccUncorrected", "those of years ago, and corrected ones",
         {**TAKEN, UNCORRECTED: "5x60", CORRECTED: "0+10x60"}, {11: [], 50: []}),
    Case("RankscopeGpuEccRising", "ten a minute", {**TAKEN, CORRECTED: "0+10x90"}, {5: [], 40: [ON_GPU]}),
    Case("RankscopeGpuEccRising", "one a minute, and a driver that was loaded again", {**TAKEN, CORRECTED: "5000+1x30 0+1x60"}, {20: [], 80: []}),
]

STATES = [
    Case("RankscopeGpuNeedsAction", "a reset that nobody does", {**TAKEN, of("xid_pending_action", ',action="reset_gpu"'): "1x60"},
         {5: [], 15: [{**ON_GPU, "action": "reset_gpu"}]}),
    Case("RankscopeGpuNeedsAction", "one that was done after minutes, and none",
         {**TAKEN, of("xid_pending_action", ',action="reboot"'): "1x5 0x60", of("xid_pending_action", ',action="none"'): "0x5 1x60"}, {9: [], 30: []}),
    Case("RankscopeGpuRemapPending", "a row waits", {**TAKEN, of("row_remap_pending"): "0x9 1x60"}, {15: [], 25: [ON_GPU]}),
    Case("RankscopeGpuRemapPending", "a page waits on a GPU of before Ampere", {**UP, of("retired_pages_pending"): "1x60"}, {15: [BARE_GPU]}),
    Case("RankscopeGpuRemapPending", "rows that were remapped long ago",
         {**TAKEN, of("row_remap_pending"): "0x60", of("row_remaps", ',cause="correctable"'): "3x60"}, {15: []}),
    Case("RankscopeGpuRemapFailed", "no spare row", {**TAKEN, of("row_remap_failed"): "1x60"}, {5: [], 15: [ON_GPU]}),
    Case("RankscopeGpuRemapFailed", "one that only waits", {**TAKEN, of("row_remap_failed"): "0x60", of("row_remap_pending"): "1x60"}, {15: []}),
    Case("RankscopeGpuFabricNotReady", "no fabric manager", {**TAKEN, of("fabric_state", ',state="not_started"'): "1x60"},
         {5: [], 15: [{**ON_GPU, "state": "not_started"}]}),
    Case("RankscopeGpuFabricNotReady", "a node that starts, and a GPU without a fabric",
         {**UP, of("fabric_state", ',state="in_progress"'): "1x4 0x60", of("fabric_state", ',state="not_supported"'): "1x60"}, {4: [], 15: []}),
    Case("RankscopeGpuHeldAfterJob", "processes outlive the job",
         {**NEXT_JOB, of("up"): "1x200", of("processes", ',kind="compute"'): "1x200"}, {15: [], 30: [ON_GPU], 150: []}),
    Case("RankscopeGpuHeldAfterJob", "the job still has it; a GPU that never had a job",
         {**TAKEN, of("processes", ',kind="compute"'): "1x60", 'rankscope_gpu_processes{gpu="0",gpu_uuid="GPU-b",kind="compute"} @n2': "1x60"},
         {30: [], 50: []}),
]

LINKS_AND_HEAT = [
    Case("RankscopeNvlinkDown", "one link fewer than before", {**TAKEN, of("nvlink_active_links"): "18x29 17x60"}, {29: [], 35: [ON_GPU]}),
    Case("RankscopeNvlinkDown", "a GPU that has few, and one without numbers", {**TAKEN, of("nvlink_active_links"): "12x60",
         'rankscope_gpu_nvlink_active_links{gpu="1",gpu_uuid="GPU-b"} @n1': "18x10 stale"}, {35: []}),
    Case("RankscopeNvlinkErrors", "many replays", {**TAKEN, REPLAYS: "0x5 0+50x60"}, {5: [], 15: [ON_GPU]}),
    Case("RankscopeNvlinkErrors", "a few, and flits that were corrected",
         {**TAKEN, REPLAYS: "0+2x60", of("nvlink_errors_total", ',link="all",kind="crc_flit"'): "0+500x60"}, {15: [], 50: []}),
    Case("RankscopeGpuThrottled", "heat for half of the time", {**TAKEN, HEAT: "0x5 0+30x60"},
         {8: [], 30: [{**ON_GPU, "reason": "hw_thermal"}]}),
    Case("RankscopeGpuThrottled", "idle, at its power cap, and hot for seconds",
         {**TAKEN, of("throttled_seconds_total", ',reason="gpu_idle"'): "0+60x60", of("throttled_seconds_total", ',reason="sw_power_cap"'): "0+60x60",
          HEAT: "0+2x60"}, {30: [], 50: []}),
]
CASES = EVENTS + STATES + LINKS_AND_HEAT
