# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Recording rules. OWNERS says whose everything is, in exactly one series for each job, GPU, exporter and node: the alerts are joined
with it. JOBS is a few series for each job, whatever its size, for dashboards of many jobs and for federation.

Mimir's defaults (20 rules in a group, 70 groups) hold for both files.
"""
from rule import one

GPU, HOST = "<cluster>, instance, gpu_uuid", "<cluster>, instance"


def only(expression, keys):
    """The series of `expression`, but for those of which there are several for the same keys: whose it is is then not known."""
    return f"({expression} and on ({keys}) count by ({keys}) ({expression}) == 1)"


def gpu_of(metric, labels, over):
    metric = f"last_over_time({metric}[1h])" if over else metric
    return only(f"max by ({GPU}, {labels}) ({metric})", GPU)


def host_of(over):
    running = "max_over_time(rankscope_job_running[1h])" if over else "rankscope_job_running"
    return only(f"(max by ({HOST}, job_id) ({running}) == 1)", HOST)


def with_node(expression):
    return f'label_replace(\n{expression},\n  "node", "$1", "instance", "<node_pattern>")'


def with_owner(name, keys):
    newest = one(name, keys)
    return f"""({newest} * on (<cluster>, job_id) group_left (user, account, partition) {one("training_job:owner:time", "<cluster>, job_id")}
or on ({keys}) {newest}) * time()"""


INFO = "max by (<cluster>, job_id, user, account, partition)"
OWNERS = {
    # What Slurm says of a job comes some seconds after the job, and not to every node: an exporter that knows the partition is
    # believed first, then one that knew it in the last 70 minutes (failed jobs are shown for an hour), then any.
    "training_job:owner:time": f"""
        (topk by (<cluster>, job_id) (1,
            3 * {INFO} (rankscope_job_info{{partition!=""}})
          or
            2 * {INFO} (last_over_time(rankscope_job_info{{partition!=""}}[70m]))
          or
            {INFO} (last_over_time(rankscope_job_info[70m]))
        )
        or on (<cluster>, job_id) max by (<cluster>, job_id) (rankscope_verdict_info)
        or on (<cluster>, job_id) max by (<cluster>, job_id) (rankscope_job_running)) ^ 0 * time()""",
    # The rank and the job that have the GPU, or had it within the last hour: a GPU that fails ends its job.
    "training_job:gpu:time": with_node("  (" + f"\n  or on ({GPU}) ".join([
        gpu_of("rankscope_rank_gpu_info", "job_id, rank", over=False), gpu_of("rankscope_job_gpu", "job_id", over=False),
        gpu_of("rankscope_rank_gpu_info", "job_id, rank", over=True), gpu_of("rankscope_job_gpu", "job_id", over=True),
        f"max by ({GPU}) (last_over_time(rankscope_gpu_up[6h]))"]) + ") ^ 0 * time()"),
    "training_job:gpu_owner:time": with_owner("training_job:gpu:time", GPU),
    # The job of a node that has no other, now or in the last hour.
    "training_job:node:time": with_node("  (" + f"\n  or on ({HOST}) ".join([
        host_of(over=False), host_of(over=True), f"max by ({HOST}) (up{{<targets>}})"]) + ") ^ 0 * time()"),
    "training_job:node_owner:time": with_owner("training_job:node:time", HOST),
    # Two exporters may be on one node: that of its jobs and the controller's.
    "training_job:host_owner:time": """
        topk by (<cluster>, node) (1,
            2 * max by (<cluster>, node, job_id, user, account, partition) (training_job:node_owner:time{job_id!=""})
          or
            max by (<cluster>, node) (training_job:node_owner:time)
        ) ^ 0 * time()""",
}
JOB = "by (<cluster>, job_id)"
ON_JOB = "* on (<cluster>, instance, gpu_uuid) group_left"
JOBS = {
    "training_job:nodes:count": f"count {JOB} (count by (<cluster>, job_id, instance) (rankscope_job_running == 1))",
    "training_job:world_size:max": f"max {JOB} (rankscope_job_world_size)",
    "training_job:ranks_alive:sum": f"sum {JOB} (max by (<cluster>, job_id, rank) (rankscope_rank_alive))",
    "training_job:gpus:count": f"count {JOB} (max by (<cluster>, instance, gpu_uuid, job_id) (rankscope_job_gpu))",
    "training_job:gpu_engine_active_ratio:avg":
        f"avg {JOB} (max by (<cluster>, instance, gpu_uuid, job_id) (rankscope_job_gpu) {ON_JOB} () "
        f"max by ({GPU}) (rankscope_gpu_engine_active_ratio))",
    "training_job:gpu_power_watts:sum":
        f"sum {JOB} (max by (<cluster>, instance, gpu_uuid, job_id) (rankscope_job_gpu_share_ratio) {ON_JOB} () "
        f"max by ({GPU}) (rankscope_gpu_power_watts))",
    "training_job:verdict_nodes:count":
        "count by (<cluster>, job_id, family, code, domain, severity, state) (rankscope_verdict_info)",
    "training_job:step:max": f"max {JOB} (rankscope_training_step)",
    "training_job:step_seconds:max": f"max {JOB} (rankscope_training_step_seconds)",
    "training_job:loss:max": f"max {JOB} (rankscope_training_loss)",
    "training_job:tokens_per_second:max": f"max {JOB} (rankscope_training_tokens_per_second)",
    "training_job:model_flops_utilization_ratio:max": f"max {JOB} (rankscope_training_model_flops_utilization_ratio)",
    "training_job:collective_bus_bandwidth_min_bytes_per_second:avg":
        "avg by (<cluster>, job_id, operation) (rankscope_job_collective_bus_bandwidth_min_bytes_per_second)",
    "training_job:oldest_collective_seconds:max": f"max {JOB} (rankscope_rank_oldest_collective_seconds)",
    "training_job:checkpoint_age_seconds:min": f"time() - max {JOB} (rankscope_checkpoint_last_timestamp_seconds)",
    "training_job:checkpoint_work_at_risk_seconds:max": f"max {JOB} (rankscope_checkpoint_work_at_risk_seconds)",
    "training_job:infiniband_bytes:rate5m":
        f"sum {JOB} (rate(rankscope_infiniband_sent_bytes_total[5m]) + rate(rankscope_infiniband_received_bytes_total[5m]))",
}
