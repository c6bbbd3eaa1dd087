# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Alerts on jobs: one per job and cause, never one per rank. The exporters show a verdict until an hour after a failure, and so long
its alert lasts."""
from rule import Alert

HANG = 'code=~"C1|C2|C3|X10"'
# A job that hung and has ended hangs no more.
LIVE_HANG = f'{HANG},state!="final"'


def verdict(*choices):
    return "\nor\n".join(f"max by (<cluster>, job_id, family, code, sub, domain) (rankscope_verdict_info{{{choice}}})" for choice in choices)


def not_live_hang(choice):
    return verdict(choice + "," + HANG.replace("=~", "!~"), choice + "," + HANG + ',state="final"')


def slower(metric, by):
    """`metric` of a run that has a past, below what it was."""
    now = f"max by (<cluster>, {by}) (quantile_over_time(0.5, {metric}[<recent>]))"
    before = f"max by (<cluster>, {by}) (quantile_over_time(0.5, {metric}[<past>] offset <recent>))"
    return f"""
{now}
  / ({before} > 0) < <drop>
and on (<cluster>, {by}) max by (<cluster>, {by}) ({metric} offset <age>)
and on (<cluster>, job_id) max by (<cluster>, job_id) (rankscope_job_running) == 1"""


FULL = ("(rankscope_checkpoint_full_in_seconds < <full_soon> or rankscope_checkpoint_free_bytes < (rankscope_checkpoint_last_bytes > 0)) "
        "and on (<cluster>, job_id) rankscope_job_running == 1")
LIVE = [
    Alert("RankscopeJobInfrastructureFault", "job", "critical", "", "<held>", not_live_hang('severity="critical",domain="infrastructure"'),
          "Infrastructure has broken a training job.",
          """Job {{ $labels.job_id }} of {{ $labels.user }}: {{ $labels.code }} {{ $labels.family }}{{ if $labels.sub }} ({{ $labels.sub }}){{
          end }}. The job's page has the evidence, the ranks and what to do.""", nodes=True),
    Alert("RankscopeJobHangs", "job", "critical", "", "1m", verdict(LIVE_HANG),
          "A training job stands still and holds its GPUs.",
          """Job {{ $labels.job_id }} of {{ $labels.user }}: {{ $labels.code }} {{ $labels.family }}{{ if $labels.sub }} ({{ $labels.sub }}){{
          end }}. The job's page names the ranks that hold up the others; save their stacks before the job is ended.""", nodes=True),
    Alert("RankscopeJobFailed", "job", "warning", "", "1m", not_live_hang('severity="critical",domain!="infrastructure",code!="X19"'),
          "A training job has failed, or trains in vain.",
          """Job {{ $labels.job_id }} of {{ $labels.user }}: {{ $labels.code }} {{ $labels.family }}{{ if $labels.sub }} ({{ $labels.sub }}){{
          end }}, domain {{ $labels.domain }}. The job's page has the evidence and what to do.""", nodes=True),
    Alert("RankscopeJobDegraded", "job", "warning", "", "5m", verdict('severity="warning",state="live"'),
          "A training job runs worse than it should.",
          """Job {{ $labels.job_id }} of {{ $labels.user }}: {{ $labels.code }} {{ $labels.family }}{{ if $labels.sub }} ({{ $labels.sub }}){{
          end }}, domain {{ $labels.domain }}. The job's page has the ranks and the numbers.""", nodes=True),
    # Restarts by Slurm: who starts a program ten times by hand in one allocation makes ten attempts and no storm.
    Alert("RankscopeRestartStorm", "job", "warning", "unknown", "1m", """
          max by (<cluster>, job_id) (rankscope_verdict_info{code="X19"})
          or
          count by (<cluster>, job_id) (count by (<cluster>, job_id, restart_count) (last_over_time(rankscope_job_info[1h]))) > <restarts>""",
          "A training job restarts again and again.",
          """Job {{ $labels.job_id }} of {{ $labels.user }} was restarted at least <restarts> times within an hour, or restarts without progress.
          It holds nodes and trains nothing."""),
    Alert("RankscopeRanksUninterruptible", "job", "warning", "infrastructure", "5m",
          "count by (<cluster>, job_id) (min_over_time(rankscope_rank_uninterruptible_threads[10m]) > 0)",
          "Threads of a job's ranks have been in uninterruptible sleep for minutes.",
          """{{ $value }} ranks of job {{ $labels.job_id }} of {{ $labels.user }} have had threads in state D for ten minutes. They wait for a
          device or a file server, and no signal ends them."""),
    Alert("RankscopeBusBandwidthLow", "job", "warning", "infrastructure", "10m",
          slower("rankscope_job_collective_bus_bandwidth_min_bytes_per_second", "job_id, operation"),
          "The bus bandwidth of a job's collectives is far below its own past.",
          """Job {{ $labels.job_id }} of {{ $labels.user }}: {{ $labels.operation }} moves {{ $value | humanizePercentage }} of the bytes per
          second that it moved over the <past> before."""),
    Alert("RankscopeMfuLow", "job", "warning", "unknown", "10m", slower("rankscope_training_model_flops_utilization_ratio", "job_id"),
          "The MFU of a job is far below its own past.",
          """Job {{ $labels.job_id }} of {{ $labels.user }} reaches {{ $value | humanizePercentage }} of the model FLOPs utilization that it
          had over the <past> before."""),
    Alert("RankscopeStepsSlow", "job", "warning", "unknown", "10m", """
          max by (<cluster>, job_id) (quantile_over_time(0.5, rankscope_training_step_seconds[<past>] offset <recent>))
            / (max by (<cluster>, job_id) (quantile_over_time(0.5, rankscope_training_step_seconds[<recent>])) > 0) < <drop>
          and on (<cluster>, job_id) max by (<cluster>, job_id) (rankscope_training_step_seconds offset <age>)
          and on (<cluster>, job_id) max by (<cluster>, job_id) (rankscope_job_running) == 1""",
          "The training steps of a job take far longer than in its own past.",
          """Job {{ $labels.job_id }} of {{ $labels.user }} runs at {{ $value | humanizePercentage }} of the steps per second that it made
          over the <past> before."""),
    Alert("RankscopeIdleAllocation", "job", "warning", "workload", "5m", """
          count by (<cluster>, job_id) (
            max by (<cluster>, instance, gpu_uuid, job_id) (rankscope_job_gpu)
              and max by (<cluster>, instance, gpu_uuid, job_id) (rankscope_job_gpu offset <idle>)
              and on (<cluster>, instance, gpu_uuid)
                max by (<cluster>, instance, gpu_uuid) (max_over_time(rankscope_gpu_engine_active_ratio[<idle>])) < <idle_ratio>
          )""",
          "A job holds GPUs on which nothing runs.",
          """{{ $value }} GPUs of job {{ $labels.job_id }} of {{ $labels.user }} have been idle for <idle>."""),
]

CHECKPOINTS = [
    Alert("RankscopeCheckpointOverdue", "job", "warning", "workload", "5m", """
          (
            time() - max by (<cluster>, job_id) (rankscope_checkpoint_last_timestamp_seconds)
              > <overdue> * clamp_min(max by (<cluster>, job_id) (rankscope_checkpoint_interval_seconds), 60)
            and on (<cluster>, job_id) max by (<cluster>, job_id) (rankscope_job_running) == 1
          )
          or max by (<cluster>, job_id) (rankscope_warning_active{warning="checkpoint_overdue"} == 1)""",
          "A job has saved no checkpoint for much longer than usual.",
          """Job {{ $labels.job_id }} of {{ $labels.user }} saved its last checkpoint much longer ago than it used to wait between two. A
          failure now loses all work since then."""),
    Alert("RankscopeCheckpointUnusable", "job", "warning", "unknown", "10m", """
          max by (<cluster>, job_id, warning) (rankscope_warning_active{warning=~"checkpoint_torn|checkpoint_save_failed"} == 1)""",
          "A checkpoint of a job was not saved whole.",
          """Job {{ $labels.job_id }} of {{ $labels.user }}: {{ $labels.warning }}. A restart from this checkpoint would fail; the one before
          it may be good."""),
    Alert("RankscopeCheckpointDiskNearlyFull", "job", "warning", "infrastructure", "5m", """
          min by (<cluster>, job_id) (rankscope_checkpoint_full_in_seconds) < <full_in>
          or
          min by (<cluster>, job_id) (rankscope_checkpoint_free_bytes < <saves_left> * (rankscope_checkpoint_last_bytes > 0))""",
          "The file system of a job's checkpoints is nearly full.",
          """Job {{ $labels.job_id }} of {{ $labels.user }} writes its checkpoints to a file system that will be full within hours, or that
          has room for fewer than <saves_left> more."""),
    # One for all jobs: they share file systems, which the exporters do not name.
    Alert("RankscopeCheckpointDiskFull", "cluster", "critical", "infrastructure", "5m", f"""
          count by (<cluster>) (max by (<cluster>, job_id) ({FULL}))""",
          "A file system of checkpoints is about to be full under running jobs.",
          """The checkpoints of {{ $value }} running jobs will not fit soon, or the next one does not fit:{{
          range query `topk(8, max by (<cluster>, job_id) (%s))` }} {{ . | label "job_id" }}{{ end }}""" % FULL),
]
