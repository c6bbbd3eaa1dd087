#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What ended jobs cost the daemon: bench/ended_jobs.py build/rankscope [--jobs 2000] [--kind run|slurm] [--seconds 30]

JOBS short jobs, eight at a time: runs under the wrapper, or processes with the environment of Slurm's tasks and a file for their
output. Prints memory, descriptors and the median time of a tick after each quarter of them. When the last verdict is final and the
last job has come to rest, the daemon is left alone for SECONDS, and its share of a core is compared with that before the first job.
Exit 1 above 1 % of a core more than without jobs, where memory grows while it is left alone, or where descriptors, ticks or memory
of the last quarter are above those of the second, which is the first with a full table of jobs. Needs root.
"""
import argparse
import concurrent.futures
import os
import statistics
import subprocess
import sys
import tempfile
import time

from tenants import Bench, VICTIM
from verdict_latency import ask

LIMIT, GROWTH_MIB, SHARE, DESCRIPTORS, TICK_S = 0.01, 2.0, 1.15, 16, 0.01
RESTS_S = 40  # after the end of a job its state is packed up
COMMAND = 'for step in $(seq 1 20); do echo "step $step loss 1.$step lr 0.1"; done'


class Size:
    """Of the daemon, now."""

    def __init__(self, bench):
        self.mib = bench.resident_mib()
        self.descriptors = len(os.listdir(f"/proc/{bench.daemon.pid}/fd"))
        ticks = []
        for _ in range(7):
            page = ask(bench.port, "/metrics")[1].decode()
            ticks += [float(line.split()[-1]) for line in page.splitlines() if line.startswith("rankscope_tick_seconds ")]
            time.sleep(1)
        self.tick_s = statistics.median(ticks)

    def __str__(self):
        return f"{self.mib:6.1f} MiB  {self.descriptors:4d} descriptors  tick {1000 * self.tick_s:6.2f} ms"

    def above(self, other):
        return (self.mib > other.mib * SHARE or self.descriptors > other.descriptors + DESCRIPTORS
                or self.tick_s > other.tick_s + TICK_S)


def share_of_core(bench, seconds):
    cpu, begin = bench.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    return (bench.cpu_seconds() - cpu) / (time.monotonic() - begin)


def run_job(bench, folder, number):
    # Root's: of another user no more than some hundred jobs begin within a minute.
    subprocess.run([bench.binary, "run", "--socket", bench.socket, "--job-id", f"ended-{number}", "--dir",
                    os.path.join(folder, f"run{number}"), "--", "/bin/sh", "-c", COMMAND],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=bench.environment, check=False)


def slurm_job(bench, folder, number):
    task = {"SLURM_JOB_ID": str(5_000_000 + number), "SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_LOCALID": "0",
            "SLURM_STEP_ID": "0", "RANK": "0", "WORLD_SIZE": "1"}
    with open(os.path.join(folder, f"slurm-{number}.out"), "wb") as out:
        subprocess.run(["/bin/sh", "-c", COMMAND + "; sleep 1.5"], stdout=out, stderr=out, env={**bench.environment, **task}, check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--kind", choices=("run", "slurm"), default="run")
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    one = run_job if options.kind == "run" else slurm_job
    with tempfile.TemporaryDirectory(prefix="rankscope_ended_") as folder:
        bench = Bench(os.path.abspath(options.binary), folder)
        try:
            time.sleep(3)
            alone = share_of_core(bench, options.seconds)
            print(f"{'alone':>11}  {Size(bench)}", flush=True)
            bench.home(VICTIM)
            sizes = []
            quarter = max(1, options.jobs // 4)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                for begin in range(0, options.jobs, quarter):
                    list(pool.map(lambda number: one(bench, folder, number), range(begin, min(begin + quarter, options.jobs))))
                    sizes.append(Size(bench))
                    print(f"{min(begin + quarter, options.jobs):5d} ended  {sizes[-1]}", flush=True)
            time.sleep(RESTS_S)
            after = bench.resident_mib()
            cost, last = share_of_core(bench, options.seconds), Size(bench)
        finally:
            bench.daemon.terminate()
            bench.daemon.wait()
    print(f"{'at rest':>11}  {last}; {100 * cost:.2f} % of a core, {100 * alone:.2f} % before the first job")
    grows = len(sizes) > 2 and sizes[-1].above(sizes[1])
    return 0 if cost <= alone + LIMIT and last.mib <= after + GROWTH_MIB and not grows else 1


if __name__ == "__main__":
    sys.exit(main())
