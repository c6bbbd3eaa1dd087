#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""How soon after its exec a process is known: bench/attribution_latency.py build/rankscope [PROCESSES]

Starts processes that live 10 to 300 ms, each in a cgroup like Slurm's of one of 8 jobs, some with the environment of another
job, some with none; asks /explain for each until the daemon knows it. The time runs from just before the exec to the answer,
so it holds the way of the question as well. Prints for the kernel's programs, and for the process connector at a rate that it
looks at, the median, the 99th percentile and the largest; how many were never known, and how many as something else than they
were. Exit 1 when with the kernel's programs the 99th percentile is above 50 ms or one of the processes was not what it is.
"""
import http.client
import mmap
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from verdict_latency import free_port, wait_until_ready

LIMIT_MS = 50
JOBS = 8
PATIENCE_S = 5  # that a process is asked for after its start


class Groups:
    """Directories of 8 jobs with 8 tasks each, as Slurm makes them in a hierarchy of v1, else of v2."""

    def __init__(self):
        cgroups = Path("/sys/fs/cgroup")
        self.v2 = (cgroups / "cgroup.controllers").exists()
        self.top = cgroups / f"b{os.getpid()}_slurmstepd.scope" if self.v2 else cgroups / f"memory/slurm_b{os.getpid()}"
        for job in range(JOBS):
            for task in range(8):
                self.path(job, task).mkdir(parents=True)

    def path(self, job, task):
        if self.v2:
            return self.top / f"job_{70000 + job}/step_3/user/task_{task}"
        return self.top / f"uid_0/job_{70000 + job}/step_3/task_{task}"

    def remove(self):
        for folder, _, _ in sorted(os.walk(self.top), key=lambda entry: -len(entry[0])):
            os.rmdir(folder)


def wait_for_source(port, source):
    def up():
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/metrics")
        return f'rankscope_source_up{{source="{source}"}} 1' in connection.getresponse().read().decode()
    until = time.monotonic() + 60
    while not up():
        if time.monotonic() > until:
            raise SystemExit(f"the source {source} does not come up; is serve root?")
        time.sleep(0.1)


class Asker(threading.Thread):
    """Asks for the processes given to it, in turn, until each is known or given up."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.waiting, self.known, self.done = port, {}, {}, False
        self.lock = threading.Lock()

    def watch(self, pid, wants):
        with self.lock:
            self.waiting[pid] = (time.monotonic() + PATIENCE_S, wants)

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        while not self.done or self.waiting:
            with self.lock:
                waiting = list(self.waiting.items())
            if not waiting:
                time.sleep(0.0005)
            for pid, (until, wants) in waiting:
                connection.request("GET", f"/explain?pid={pid}")
                answer = connection.getresponse()
                text, now = answer.read().decode(), time.monotonic()
                if answer.status == 200 and "task" in text:
                    wrong = [line for line in wants if line not in text]
                    self.known[pid] = (now, wrong and f"{wrong} not in:\n{text}")
                elif now < until:
                    continue
                with self.lock:
                    del self.waiting[pid]


def environment_of(kind, job, rank):
    told = {"RANK": str(rank), "LOCAL_RANK": str(rank % 8), "WORLD_SIZE": "64", "SLURM_PROCID": str(rank % 8)}
    if kind == "scrubbed":
        return {}
    return {**told, "SLURM_JOB_ID": str(70000 + (job + 1) % JOBS if kind == "falsified" else 70000 + job)}


def start(groups, asker, times, number, chance):
    job, task, kind = number % JOBS, number // JOBS % 8, chance.choice(["plain", "plain", "falsified", "scrubbed"])
    rank = job * 8 + task
    environment = environment_of(kind, job, rank)
    procs = str(groups.path(job, task) / "cgroup.procs")
    life = f"{chance.uniform(0.01, 0.3):.3f}"
    pid = os.fork()
    if pid == 0:
        try:
            with open(procs, "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
            struct.pack_into("d", times, number * 8, time.monotonic())
            os.execve("/bin/sleep", ["sleep", life], environment)
        finally:
            os._exit(127)
    wants = [f"job {70000 + job}: by its cgroup", "step 3: by its cgroup"]
    wants.append("no rank: " if kind == "scrubbed" else f"rank {rank}: by RANK")
    asker.watch(pid, wants)
    return pid


def reap(pids):
    return {pid for pid in pids if os.waitpid(pid, os.WNOHANG)[0] == 0}


def measure(binary, count, per_second, source, *flags):
    groups, chance = Groups(), random.Random(1)
    times = mmap.mmap(-1, count * 8)
    numbers, alive = {}, set()
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        with open(os.path.join(folder, "log"), "wb") as log:
            daemon = subprocess.Popen(
                [binary, "serve", "--web.listen-address", f"127.0.0.1:{port}", "--state.dir", os.path.join(folder, "state"),
                 "--run.socket", os.path.join(folder, "run.sock"), *flags], stderr=log, stdout=log)
        try:
            wait_until_ready(port, daemon)
            wait_for_source(port, source)
            asker = Asker(port)
            asker.start()
            begin = time.monotonic()
            for number in range(count):
                time.sleep(max(0, begin + number / per_second - time.monotonic()))
                pid = start(groups, asker, times, number, chance)
                numbers[pid] = number
                alive = reap(alive | {pid})
            asker.done = True
            asker.join()
        finally:
            daemon.terminate()
            daemon.wait()
            while alive:
                alive = reap(alive)
                time.sleep(0.01)
            groups.remove()
    delays = sorted(1000 * (at - struct.unpack_from("d", times, numbers[pid] * 8)[0]) for pid, (at, _) in asker.known.items())
    wrong = [text for _, text in asker.known.values() if text]
    return delays, count - len(delays), wrong


def main():
    binary, count = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    failed = False
    for name, source, share, per_second, flags in [("programs in the kernel", "process", 1, 60, []),
                                                   ("process connector", "proc_connector", 4, 20, ["--ebpf=off"])]:
        delays, unknown, wrong = measure(binary, count // share, per_second, source, *flags)
        at = [delays[min(len(delays) - 1, int(len(delays) * part))] for part in (0.5, 0.99, 1)]
        print(f"{name}, {per_second} a second: median {at[0]:.1f} ms, 99 % {at[1]:.1f} ms, largest {at[2]:.1f} ms of "
              f"{len(delays)}; never known {unknown}, misattributed {len(wrong)}", flush=True)
        for text in wrong[:3]:
            print(text)
        if not flags:
            failed = at[1] > LIMIT_MS or unknown or wrong
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
