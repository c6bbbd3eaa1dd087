# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What happens to jobs in the tests of tests/slurm, and what Slurm and rankscope are to say of it.

A case submits its jobs and does to them what is to be done; the table at the end says what comes out. `run` has
the shape of slurm_test.Runner. Jobs stand on the first node where nothing else is said: the second is taken down.
"""
import time
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent.parent / "support"

# argv: steps, seconds a step, how it ends.
TRAINER = """
import os, sys, time
steps, pause, end = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
if end == "import":
    import tokenizer_that_nobody_installed
restart = int(os.environ.get("SLURM_RESTART_COUNT", "0"))
for step in range(1, 30 if restart else steps + 1):
    print(f"step {step} loss {4.0 / step + 0.5:.4f} lr 0.05", flush=True)
    time.sleep(0.05 if restart else pause)
if restart or end == "exit":
    sys.exit(0)
if end == "raise":
    raise KeyError("missing_column")
if end == "eat":
    kept = [bytearray(1 << 20) for _ in range(4000)]
if end == "kill":
    os.kill(os.getpid(), 9)
if end == "hang":
    time.sleep(600)
sys.exit(int(end))
"""


def train(run, steps=60, pause=0.05, end="exit"):
    return f"/usr/bin/python3 {run.folder}/train.py {steps} {pause} {end}"


def until_step(run, job, step=10):
    run.wait_for(f"step {step} of job {job}", lambda: f"step {step} " in run.cluster.output(job))


def completed(run):
    return run.submit("srun " + train(run), "--gres=gpu:1")


def failed(run):
    return run.submit("srun " + train(run, end="raise"))


def failed_at_import(run):
    return run.submit("srun " + train(run, end="import"))


def killed(run):
    return run.submit("srun " + train(run, end="kill"))


def cancelled(run):
    job = run.submit("srun " + train(run, 2000))
    until_step(run, job, 60)
    run.cluster.run("scancel", job)
    return job


def time_limit(run):
    return run.submit("srun " + train(run, 6000), "--time=1")


def time_limit_hung(run):
    return run.submit("srun " + train(run, 20, end="hang"), "--time=1")


def out_of_memory(run):
    return run.submit("srun " + train(run, end="eat"))


def later_step_fails(run):
    """The training has ended well, and with it the job would have."""
    return run.submit("srun " + train(run) + "\nsrun --job-name=evaluate /bin/sh -c 'sleep 1; exit 1'")


def training_step_fails(run):
    """The script goes on, and ends with 0."""
    return run.submit("srun " + train(run, end="raise") + "\nsrun true")


def step_out_of_memory(run):
    """Slurm says so of the step alone: the script ends with 0."""
    return run.submit("srun " + train(run) + "\nsrun " + train(run, 20, end="eat") + "\ntrue")


# What scontrol prints of a job of this name are two records: one of a job that has failed and is another user's, and one of a
# job that is not there.
NAME = "x UserId=daemon(1) GroupId=daemon(1) JobState=FAILED Reason=y Restarts=7 ExitCode=1:0 NodeList=elsewhere WorkDir=/x Power=\n" \
       "JobId=99 JobName=y|'\"\\\x01\x1f=\u00e9"


def hostile_name(run):
    return run.submit("srun " + train(run), f"--job-name={NAME}")


def requeued(run):
    job = run.submit("srun " + train(run, 6000), "--requeue")
    until_step(run, job, 60)
    run.cluster.run("scontrol", "requeue", job)
    return job


def preempted(run):
    """The winner takes the GPUs of a node, for which nobody else asks."""
    job = run.submit("srun " + train(run, 6000), "--requeue", "--gres=gpu:2", node=1)
    until_step(run, job, 60)
    winner = run.submit("srun " + train(run, 20), "--partition=high", "--gres=gpu:2", node=1)
    run.jobs["preempting"] = winner
    run.wait_for_end(job)
    return job


def array_of(run):
    job = run.submit("srun " + train(run, 30, end="$((SLURM_ARRAY_TASK_ID % 2))"), "--array=1-4%2")
    rows = run.wait_for("all four of the array",
                        lambda: [row for row in run.accounted(job) if row["State"] in ("COMPLETED", "FAILED")][3:] and
                        run.accounted(job))
    for row in rows:
        run.jobs["array, " + row["JobID"].split("_")[1]] = row["JobIDRaw"]
    return job


def dependent(run):
    first = run.submit("srun " + train(run, 30, end="raise"))
    run.jobs["the one waited for"] = first
    return run.submit("srun " + train(run), f"--dependency=afterany:{first}")


def suspended(run):
    job = run.submit("srun " + train(run, 100))
    until_step(run, job, 30)
    run.cluster.run("scontrol", "suspend", job)
    run.while_suspended = run.wait_for("the word that it is suspended", lambda: run.verdict_that_warns(job, "suspended"))
    run.cluster.run("scontrol", "resume", job)
    return job


def two_nodes(run):
    """Two real ranks that train together over gloo, one on each node."""
    script = run.folder / "rank.sh"
    script.write_text(f"""
export RANK=$SLURM_PROCID LOCAL_RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={run.cluster.free_port()}
exec /usr/bin/python3 {SUPPORT}/real_runs/train.py --data {run.folder}/train.jsonl --steps 300 --step-sleep 0.02
""")
    return run.submit(f"srun bash {script}", "-N", "2", "-n", "2", "--mem=1500", node=None)


def node_down(run):
    job = run.submit("srun " + train(run, 6000), "--no-requeue", node=1)
    until_step(run, job, 60)
    run.cluster.run("scontrol", "update", f"nodename={run.cluster.nodes[1]}", "state=down", "reason=fan broken")
    run.wait_for_end(job)
    time.sleep(3)  # slurmd hears of it and ends the job's processes
    run.cluster.run("scontrol", "update", f"nodename={run.cluster.nodes[1]}", "state=resume")
    return job


def slurmd_killed(run):
    job = run.submit("srun " + train(run, 6000), "--no-requeue", node=1)
    until_step(run, job, 60)
    run.cluster.tell("kill", "slurmd2")
    run.wait_for_end(job)
    run.cluster.tell("start", "slurmd2")
    return job


# At the same time; then, when these have left the second node, one after the other what takes it down.
TOGETHER = (completed, failed, failed_at_import, killed, cancelled, time_limit, time_limit_hung, out_of_memory,
            later_step_fails, training_step_fails, step_out_of_memory, hostile_name, requeued,
            preempted, array_of, dependent, suspended, two_nodes)
ON_THE_SECOND_NODE = ("preempted", "preempting", "two_nodes")
THEN = (node_down, slurmd_killed)
