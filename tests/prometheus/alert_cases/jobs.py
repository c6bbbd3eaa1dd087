# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Alerts on jobs and their checkpoints."""
from case import GPU, JOB, OWNER, Case, info

INFRA = info("B2", "gpu_hardware", "critical", "infrastructure")
HANG = info("C2", "collective_hang", "critical", "unknown")
ENDED_HANG = info("C2", "collective_hang", "critical", "unknown", "final")
CRASH = info("A1", "startup_crash", "critical", "workload", "final")
SLOW = info("D3", "straggler", "warning", "infrastructure")
MFU = 'rankscope_training_model_flops_utilization_ratio{job_id="42"} @n1'
BUS = 'rankscope_job_collective_bus_bandwidth_min_bytes_per_second{job_id="42",operation="all_reduce"} @n1'
STEP = 'rankscope_training_step_seconds{job_id="42"} @n1'
ACTIVE = 'rankscope_gpu_engine_active_ratio{gpu="3",gpu_uuid="GPU-a"} @n1'
LAST = 'rankscope_checkpoint_last_timestamp_seconds{job_id="42"} @n1'
USUAL = 'rankscope_checkpoint_interval_seconds{job_id="42"} @n1'
FREE = 'rankscope_checkpoint_free_bytes{job_id="42"} @n1'
SIZE = 'rankscope_checkpoint_last_bytes{job_id="42"} @n1'
FULL_IN = 'rankscope_checkpoint_full_in_seconds{job_id="42"} @n1'
FAULT = {**OWNER, "code": "B2", "family": "gpu_hardware", "domain": "infrastructure", "severity": "critical"}
# The owner as an exporter that Slurm has told nothing knows him.
LATE = 'rankscope_job_info{job_id="42",user="ada",account="",partition="",attempt="1"} @n2'

VERDICTS = [
    Case("RankscopeJobInfrastructureFault", "two nodes say the same: one alert, with its owner; it ends with the verdict",
         {**JOB, LATE: "1x300", f"{INFRA} @n1": "_x5 1x59 stale", f"{INFRA} @n2": "_x5 1x59 stale"}, {4: [], 6: [FAULT], 60: [FAULT], 67: []}),
    Case("RankscopeJobInfrastructureFault", "nobody knows the owner: the alert comes all the same",
         {f"{INFRA} @n1": "1x60"}, {6: [{**{key: FAULT[key] for key in ("job_id", "code", "domain")}}]}),
    Case("RankscopeJobInfrastructureFault", "the owner is known no more while the verdict stands",
         {'rankscope_job_info{job_id="42",user="ada",account="science",partition="gpu",attempt="1"} @n1': "1x5 stale", f"{INFRA} @n1": "1x64"},
         {3: [FAULT], 60: [FAULT]}),
    Case("RankscopeJobInfrastructureFault", "two exporters name two owners: still one alert",
         {**JOB, 'rankscope_job_info{job_id="42",user="bob",account="science",partition="gpu",attempt="1"} @n2': "1x300",
          f"{INFRA} @n1": "1x60"}, {6: [{"code": "B2", "domain": "infrastructure"}]}),
    Case("RankscopeJobInfrastructureFault", "series of owners from before a restart of Prometheus, which nobody has ended",
         {**JOB, 'training_job:owner:time{job_id="42",user="ada",account="",partition=""}': "-60 _x60", f"{INFRA} @n1": "1x60"},
         {2: [FAULT], 4: [FAULT]}),
    Case("RankscopeJobInfrastructureFault", "the user's own crash, a hang, a slow rank",
         {**JOB, f"{CRASH} @n1": "1x60", f"{HANG} @n2": "1x60", f"{SLOW} @n3": "1x60"}, {10: [], 59: []}),
    Case("RankscopeJobHangs", "a live hang pages, an ended one does not",
         {**JOB, f"{HANG} @n1": "1x20 stale", f"{HANG} @n2": "1x20 stale", f"{ENDED_HANG} @n1": "_x20 1x60"},
         {0: [], 2: [{**OWNER, "code": "C2", "domain": "unknown", "severity": "critical"}], 25: []}),
    Case("RankscopeJobHangs", "a crash, and a verdict that lasts half a minute",
         {**JOB, f"{CRASH} @n1": "1x60", f"{HANG} @n1": "_x9 1 stale"}, {5: [], 9: [], 10: [], 11: []}),
    Case("RankscopeJobFailed", "a crash of the user's own program is no page",
         {**JOB, f"{CRASH} @n1": "1x59"}, {2: [{**OWNER, "code": "A1", "domain": "workload", "severity": "warning"}], 66: []}),
    Case("RankscopeJobFailed", "a hang that was ended",
         {**JOB, f"{ENDED_HANG} @n1": "1x59"}, {2: [{**OWNER, "code": "C2", "domain": "unknown", "severity": "warning"}]}),
    Case("RankscopeJobFailed", "infrastructure, a live hang and a healthy job are not its own",
         {**JOB, f"{INFRA} @n1": "1x59", f"{HANG} @n2": "1x59", f'{info("G1", "healthy", "ok", "workload", "final")} @n3': "1x59"}, {10: []}),
    Case("RankscopeJobDegraded", "a straggler that stays", {**JOB, f"{SLOW} @n1": "1x59"},
         {4: [], 6: [{**OWNER, "code": "D3", "domain": "infrastructure", "severity": "warning"}]}),
    Case("RankscopeJobDegraded", "one that has ended, and one that comes and goes",
         {**JOB, f'{info("D3", "straggler", "warning", "infrastructure", "final")} @n1': "1x59", f"{SLOW} @n2": "1 1 1 stale _ _ 1 1 1 stale"},
         {6: [], 10: [], 30: []}),
    Case("RankscopeRestartStorm", "three restarts within an hour", {
        **{f'rankscope_job_info{{job_id="42",user="ada",account="science",partition="gpu",restart_count="{n}"}} @n1': f"_x{9 * n} 1x8 stale"
           for n in range(5)}}, {20: [], 30: [{**OWNER, "domain": "unknown"}]}),
    Case("RankscopeRestartStorm", "the verdict", {**JOB, f'{info("X19", "restart_storm", "critical", "unknown")} @n1': "1x59"}, {2: [OWNER]}),
    Case("RankscopeRestartStorm", "five attempts by hand in one allocation, on four nodes; one restart", {
        **{f'rankscope_job_info{{job_id="42",user="ada",account="s",partition="gpu",attempt="{n}",restart_count="0"}} @n{n % 4}': f"_x{5 * n} 1x30"
           for n in range(5)},
        'rankscope_job_info{job_id="42",user="ada",account="s",partition="gpu",attempt="6",restart_count="1"} @n1': "_x50 1x60"}, {30: [], 70: []}),
    Case("RankscopeRanksUninterruptible", "two ranks for minutes: one alert",
         {**JOB, **{f'rankscope_rank_uninterruptible_threads{{job_id="42",rank="{rank}"}} @n1': "0x9 2x60" for rank in (1, 2)}},
         {15: [], 30: [OWNER]}),
    Case("RankscopeRanksUninterruptible", "a thread that waits for its disk now and then",
         {**JOB, 'rankscope_rank_uninterruptible_threads{job_id="42",rank="1"} @n1': "1 2 1 0 1 1 3 1 0 1 1 0 1 1 1 1 0 1 1 1 1 1 1 1 0 0"},
         {10: [], 20: [], 25: []}),
]

SPEED = [
    Case("RankscopeMfuLow", "a quarter less than before, and a sixth less",
         {**JOB, MFU: "0.40x119 0.30x60", 'rankscope_training_model_flops_utilization_ratio{job_id="43"} @n2': "0.40x119 0.34x60",
          'rankscope_job_running{job_id="43"} @n2': "1x300"}, {119: [], 150: [OWNER]}),
    Case("RankscopeMfuLow", "a run that is young, and one that has ended",
         {**JOB, MFU: "_x140 0.40x15 0.30x60", 'rankscope_training_model_flops_utilization_ratio{job_id="43"} @n2': "0.4x119 0.1x60",
          'rankscope_job_running{job_id="43"} @n2': "1x119 0x60"}, {150: [], 180: []}),
    Case("RankscopeBusBandwidthLow", "half of what it was", {**JOB, BUS: "400x119 200x60"},
         {119: [], 150: [{**OWNER, "operation": "all_reduce", "domain": "infrastructure"}]}),
    Case("RankscopeBusBandwidthLow", "five minutes of evaluation", {**JOB, BUS: "400x119 0x4 400x60"}, {119: [], 125: [], 135: [], 150: []}),
    Case("RankscopeStepsSlow", "steps that take half as long again", {**JOB, STEP: "2x119 3x60"}, {119: [], 150: [OWNER]}),
    Case("RankscopeStepsSlow", "steps that take a tenth longer, and shorter ones", {
        **JOB, STEP: "2x119 2.2x60", 'rankscope_training_step_seconds{job_id="43"} @n2': "3x119 1x60",
        'rankscope_job_running{job_id="43"} @n2': "1x300"}, {150: [], 175: []}),
    Case("RankscopeIdleAllocation", "nothing has run for half an hour", {**JOB, **GPU, ACTIVE: "0.9x30 0x90"},
         {45: [], 70: [{**OWNER, "domain": "workload"}]}),
    Case("RankscopeIdleAllocation", "a GPU without a job, and one that was allocated just now",
         {**JOB, ACTIVE: "0x90", 'rankscope_gpu_engine_active_ratio{gpu="4",gpu_uuid="GPU-b"} @n1': "0x90",
          'rankscope_job_gpu{job_id="42",gpu="4",gpu_uuid="GPU-b",source="slurm"} @n1': "_x70 1x20"}, {60: [], 90: []}),
]

CHECKPOINTS = [
    Case("RankscopeCheckpointOverdue", "three intervals without one", {**JOB, LAST: "0x120", USUAL: "1200x120"},
         {45: [], 60: [{**OWNER, "domain": "workload"}]}),
    Case("RankscopeCheckpointOverdue", "the daemon's own warning, by steps",
         {**JOB, 'rankscope_warning_active{job_id="42",warning="checkpoint_overdue"} @n1': "0x9 1x60"}, {9: [], 20: [OWNER]}),
    Case("RankscopeCheckpointOverdue", "two intervals, and a job that has ended",
         {**JOB, LAST: "0x40 2400x40", USUAL: "1200x120", 'rankscope_checkpoint_last_timestamp_seconds{job_id="43"} @n2': "0x90",
          'rankscope_checkpoint_interval_seconds{job_id="43"} @n2': "1200x90", 'rankscope_job_running{job_id="43"} @n2': "1x20 0x70"},
         {45: [], 80: []}),
    Case("RankscopeCheckpointUnusable", "a save that failed",
         {**JOB, 'rankscope_warning_active{job_id="42",warning="checkpoint_save_failed"} @n1': "1x60"},
         {5: [], 15: [{**OWNER, "warning": "checkpoint_save_failed"}]}),
    Case("RankscopeCheckpointUnusable", "a save that goes on, and another warning",
         {**JOB, 'rankscope_checkpoint_whole{job_id="42"} @n1': "0x60", 'rankscope_warning_active{job_id="42",warning="loss_flat"} @n1': "1x60",
          'rankscope_warning_active{job_id="42",warning="checkpoint_torn"} @n1': "0x60"}, {30: []}),
    Case("RankscopeCheckpointDiskNearlyFull", "full in five hours", {**JOB, FULL_IN: "_x5 18000x60"}, {5: [], 15: [OWNER]}),
    Case("RankscopeCheckpointDiskNearlyFull", "room for two saves", {**JOB, FREE: "250x60", SIZE: "100x60"}, {15: [OWNER]}),
    Case("RankscopeCheckpointDiskNearlyFull", "room for four, and for a day",
         {**JOB, FREE: "400x60", SIZE: "100x60", FULL_IN: "86400x60"}, {15: [], 50: []}),
    Case("RankscopeCheckpointDiskFull", "two jobs: one page",
         {**JOB, FREE: "90x60", SIZE: "100x60", 'rankscope_checkpoint_full_in_seconds{job_id="43"} @n2': "1800x60",
          'rankscope_job_running{job_id="43"} @n2': "1x300"}, {3: [], 10: [{"severity": "critical", "domain": "infrastructure"}]}),
    Case("RankscopeCheckpointDiskFull", "one more fits, and a job that has ended",
         {**JOB, FREE: "110x60", SIZE: "100x60", FULL_IN: "7200x60", 'rankscope_checkpoint_full_in_seconds{job_id="43"} @n2': "60x60",
          'rankscope_job_running{job_id="43"} @n2': "0x300"}, {10: [], 50: []}),
]
CASES = VERDICTS + SPEED + CHECKPOINTS
