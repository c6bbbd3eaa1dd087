#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What `serve` costs while it watches a node: bench/serve_cost.py build/rankscope [SECONDS] [RANKS]

RANKS plain processes (8) print a training record ten times a second each, with no wrapper; /metrics is scraped every 15 s as
Prometheus would. Prints, after ten seconds of warm-up, the share of one core and the resident memory of the daemon over
SECONDS (30): with the kernel's programs, without them, and with nothing to watch.
"""
import glob
import os
import subprocess
import sys
import tempfile
import time

from verdict_latency import ask, free_port, wait_until_ready

RANK = """
import sys, time
step = 0
while True:
    step += 1
    print(f"step {step} loss {0.5 + 3 / (1 + 0.1 * step):.4f} lr 0.01 step_time 0.1s", flush=True)
    time.sleep(0.1)
"""
WARM_UP_S = 10
SCRAPE_S = 15


def cpu_seconds(pid):
    """Of its threads that live, by the scheduler's own nanoseconds: ticks miss what wakes for less than one."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path, encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total * 1e-9


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


def cost(binary, seconds, ranks, *flags):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        with open(os.path.join(folder, "log"), "wb") as log:
            daemon = subprocess.Popen(
                [binary, "serve", "--web.listen-address", f"127.0.0.1:{port}", "--state.dir", os.path.join(folder, "state"),
                 "--run.socket", os.path.join(folder, "run.sock"), *flags], stderr=log, stdout=log)
        workers = []
        try:
            wait_until_ready(port, daemon)
            for rank in range(ranks):
                with open(os.path.join(folder, f"rank{rank}.log"), "wb") as out:
                    workers.append(subprocess.Popen(
                        [sys.executable, "-c", RANK], stdout=out, stderr=out,
                        env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}))
            time.sleep(WARM_UP_S)
            begin, before = time.monotonic(), cpu_seconds(daemon.pid)
            while time.monotonic() < begin + seconds:
                ask(port, "/metrics")
                time.sleep(min(SCRAPE_S, max(0.0, begin + seconds - time.monotonic())))
            share = (cpu_seconds(daemon.pid) - before) / (time.monotonic() - begin)
            return share, resident_mib(daemon.pid)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
            daemon.terminate()
            daemon.wait()


def main():
    binary = os.path.abspath(sys.argv[1])
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    ranks = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    for name, watched, flags in [(f"{ranks} ranks, programs in the kernel", ranks, []),
                                 (f"{ranks} ranks, without", ranks, ["--ebpf=off"]), ("nothing to watch", 0, [])]:
        share, mib = cost(binary, seconds, watched, *flags)
        print(f"{name}: {100 * share:.2f} % of a core, {mib:.1f} MiB resident")


if __name__ == "__main__":
    main()
