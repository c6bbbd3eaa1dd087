# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
from . import exporter, fleet, gpu, job, node, slurm
from .panels import GREEN_OR_RED, Board, row, stat, text, verdicts

BOARDS = (fleet, job, node, gpu, slurm, exporter)
QUESTIONS = "\n".join(["| I want to know | board |", "| --- | --- |"] + [
    f"| {module.BOARD.asks} | [{module.BOARD.title}](/d/rankscope-{module.BOARD.name}?${{datasource:queryparam}}&${{__url_time_range}}) |"
    for module in BOARDS])

BOARD = Board(
    "home", "Home", "Where do I look?",
    row("Now, and which board answers which question",
        stat("Jobs running", "Number of jobs with a running process on a chosen node.", "none", fleet.NO_JOB,
             "sum(max by (job_id) (rankscope_job_running{@node}))"),
        stat("Critical jobs", "Failed within the last hour, or without progress now.", "none", fleet.NO_JOB, fleet.jobs_with(3),
             colors=GREEN_OR_RED),
        stat("GPUs not healthy", "The board GPU health says why.", "none", fleet.NO_GPU,
             'sum(rankscope_gpu_health{@node,state="healthy"} == bool 0)', colors=GREEN_OR_RED),
        stat("Nodes not scraped", "Exporters whose last scrape failed; nothing is known of the jobs there.", "none", fleet.NO_NODE,
             "sum(up{@node} == bool 0)", colors=GREEN_OR_RED),
        stat("Sources stopped", "Sources of evidence that worked in the last 6 hours and do not work now, over all chosen nodes.", "none",
             fleet.NO_NODE, "sum(max_over_time(rankscope_source_up{@node}[6h]) - rankscope_source_up{@node})", colors=GREEN_OR_RED),
        stat("Nodes out of service", "Slurm nodes that are down, draining or drained.", "none", slurm.NO_SLURM,
             'sum(max by (state) (rankscope_slurm_nodes{@node,state=~"down|drain.*|fail.*"}))', colors=GREEN_OR_RED),
        text("Boards", "Each board answers one question.", QUESTIONS, size=(24, 9))),
    row("Verdicts", verdicts("Verdicts", "The verdict of each job, worst first. Click a job for its board.", fleet.NO_JOB, "@node", size=(24, 9))))
