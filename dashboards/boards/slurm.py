# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
from .panels import GREEN_OR_RED, Board, bars, lines, row, stat, strip, switch_mapping, table

NO_SLURM = "No exporter with `slurm.role: controller` has been scraped, or it gets no answer from slurmctld"
NO_GPU = NO_SLURM + "; or no node has GPUs that Slurm knows of"

BOARD = Board(
    "slurm", "Slurm", "Is Slurm well, what waits, and which nodes are out of service?",
    row("Now",
        stat("Jobs running", "Jobs that hold resources and run.", "none", NO_SLURM, 'sum(max by (partition) (rankscope_slurm_jobs{@node,state="running"}))'),
        stat("Jobs pending", "Jobs that wait; one that waits for several partitions counts in each.", "none", NO_SLURM,
             'sum(max by (partition) (rankscope_slurm_jobs{@node,state="pending"}))'),
        stat("Share of GPUs allocated", "Share of the partitions' GPUs that are allocated; a GPU of several partitions counts in each.", "percentunit", NO_GPU,
             'sum(max by (partition) (rankscope_slurm_partition_gpus{@node,state="allocated"})) '
             '/ sum(max by (partition) (rankscope_slurm_partition_gpus{@node,state="total"}))'),
        stat("Nodes out of service", "Nodes that are down, draining or drained.", "none", NO_SLURM,
             'sum(max by (state) (rankscope_slurm_nodes{@node,state=~"down|drain.*|fail.*"}))', colors=GREEN_OR_RED),
        stat("Since the last answer", "Time since slurmctld last answered a query of all jobs.", "s", NO_SLURM,
             "time() - max(rankscope_slurm_last_answer_timestamp_seconds{@node})", colors=((None, "green"), (120, "yellow"), (300, "red"))),
        stat("Last scheduling cycle", "Duration of slurmctld's last scheduling cycle.", "s", NO_SLURM, "max(rankscope_slurm_schedule_cycle_seconds{@node})",
             colors=((None, "green"), (1, "yellow"), (10, "red")))),
    row("Queue",
        lines("Jobs by state", "Jobs that wait or hold resources, by partition and state.", "none", NO_SLURM,
              ("{{partition}} {{state}}", "max by (partition, state) (rankscope_slurm_jobs{@node})"), stacked=True),
        bars("Why jobs wait", "Pending jobs by the reason that Slurm gives.", "none", "No job is pending, or " + NO_SLURM, "{{reason}}",
             "topk(15, max by (reason) (rankscope_slurm_pending_jobs{@node}))"),
        bars("Whose jobs", "The users with the most jobs, pending and running.", "none", "No user has a job, or " + NO_SLURM, "{{user}} ({{account}}) {{state}}",
             "topk(15, max by (user, account, state) (rankscope_slurm_user_jobs{@node}))"),
        lines("Jobs started and ended", "Jobs per second that slurmctld counted as submitted, started, completed, cancelled or failed.", "cps", NO_SLURM,
              ("{{kind}}", "max by (kind) (rate(rankscope_slurm_job_changes_total{@node}[$__rate_interval]))"))),
    row("Nodes",
        lines("Nodes by state", "Slurm nodes by state.", "none", NO_SLURM, ("{{state}}", "max by (state) (rankscope_slurm_nodes{@node})"), stacked=True),
        table("Out of service", "Why each node is out of service, in the words of whoever took it out.", "none", "Every node is in service, or " + NO_SLURM,
              "max by (node, reason_class, reason) (rankscope_slurm_node_reason_info{@node})", ("node", "reason_class", "reason"), size=(12, 8), value=None),
        strip("Nodes that were out of service", "Nodes that are or have been out of service since the exporter started, and when.", "none",
              "Every node has been in service since the exporter started, or " + NO_SLURM, "{{node}}",
              '1 - max by (node) (rankscope_slurm_node_state{@node,state="up"})', size=(24, 7), colors=GREEN_OR_RED,
              mappings=[switch_mapping(("in service", "green"), ("out of service", "red"))])),
    row("Partitions",
        lines("GPUs allocated", "GPUs of each partition that are allocated to jobs.", "none", NO_GPU,
              ("{{partition}} allocated", 'max by (partition) (rankscope_slurm_partition_gpus{@node,state="allocated"})'),
              ("{{partition}} in all", 'max by (partition) (rankscope_slurm_partition_gpus{@node,state="total"})')),
        lines("GPUs idle", "GPUs of each partition that are idle on nodes that are in service.", "none", NO_GPU,
              ("{{partition}}", 'max by (partition) (rankscope_slurm_partition_gpus{@node,state="idle"})'), stacked=True),
        lines("CPUs allocated", "Share of each partition's CPUs that are allocated.", "percentunit", NO_SLURM,
              ("{{partition}}", 'max by (partition) (rankscope_slurm_partition_cpus{@node,state="allocated"}) '
                                '/ max by (partition) (rankscope_slurm_partition_cpus{@node,state="total"})'), max=1),
        lines("Memory allocated", "Share of each partition's memory that is allocated.", "percentunit", NO_SLURM,
              ("{{partition}}", 'max by (partition) (rankscope_slurm_partition_memory_bytes{@node,state="allocated"}) '
                                '/ max by (partition) (rankscope_slurm_partition_memory_bytes{@node,state="total"})'), max=1)),
    row("slurmctld",
        lines("Scheduling cycles", "Duration of the main scheduler's cycles, and of the backfill's.", "s", NO_SLURM,
              ("main, last", "max(rankscope_slurm_schedule_cycle_seconds{@node})"), ("main, mean", "max(rankscope_slurm_schedule_cycle_mean_seconds{@node})"),
              ("main, longest", "max(rankscope_slurm_schedule_cycle_max_seconds{@node})"), ("backfill, last", "max(rankscope_slurm_backfill_seconds{@node})")),
        lines("Queues inside Slurm", "Messages and accounting records that slurmctld has not sent yet, and its threads. Accounting records that pile up mean "
              "that slurmdbd does not answer.", "none", NO_SLURM,
              ("to nodes", "max(rankscope_slurm_agent_queue_size{@node})"), ("to slurmdbd", "max(rankscope_slurm_dbd_agent_queue_size{@node})"),
              ("server threads, of 256", "max(rankscope_slurm_server_threads{@node})")),
        lines("RPCs", "The ten kinds of RPC that slurmctld serves most, per second.", "cps", NO_SLURM,
              ("{{rpc}}", "topk(10, max by (rpc) (rate(rankscope_slurm_rpc_calls_total{@node}[$__rate_interval])))")),
        lines("Time in RPCs", "The ten kinds of RPC that slurmctld spends most time on.", "percentunit", NO_SLURM,
              ("{{rpc}}", "topk(10, max by (rpc) (rate(rankscope_slurm_rpc_seconds_total{@node}[$__rate_interval])))")),
        lines("Calls of Slurm's commands", "Calls per second that rankscope makes, all nodes together.", "cps", NO_SLURM,
              ("{{call}}", "sum by (call) (rate(rankscope_slurm_calls_total{@node}[$__rate_interval]))")),
        lines("Calls that failed", "Failed calls of Slurm's commands since the exporters started, by reason.", "none", "No call has failed",
              ("{{call}}: {{reason}}", "sum by (call, reason) (rankscope_slurm_call_errors_total{@node})"))),
    hours=6)
