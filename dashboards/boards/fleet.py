# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
from .panels import (GREEN_OR_RED, HOST, JOB, Board, bars, lines, override, row, severity_mapping, stat, strip, table, verdict_rank, verdicts)

NO_JOB = "No job: none runs on the chosen nodes, and none has ended in the last hour"
NO_NODE = "No exporter has been scraped: see the targets of Prometheus"
NO_GPU = "No GPU: the source nvml is not up on the chosen nodes"
NO_ACTIVITY = "No rank uses a GPU, or its GPU does not count the activity of its multiprocessors"


def jobs_with(severity):
    """A real 0 where there are jobs and none has this severity."""
    return f'sum(max by (job_id) ({verdict_rank("@node")}) == bool {severity})'


def by_verdict():
    panel = lines("Jobs by verdict", "Number of jobs by the family of their verdict.", "none", NO_JOB,
                  ("{{family}}", "count by (family) (max by (job_id, family) (rankscope_verdict_info{@node}))"), size=(12, 9), stacked=True)
    override(panel, "healthy", color={"mode": "fixed", "fixedColor": "green"})
    return panel


BOARD = Board(
    "fleet", "Fleet", "Which jobs and nodes need me now?",
    row("Now",
        stat("Jobs running", "Number of jobs with a running process on a chosen node.", "none", NO_JOB,
             "sum(max by (job_id) (rankscope_job_running{@node}))"),
        stat("Critical", "Number of jobs whose verdict is critical: failed, or without progress. A failed job counts for an hour.", "none", NO_JOB,
             jobs_with(3), colors=GREEN_OR_RED),
        stat("Warning", "Number of jobs whose verdict is a warning: they run, but worse than they should.", "none", NO_JOB,
             jobs_with(2), colors=((None, "green"), (1, "yellow"))),
        stat("GPUs of critical jobs", "GPUs of running jobs whose verdict is critical: they are occupied and do nothing of use.", "none",
             "No GPU is known to belong to a job: Slurm, the container runtime or a CUDA call must show whose it is",
             'sum((max by (instance, job_id, gpu_uuid) (rankscope_job_gpu{@node}) * on (job_id) group_left () (max by (job_id) '
             f'({verdict_rank("@node")}) == bool 3)) * on (instance, job_id) group_left () max by (instance, job_id) (rankscope_job_running{{@node}}))',
             colors=GREEN_OR_RED),
        stat("Nodes not scraped", "Exporters whose last scrape failed; nothing is known of the jobs there.", "none", NO_NODE,
             "sum(up{@node} == bool 0)", colors=GREEN_OR_RED),
        stat("GPUs not healthy", "GPUs that report anything but full health. The board GPU health says what.", "none", NO_GPU,
             'sum(rankscope_gpu_health{@node,state="healthy"} == bool 0)', colors=GREEN_OR_RED),
        verdicts("Verdicts", "The verdict of each job, worst first. Click a job for its board or its verdict. Where nodes see the same, one "
                 "stands for all.", NO_JOB, "@node", size=(24, 9))),
    row("Over time",
        strip("Severity of each job", "How bad each job's verdict was, and when. The marks above are changes of verdicts.", "none", NO_JOB, JOB,
              f'max by (job_id) ({verdict_rank("@node")})', size=(12, 9), mappings=[severity_mapping(True)]),
        by_verdict()),
    row("Efficiency",
        bars("Least active GPUs", "The ten jobs whose ranks keep their GPUs least busy: median over the last minute of the share of the time in which "
             "the multiprocessors had work, mean of the ranks.", "percentunit", NO_ACTIVITY, JOB,
             "bottomk(10, avg by (job_id) (rankscope_rank_sm_active_median_ratio{@node}))", max=1,
             colors=((None, "red"), (0.5, "yellow"), (0.7, "green"))),
        bars("Longest without a step", "The ten running jobs whose last progress record is oldest. A hanging job is here.", "s",
             "No running job prints its steps in a format that rankscope knows; `rankscope list formats` names them", JOB,
             "topk(10, time() - max by (job_id) (rankscope_training_last_step_timestamp_seconds{@node}) and on (job_id) "
             "max by (job_id) (rankscope_job_running{@node}) == 1)", colors=((None, "green"), (60, "yellow"), (300, "red"))),
        lines("GPUs in jobs and GPUs at work", "GPUs of the chosen nodes, those that belong to a job, and those on which a process of the job computes.",
              "none", NO_GPU, ("GPUs", "count(max by (instance, gpu_uuid) (rankscope_gpu_up{@node}))"),
              ("of jobs", "count(max by (instance, gpu_uuid) (rankscope_job_gpu{@node}))"),
              ("at work", "sum(max by (instance, gpu_uuid) (rankscope_job_gpu_attached{@node}))")),
        lines("Power", "Power that the GPUs of each node draw.", "watt", NO_GPU, (HOST, "sum by (instance) (rankscope_gpu_power_watts{@node})"),
              stacked=True)),
    row("Nodes",
        table("Nodes that need a look", "Nodes with a GPU that is not healthy: how many of its GPUs.", "none",
              "No GPU: the source nvml is not up on the chosen nodes", 'topk(50, sum by (instance) (rankscope_gpu_health{@node,state="healthy"} == bool 0))',
              ("instance",), size=(12, 8), value="GPUs not healthy", largest_first=True),
        table("Sources that have stopped", "Sources of evidence by node that worked in the last 6 hours and do not work now (1). Sources that a node "
              "never had, such as InfiniBand, are not meant.", "none", NO_NODE,
              "topk(50, max by (instance, source) (max_over_time(rankscope_source_up{@node}[6h]) - rankscope_source_up{@node}))",
              ("instance", "source"), size=(12, 8), value="stopped", largest_first=True)))
