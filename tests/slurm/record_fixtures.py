#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Lets a real Slurm go through each event that rankscope tells apart and keeps what its commands say of it.

    tests/slurm/record_fixtures.py [FOLDER]      default: tests/fixtures/slurm/<version>

EVENT.during.* was asked while the event was under way, EVENT.after.* when the job had come to rest:
scontrol = `scontrol show job -o`, sacct = `sacct -P -D`, nodes = `scontrol show node -o`, out = what the job's output
file then held (the middle of a long one left out). The temporary folder and the kernel are renamed, nothing else is touched. Takes two minutes; needs what the tests need.
"""
import os
import re
import sys
import threading
import time
from pathlib import Path

from cluster import Cluster, why_not

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "slurm"
FIELDS = ("JobIDRaw,JobID,Cluster,User,Account,Partition,JobName,State,Reason,ExitCode,DerivedExitCode,Submit,Eligible,"
          "Start,End,ElapsedRaw,Suspended,TimelimitRaw,NNodes,NodeList,AllocTRES,ReqTRES,SubmitLine,WorkDir,Comment,"
          "AdminComment,SystemComment,Flags,QOS")
TRAIN = """
for step in $(seq {steps}); do echo "step $step loss 0.$((9999 - step)) lr 0.05"; sleep 0.2; done
"""
LONG = TRAIN.format(steps=3000)
SHORT = TRAIN.format(steps=10)
EATER = "/usr/bin/python3 -c 'import time; kept = [bytearray(1 << 20) for _ in range(4000)]; time.sleep(9)'"


class Event:
    def __init__(self, cluster, folder, name):
        self.cluster, self.folder, self.name = cluster, folder, name

    def submit(self, script, *options):
        return self.cluster.submit(script, f"--job-name={self.name}", "--mem=200", *options)

    def until(self, job, *states, limit=150):
        end = time.monotonic() + limit
        while (found := self.cluster.job(job).get("JobState")) not in states:
            if time.monotonic() > end:
                raise RuntimeError(f"{self.name}: job {job} is {found}, not {states}")
            time.sleep(0.1)
        return found

    def run_for(self, job, seconds=2.0):
        self.until(job, "RUNNING")
        time.sleep(seconds)

    def keep(self, moment, *jobs, nodes=False):
        texts = {"scontrol": "".join(self.cluster.run("scontrol", "show", "job", "-o", job, check=False,
                                                      SLURM_TIME_FORMAT="%s") for job in jobs)}
        if moment == "after":
            time.sleep(1)  # accounting hears of it later
        texts["sacct"] = self.cluster.run("sacct", "-P", "-D", "-j", ",".join(jobs), f"--format={FIELDS}",
                                          SLURM_TIME_FORMAT="%s")
        for job in jobs:
            lines = self.cluster.output(job).splitlines(keepends=True)
            texts["out"] = texts.get("out", "") + "".join(lines if len(lines) <= 40 else lines[:10] + lines[-20:])
        if nodes:
            texts["nodes"] = self.cluster.run("scontrol", "show", "node", "-o", SLURM_TIME_FORMAT="%s")
        for kind, text in texts.items():
            self.write(f"{self.name}.{moment}.{kind}.txt", text)

    def write(self, name, text):
        for own, neutral in ((str(self.cluster.folder), "/shared/runs"), (os.uname().release, "6.1.0-21-amd64")):
            text = text.replace(own, neutral).replace(own.replace("/", "\\/"), neutral.replace("/", "\\/"))
        (self.folder / name).write_text(re.sub(r"job-\d+\.sh", "train.sh", text))


def completed(event):
    job = event.submit(SHORT + "srun echo done", "--gres=gpu:1", "--comment=first try")
    event.run_for(job, 1)
    event.keep("during", job)
    event.until(job, "COMPLETED")
    event.keep("after", job)


def failed(event):
    job = event.submit(SHORT + "srun -n 2 /usr/bin/python3 -c 'raise KeyError(\"column\")'", "-n", "2")
    event.until(job, "FAILED")
    event.keep("after", job)


def killed(event):
    """By a signal of its own."""
    job = event.submit(SHORT + "srun bash -c 'kill -SEGV $$'; kill -KILL $$")
    event.until(job, "FAILED", "COMPLETED", "CANCELLED")
    event.keep("after", job)


def cancelled(event):
    job = event.submit("srun bash -c '" + LONG + "'")
    event.run_for(job)
    event.cluster.run("scancel", job)
    event.keep("during", job)
    event.until(job, "CANCELLED")
    event.keep("after", job)


def cancelled_pending(event):
    job = event.submit(SHORT, "--begin=now+1hour")
    event.keep("during", job)
    event.cluster.run("scancel", job)
    event.keep("after", job)


def timeout(event):
    job = event.submit("srun bash -c '" + LONG + "'", "--time=1")
    event.run_for(job)
    event.keep("during", job)
    event.until(job, "TIMEOUT")
    event.keep("after", job)


def oom(event):
    job = event.submit("srun --mem=100 " + EATER)
    event.until(job, "FAILED", "OUT_OF_MEMORY")
    event.keep("after", job)


def oom_batch(event):
    """The script itself is the victim."""
    job = event.submit("exec " + EATER)
    event.until(job, "FAILED", "OUT_OF_MEMORY")
    event.keep("after", job)


def requeued(event):
    job = event.submit(LONG, "--requeue")
    event.run_for(job)
    event.cluster.run("scontrol", "requeue", job)
    event.keep("during", job)
    event.until(job, "PENDING")
    event.keep("waiting", job)
    event.run_for(job)
    event.keep("again", job)
    event.cluster.run("scancel", job)
    event.until(job, "CANCELLED")
    event.keep("after", job)


def requeued_held(event):
    job = event.submit(LONG)
    event.run_for(job)
    event.cluster.run("scontrol", "requeuehold", "State=SpecialExit", job)
    time.sleep(4)
    event.keep("during", job)
    event.cluster.run("scancel", job)
    event.keep("after", job)


def array(event):
    job = event.submit(SHORT + "exit $((SLURM_ARRAY_TASK_ID % 2))", "--array=1-6%2")
    time.sleep(2)
    event.keep("during", job)
    time.sleep(13)
    event.keep("after", job)


def dependency(event):
    first = event.submit(SHORT + "exit 3")
    after = event.submit(SHORT + "echo $SLURM_JOB_DEPENDENCY", f"--dependency=afterany:{first}")
    never = event.submit(SHORT, f"--dependency=afterok:{first}")
    event.until(first, "RUNNING")
    event.keep("during", first, after, never)
    event.until(after, "COMPLETED")
    event.keep("after", first, after, never)
    event.cluster.run("scancel", never)


def suspended(event):
    job = event.submit("srun bash -c '" + TRAIN.format(steps=40) + "'")
    event.run_for(job)
    event.cluster.run("scontrol", "suspend", job)
    time.sleep(3)
    event.keep("during", job)
    event.cluster.run("scontrol", "resume", job)
    event.until(job, "COMPLETED")
    event.keep("after", job)


def two_nodes(event):
    job = event.submit("srun hostname >/dev/null; srun bash -c '" + SHORT + "; exit $SLURM_PROCID'", "-N", "2", "-n", "2",
                       "--gres=gpu:1")
    event.run_for(job, 1)
    event.keep("during", job)
    event.until(job, "FAILED")
    event.keep("after", job)


def heterogeneous(event):
    told = event.cluster.run("sbatch", "--parsable", "--mem=100", f"--output={event.cluster.folder}/%j.out",
                             f"--job-name={event.name}", ":", "--mem=100",
                             f"--wrap=srun --het-group=0,1 sleep 5")
    job = told.strip()
    event.run_for(job, 1)
    event.keep("during", job)
    event.until(job, "COMPLETED", "FAILED")
    event.keep("after", job)


def waiting(event):
    """For resources, for a user's release, for a time, for more memory than there is."""
    jobs = [event.submit(SHORT, "-N", "2", "--exclusive"), event.submit(SHORT, "--hold"),
            event.submit(SHORT, "--begin=now+1hour"), event.submit(SHORT, "--gres=gpu:2", "--time=2-03:04:05")]
    time.sleep(3)
    event.keep("during", *jobs)
    event.cluster.run("scancel", *jobs)


# What changes a node comes after all the others, one by one.

def preempted(event):
    victim = event.submit("srun -n 16 bash -c '" + LONG + "'", "-w", event.cluster.nodes[0], "-n", "16", "--mem=6000")
    event.run_for(victim)
    winner = event.submit(SHORT, "-p", "high", "-w", event.cluster.nodes[0], "-n", "16", "--mem=6000")
    event.until(winner, "RUNNING")
    event.keep("during", victim, winner)
    event.until(winner, "COMPLETED")
    event.run_for(victim)
    event.keep("again", victim, winner)
    event.cluster.run("scancel", victim)
    event.until(victim, "CANCELLED")
    event.keep("after", victim, winner)


def node_down(event):
    node = event.cluster.nodes[1]
    stays = event.submit("srun bash -c '" + LONG + "'", "-w", node, "--no-requeue")
    again = event.submit("srun bash -c '" + LONG + "'", "-w", node, "--requeue")
    event.run_for(stays)
    event.run_for(again)
    event.cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=fan broken")
    event.keep("during", stays, again, nodes=True)
    event.until(stays, "NODE_FAIL")
    time.sleep(4)
    event.keep("down", stays, again, nodes=True)
    event.cluster.run("scontrol", "update", f"nodename={node}", "state=resume")
    event.run_for(again)
    event.keep("again", stays, again, nodes=True)
    event.cluster.run("scancel", again)
    event.until(again, "CANCELLED")
    event.keep("after", stays, again, nodes=True)


def drained(event):
    job = event.submit(SHORT, "-w", event.cluster.nodes[1])
    event.run_for(job, 0.5)
    event.cluster.run("scontrol", "update", f"nodename={event.cluster.nodes[1]}", "state=drain", "reason=[node_problem] xid 79")
    event.keep("during", job, nodes=True)
    event.until(job, "COMPLETED")
    time.sleep(1)
    event.keep("after", job, nodes=True)
    event.cluster.run("scontrol", "update", f"nodename={event.cluster.nodes[1]}", "state=resume")


def slurmd_killed(event):
    stays = event.submit("srun bash -c '" + LONG + "'", "-w", event.cluster.nodes[1], "--no-requeue")
    event.run_for(stays)
    event.cluster.tell("kill", "slurmd2")
    time.sleep(12)
    event.keep("during", stays, nodes=True)
    event.until(stays, "NODE_FAIL")
    event.keep("down", stays, nodes=True)
    event.cluster.tell("start", "slurmd2")
    time.sleep(5)
    event.cluster.run("scancel", stays, check=False)
    time.sleep(3)
    event.keep("after", stays, nodes=True)


TOGETHER = (completed, failed, killed, cancelled, cancelled_pending, timeout, oom, oom_batch, requeued, requeued_held, array,
            dependency, suspended, two_nodes, heterogeneous)
ALONE = (preempted, node_down, drained, slurmd_killed)


def main():
    reason = why_not()
    if reason:
        sys.exit(reason)
    with Cluster("n", 1) as cluster:
        version = re.search(r"(\d+\.\d+)", cluster.run("sinfo", "--version"))[1]
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FIXTURES / version
        folder.mkdir(parents=True, exist_ok=True)
        whole = Event(cluster, folder, "cluster")

        def keep_cluster(moment):
            whole.write(f"cluster.{moment}.sdiag.txt", cluster.run("sdiag", SLURM_TIME_FORMAT="%s"))
            whole.write(f"cluster.{moment}.nodes.txt", cluster.run("scontrol", "show", "node", "-o", SLURM_TIME_FORMAT="%s"))
        keep_cluster("before")
        began = time.monotonic()
        failures = []

        def record(how):
            try:
                how(Event(cluster, folder, how.__name__))
            except Exception as error:
                failures.append(f"{how.__name__}: {error}")
        threads = [threading.Thread(target=record, args=(how,)) for how in TOGETHER]
        for thread in threads:
            thread.start()
        time.sleep(3)
        keep_cluster("during")
        whole.write("cluster.during.squeue.json", cluster.run("squeue", "--json"))
        whole.write("cluster.during.sinfo.json", cluster.run("sinfo", "--json"))
        for thread in threads:
            thread.join()
        print(f"together: {time.monotonic() - began:.0f} s", flush=True)
        for how in (waiting, *ALONE):
            began = time.monotonic()
            if how is waiting:
                blocker = whole.submit(LONG, "--gres=gpu:2", "-N", "2", "-n", "2")
                whole.run_for(blocker, 0)
            record(how)
            if how is waiting:
                cluster.run("scancel", blocker)
            print(f"{how.__name__}: {time.monotonic() - began:.0f} s", flush=True)
        keep_cluster("after")
        whole.write("cluster.after.sacct_all.txt", cluster.run("sacct", "-P", "-D", "-a", "-S", "now-1hour", "--format=ALL",
                                                               SLURM_TIME_FORMAT="%s"))
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
