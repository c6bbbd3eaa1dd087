#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""How long after `kill -9` of a rank /verdict names it: bench/kill_latency.py build/rankscope [RUNS]

No wrapper: the ranks are plain processes with RANK in their environment, seen by `serve` alone. /verdict is asked every 5 ms
until the job of the killed rank is judged A2 and is no longer live. Prints, with the kernel's programs and without them, the
median and the largest delay in seconds; exit 1 when the largest with them is above 1.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from verdict_latency import LIMIT_S, ask, free_port, wait_until_ready


def job_of(port, pid):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        text = ask(port, f"/explain?pid={pid}")[1].decode()
        jobs = [word.strip("\"',():.") for word in text.split() if word.startswith("proc-")]
        if jobs:
            return jobs[0]
        time.sleep(0.02)
    raise SystemExit(f"pid {pid} was not found; is serve root?")


def one_delay(port, rank):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
    process = subprocess.Popen(["sleep", "600"], env={**environment, "RANK": str(rank), "WORLD_SIZE": "1"})
    try:
        job = job_of(port, process.pid)
    finally:
        begin = time.monotonic()
        process.kill()
        process.wait()
    while time.monotonic() < begin + 30:
        status, body = ask(port, f"/verdict?job_id={job}")
        now = time.monotonic()
        verdict = json.loads(body) if status == 200 else {}
        if verdict.get("code") == "A2" and verdict["state"] != "live":
            return now - begin
        time.sleep(0.005)
    raise SystemExit(f"no verdict of {job} came within 30 s")


def delays(binary, runs, *flags):
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        with open(os.path.join(folder, "log"), "wb") as log:
            daemon = subprocess.Popen(
                [binary, "serve", "--web.listen-address", f"127.0.0.1:{port}", "--state.dir", os.path.join(folder, "state"),
                 "--run.socket", os.path.join(folder, "run.sock"), *flags], stderr=log, stdout=log)
        try:
            wait_until_ready(port, daemon)
            return [one_delay(port, 0) for _ in range(runs)]
        finally:
            daemon.terminate()
            daemon.wait()


def main():
    binary, runs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    worst = 0.0
    for name, flags in [("programs in the kernel", []), ("without", ["--ebpf=off"])]:
        found = delays(binary, runs, *flags)
        worst = worst or max(found)
        print(f"{name}: median {statistics.median(found):.3f} s, largest {max(found):.3f} s of {runs}")
    return 1 if worst > LIMIT_S else 0


if __name__ == "__main__":
    sys.exit(main())
