# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
from .panels import (HOST, JOB, RANK, RANK_GPU, RED_OR_GREEN, Board, extremes, heat, lines, on_gpus_of_ranks, row, severity_mapping, stat, strip, switch_mapping,
                     table, verdict_rank, verdicts)

CHOOSE = "No such job: choose a training job at the top. A job is listed until an hour after its failure, five minutes after a healthy end"
NO_RECORD = "The job has printed no progress record that has it in a format that rankscope knows; `rankscope list formats` names them"
NO_RANK = "No rank: the job has ended, or its processes have not been found; `rankscope explain PID` says why"
NO_GPU = "No rank uses a GPU, or NVML does not report this; the source nvml must be up"
NO_CUDA = "No rank calls CUDA, or the source cuda is not up: it needs BPF, see `rankscope check`"
NO_NCCL = "No rank calls NCCL, or the source nccl is not up: it needs BPF, see `rankscope check`"
NO_BPF = "No rank, or the source {} is not up: it needs BPF, see `rankscope check`"
NO_RAS = "NCCL's RAS has not answered: it needs NCCL 2.24 or later, and rank 0 on a chosen node"
NO_SAVE = "The job has saved no checkpoint that was seen: its files are found by the source io, else its log must name them"
NO_CGROUP = "The job has no cgroup of its own, or the kernel has no PSI (boot with psi=1)"
NO_PORT = "The node has no InfiniBand, RoCE or EFA port"
UP = {0: ("no", "dark-red"), 1: ("yes", "green")}


def by_rank(metric, function="max"):
    return f"{function} by (instance, job_id, rank) ({metric})"


def spread(metric, function="max"):
    return extremes(by_rank(metric, function))


def least(metric):
    return f"bottomk by (job_id) (32, {by_rank(metric)})"


def rate(metric, labels="{@job}"):
    return f"rate({metric}{labels}[$__rate_interval])"


def printed(metric):
    """What the job printed; every node that reads the text says the same."""
    return f"max by (job_id) ({metric}{{@job}})"


VERDICT = row(
    "Verdict",
    verdicts("Verdict", "What ails the job, or that it is healthy, with the confidence. Click the job for all of the verdict: evidence, what is ruled out, "
             "what to do.", CHOOSE, "@job", size=(24, 6)),
    strip("Severity over time", "How bad the verdict was, and when.", "none", CHOOSE, "{{job_id}} {{family}}",
          f"max by (job_id, family) ({verdict_rank()})", size=(12, 6), mappings=[severity_mapping(True)]),
    lines("Confidence", "Confidence of the verdict for the family that it names and, while the job runs, the score of every other family that some "
          "evidence supports.", "percentunit", CHOOSE,
          ("{{job_id}} {{family}}", "max by (job_id, family) (rankscope_verdict_confidence_ratio{@job})"), size=(12, 6), max=1),
    table("Warnings", "Warnings that were raised for the job: 1 while active. They never change the verdict.", "none",
          "No warning has been raised for the job", "max by (job_id, warning) (rankscope_warning_active{@job})", ("warning", "job_id"), size=(8, 6),
          value="active", largest_first=True),
    table("Evidence", "Stores of evidence that have reported anything about the job (1); a missing store limits the confidence.", "none", CHOOSE,
          "max by (job_id, store) (rankscope_evidence_available{@job})", ("store", "job_id"), size=(8, 6), value="available", largest_first=True),
    table("Attributes", "Who runs it, as what, and on which part of the cluster; empty where Slurm does not know the job.", "none", CHOOSE,
          "max by (job_id, user, job_name, partition, attempt, nodes) (rankscope_job_info{@job})",
          ("job_id", "user", "job_name", "partition", "attempt", "nodes"), size=(8, 6), value=None))

TRAINING = row(
    "Training: what the job prints",
    lines("Loss", "Last loss that the job printed. A gap is a loss that was not finite: see Records that are not finite.", "none", NO_RECORD,
          (JOB, printed("rankscope_training_loss")), min=None),
    lines("Time per step", "Median duration of the recent steps.", "s", NO_RECORD, (JOB, printed("rankscope_training_step_seconds"))),
    lines("Since the last step", "Age of the last progress record of a running job. A hang is a line that climbs.", "s", NO_RECORD,
          (JOB, "time() - max by (job_id) (rankscope_training_last_step_timestamp_seconds{@job}) and on (job_id) "
                "max by (job_id) (rankscope_job_running{@job}) == 1")),
    lines("Progress", "Share of the planned steps that are done.", "percentunit", "The job does not print how many steps it plans",
          (JOB, "max by (job_id) (rankscope_training_step{@job}) / on (job_id) max by (job_id) (rankscope_training_max_steps{@job})"), max=1),
    lines("Gradient norm", "Last gradient norm that the job printed: above 100 it explodes, at 0 it is dead.", "none", NO_RECORD,
          (JOB, printed("rankscope_training_grad_norm")), size=(8, 7)),
    lines("Learning rate", "Last learning rate that the job printed: compare it with the planned schedule.", "none", NO_RECORD,
          (JOB, printed("rankscope_training_learning_rate")), size=(8, 7)),
    lines("Slope of the loss", "Least-squares slope of the loss per step over the recent records: below 0 the job learns.", "none", NO_RECORD,
          (JOB, printed("rankscope_training_loss_slope_per_step")), size=(8, 7), min=None),
    lines("Tokens per second", "Last throughput that the job printed; per GPU if its framework prints it per GPU.", "none", NO_RECORD,
          (JOB, printed("rankscope_training_tokens_per_second")), size=(8, 7)),
    lines("Model FLOPs utilization", "Last MFU that the job printed.", "percentunit", NO_RECORD,
          (JOB, printed("rankscope_training_model_flops_utilization_ratio")), size=(8, 7)),
    lines("Records that are not finite", "Progress records in which a field was NaN or infinite, since the attempt began.", "none", NO_RECORD,
          ("{{job_id}} {{field}}", "max by (job_id, field) (rankscope_training_nonfinite_total{@job})"), size=(8, 7)))

CHECKPOINTS = row(
    "Checkpoints",
    lines("Work at risk", "Rank-seconds that a failure now would lose: since the newest complete checkpoint was begun, times the ranks.", "s", NO_SAVE,
          (JOB, printed("rankscope_checkpoint_work_at_risk_seconds")), size=(12, 7)),
    lines("Age of the newest checkpoint", "Time since the newest complete checkpoint, of running jobs, and the median interval between checkpoints.", "s", NO_SAVE,
          ("{{job_id}} age", "time() - max by (job_id) (rankscope_checkpoint_last_timestamp_seconds{@job}) and on (job_id) "
                             "max by (job_id) (rankscope_job_running{@job}) == 1"),
          ("{{job_id}} interval", printed("rankscope_checkpoint_interval_seconds")), size=(12, 7)),
    stat("Saves", "Number of checkpoints that the job was seen to save.", "none", NO_SAVE, printed("rankscope_checkpoint_saves_total"), legend=JOB, size=(5, 4)),
    stat("Complete", "Whether every file of the newest checkpoint is complete.", "none", NO_SAVE, printed("rankscope_checkpoint_whole"), legend=JOB, size=(5, 4),
         colors=RED_OR_GREEN, mappings=[switch_mapping(("no", "red"), ("yes", "green"))]),
    stat("Size", "Bytes of the newest complete checkpoint on this node.", "bytes", NO_SAVE, printed("rankscope_checkpoint_last_bytes"), legend=JOB, size=(5, 4)),
    stat("Full in", "Time until the file system of the checkpoints is full, at the rate at which it filled between saves.", "s",
         "The file system does not fill up, or has not been seen over three saves", "min by (job_id) (rankscope_checkpoint_full_in_seconds{@job})",
         legend=JOB, size=(4, 4), colors=((None, "red"), (86400, "yellow"), (604800, "green"))),
    stat("Free space", "Free space where the job writes its checkpoints.", "bytes", NO_SAVE, "min by (job_id) (rankscope_checkpoint_free_bytes{@job})",
         legend=JOB, size=(5, 4)))

RANKS = row(
    "Ranks: which one differs? (of more than 16, the eight highest and the eight lowest)",
    table("Ranks", "Where each rank runs and which GPU it computes on.", "none", NO_RANK,
          "max by (job_id, rank, instance, node, local_rank, step_id) (rankscope_rank_info{@job})",
          ("rank", "instance", "node", "local_rank", "step_id", "job_id"), size=(12, 8), value=None),
    strip("Processes", "Whether the process of each rank runs; of more than 32, those that have ended first.", "none", NO_RANK, RANK, least("rankscope_rank_alive{@job}"), size=(12, 8),
          colors=RED_OR_GREEN, mappings=[switch_mapping(("ended", "red"), ("running", "green"))]),
    heat("GPU activity by rank and time", "Share of the time in which the multiprocessors of the rank's GPU had work, median of the last minute; of more than 32 ranks the "
         "least active. A dark "
         "row is a rank that waits or has left; a dark column is a phase of all.", "percentunit", NO_GPU, RANK,
         least("rankscope_rank_sm_active_median_ratio{@job}"), colors=((None, "dark-blue"), (0.1, "blue"), (0.3, "purple"), (0.5, "orange"), (0.7, "yellow")),
         min=0, max=1),
    lines("Ranks declared and running", "How many ranks the launcher has declared, and how many run on the chosen nodes.", "none", NO_RANK,
          ("{{job_id}} declared", "max by (job_id) (rankscope_job_world_size{@job})"),
          ("{{job_id}} running", "sum by (job_id) (max by (job_id, rank) (rankscope_rank_alive{@job}))")),
    strip("Suspended", "Whether all processes of the job on the node are suspended, by the cgroup freezer or a stop signal.", "none", NO_RANK,
          "{{instance}} of {{job_id}}", "max by (instance, job_id) (rankscope_job_suspended{@job})", size=(12, 8), colors=((None, "green"), (1, "orange")),
          mappings=[switch_mapping(("runs", "green"), ("suspended", "orange"))]),
    lines("Oldest collective", "Age of the oldest collective that the rank has entered and not completed. In a hang all lines climb but that of the rank "
          "that is missing.", "s", NO_NCCL, (RANK, spread("rankscope_rank_oldest_collective_seconds{@job}"))),
    lines("Collectives entered", "NCCL collectives that the rank enqueues per second.", "cps", NO_NCCL,
          (RANK, spread(rate("rankscope_nccl_collectives_enqueued_total"), "sum"))),
    lines("Collectives in flight", "Collectives that the rank has enqueued and not completed.", "none", NO_NCCL,
          (RANK, spread("rankscope_rank_collectives_in_flight{@job}"))),
    lines("Collectives behind the first rank", "How many collectives fewer than the first rank of the job each rank has completed.", "none", NO_NCCL,
          (RANK, extremes("max by (job_id) (rankscope_rank_collectives_completed_total{@job}) - on (job_id) group_right () "
                          + by_rank("rankscope_rank_collectives_completed_total{@job}")))),
    lines("Whole job, by NCCL's RAS", "Ranks of the whole job by what NCCL's RAS reports of them, on whichever node they are.", "none", NO_RAS,
          ("{{job_id}} {{state}}", "max by (job_id, state) (rankscope_nccl_ras_ranks{@job})")),
    lines("Operations behind, by NCCL's RAS", "How many operations fewer than the first rank the last rank of a communicator has launched.", "none", NO_RAS,
          (JOB, "max by (job_id) (rankscope_nccl_ras_lag_operations{@job})")),
    lines("Time in communicator initialization", "For how long the rank has been initializing an NCCL communicator: it waits for ranks that do not come.", "s",
          NO_NCCL, (RANK, spread("rankscope_nccl_comm_init_in_flight_seconds{@job}"))),
    lines("Failed CUDA calls", "CUDA calls of the rank that failed, and allocations of GPU memory among them, since it began.", "none", NO_CUDA,
          (RANK, spread("rankscope_cuda_errors_total{@job}")), (RANK + " allocations", spread("rankscope_cuda_alloc_failures_total{@job}"))),
    lines("Kernel launches", "CUDA kernels that the rank launches per second.", "cps", NO_CUDA, (RANK, spread(rate("rankscope_cuda_kernel_launches_total"), "sum"))),
    lines("Time in CUDA synchronization", "Share of the time that the rank spends in CUDA synchronizations: it waits for its GPU.", "percentunit", NO_CUDA,
          (RANK, spread(rate("rankscope_cuda_sync_seconds_total"), "sum"))),
    lines("CPU", "Cores that the rank's process keeps busy.", "none", NO_RANK, (RANK, spread(rate("rankscope_rank_cpu_seconds_total"), "sum"))),
    lines("Waiting off the CPU", "Threads of the rank that wait for a CPU (runnable), a disk, a network file system, a socket or the GPU; idle waits "
          "(sleep, futex) are left out.", "none", NO_BPF.format("wait"),
          (RANK + " {{reason}}", "topk by (job_id, reason) (4, sum by (instance, job_id, rank, reason) ("
           + rate("rankscope_rank_offcpu_seconds_total", '{@job,reason!~"sleep|futex"}') + "))")),
    lines("Resident memory", "Resident memory of the rank's process.", "bytes", NO_RANK, (RANK, spread("rankscope_rank_resident_bytes{@job}"))),
    lines("Threads that cannot be killed", "Threads of the rank in uninterruptible sleep (state D): they wait for a device or a file system.", "none", NO_RANK,
          (RANK, spread("rankscope_rank_uninterruptible_threads{@job}"))))

GPUS = row(
    "GPUs of the ranks (of more than 16, the eight highest and the eight lowest)",
    lines("GPU memory", "GPU memory of the rank's process.", "bytes", NO_GPU,
          (RANK_GPU, extremes("max by (instance, job_id, rank, gpu) (rankscope_gpu_process_memory_used_bytes{@job})"))),
    lines("Power", "Power that the rank's GPU draws; much less than the others' means that it idles or is held back.", "watt", NO_GPU,
          (RANK_GPU, extremes(on_gpus_of_ranks("rankscope_gpu_power_watts{@node}")))),
    lines("Clock of the multiprocessors", "Current clock of the rank's GPU.", "hertz", NO_GPU,
          (RANK_GPU, extremes(on_gpus_of_ranks('rankscope_gpu_clock_hertz{@node,domain="sm"}')))),
    strip("Throttled", "Whether heat, power or a brake limits the clocks of the rank's GPU.", "none", NO_GPU, RANK_GPU,
          "topk by (job_id) (32, " + on_gpus_of_ranks('rankscope_gpu_throttle_active{@node,reason=~"hw_.*|sw_thermal|sw_power_cap"}') + ")", size=(12, 8),
          colors=((None, "green"), (1, "orange")), mappings=[switch_mapping(("no", "green"), ("yes", "orange"))]))

TRAFFIC = row(
    "Network, files and text",
    lines("Collective traffic", "Bytes that the job's ranks on each node hand to NCCL per second, by operation.", "Bps", NO_NCCL,
          ("{{instance}} {{operation}} of {{job_id}}", "sum by (instance, job_id, operation) (" + rate("rankscope_job_collective_bytes_total") + ")")),
    lines("Bus bandwidth, at least", "Lower bound of the bus bandwidth (busbw of nccl-tests) over the last minute, by operation, of the slowest node.", "Bps",
          NO_NCCL + "; or its communicators were made before the exporter saw the process", ("{{operation}} of {{job_id}}",
                                                    "min by (job_id, operation) (rankscope_job_collective_bus_bandwidth_min_bytes_per_second{@job})")),
    lines("TCP traffic", "Bytes per second that the rank's process sends and receives over TCP: collectives too, where NCCL falls back to sockets.", "Bps",
          NO_BPF.format("network"),
          (RANK + " {{direction}}", extremes("sum by (instance, job_id, rank, direction) (" + rate("rankscope_rank_tcp_bytes_total") + ")", "job_id, direction"))),
    lines("RDMA traffic", "Bytes that the node's RDMA ports send and receive per second.", "Bps", NO_PORT,
          (HOST + " sent of {{job_id}}", "sum by (instance, job_id) (" + rate("rankscope_infiniband_sent_bytes_total") + ")"),
          (HOST + " received of {{job_id}}", "sum by (instance, job_id) (" + rate("rankscope_infiniband_received_bytes_total") + ")")),
    lines("TCP retransmits", "Segments per second that the rank's process had to send again.", "cps", NO_BPF.format("network"),
          (RANK, spread(rate("rankscope_rank_tcp_retransmits_total"), "sum"))),
    lines("Failed file calls", "File system calls per second of the rank that failed: no space, quota, I/O error, stale handle, read-only.", "cps",
          NO_BPF.format("io"), (RANK, spread(rate("rankscope_rank_file_errors_total"), "sum"))),
    lines("Stalled by pressure", "Share of the time in which all tasks of the job on the node waited for CPU, I/O or memory.", "percentunit", NO_CGROUP,
          (HOST + " cpu of {{job_id}}", "max by (instance, job_id) (" + rate("rankscope_job_pressure_cpu_stalled_seconds_total") + ")"),
          (HOST + " io of {{job_id}}", "max by (instance, job_id) (" + rate("rankscope_job_pressure_io_stalled_seconds_total") + ")"),
          (HOST + " memory of {{job_id}}", "max by (instance, job_id) (" + rate("rankscope_job_pressure_memory_stalled_seconds_total") + ")")),
    lines("Lines of text", "Lines per second that were read from the job's output; a job that says nothing may hang.", "cps",
          "No output of the job is read: start it with `rankscope run`, or see the sources stdio and stdout_tail",
          ("{{instance}} {{stream}} of {{job_id}}", "sum by (instance, job_id, stream) (" + rate("rankscope_log_lines_total") + ")")))

BOARD = Board("job", "Job", "What ails this job, since when, and which rank?", VERDICT, TRAINING, CHECKPOINTS, RANKS, GPUS, TRAFFIC, choose_job=True)
