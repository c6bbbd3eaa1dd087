#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What counting launches costs a step: bench/governor.py build [RATE] [RANKS] [SECONDS]

RANKS (8) processes launch RATE (10,000) kernels a second each through the stub runtime and driver, in steps of 10 ms. Prints
the mean time of a step, and of the launches in it, without the daemon, with it and its default budget, and with a budget that
is never reached; and what the daemon says of its probes. As root.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from verdict_latency import free_port, wait_until_ready

WARM_UP_S = 8


def serve_within(build, folder, budget):
    """A daemon with this ebpf.budget that is ready, and its port."""
    port = free_port()
    config = Path(folder, "config.yaml")
    config.write_text(f"ebpf: {{budget: {budget}}}\n")
    with open(os.path.join(folder, "log"), "wb") as log:
        daemon = subprocess.Popen(
            [build / "rankscope", "serve", "--config", config, "--web.listen-address", f"127.0.0.1:{port}",
             "--state.dir", os.path.join(folder, "state"), "--run.socket", os.path.join(folder, "run.sock")],
            stderr=log, stdout=log)
    wait_until_ready(port, daemon)
    return daemon, port


def run(build, rate, ranks, seconds, budget):
    steps = (seconds + WARM_UP_S) * 100
    libraries = str(build / "tests/support/stub_gpu/lib")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
    environment["LD_LIBRARY_PATH"] = libraries
    with tempfile.TemporaryDirectory() as folder:
        daemon, port = None, None
        if budget:
            daemon, port = serve_within(build, folder, budget)
        workers = [subprocess.Popen([build / "bench/launch_loop", libraries, str(rate // 100), str(steps)],
                                    stdout=subprocess.PIPE, text=True,
                                    env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)})
                   for rank in range(ranks)]
        probes = {}
        if daemon:
            time.sleep(WARM_UP_S + seconds - 1)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                text = answer.read().decode()
            probes = {f"{name}{{{label}}}": float(value) for name, label, value in re.findall(
                r'^rankscope_probe_(duty_ratio|runs_total|seconds_total)\{source="cuda",probe="(\w+)"\} (\S+)$', text, re.M)}
        lines = [worker.communicate()[0].split("\n")[WARM_UP_S:] for worker in workers]
        if daemon:
            daemon.terminate()
            daemon.wait()
    numbers = [list(map(float, line.split()[1::2])) for of_rank in lines for line in of_rank if line]
    return [statistics.fmean(n[i] for n in numbers) for i in (0, 2)], probes


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    rate, ranks, seconds = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((2, 10000), (3, 8), (4, 20)))
    print(f"{ranks} ranks, {rate} launches/s each, {seconds} s\n")
    print("| daemon | step, us | of it launches, us | step added | launches added, of the step |\n| --- | ---: | ---: | ---: | ---: |")
    bare = None
    for name, budget in (("none", None), ("ebpf.budget 1%", "1%"), ("ebpf.budget 100%", "100%")):
        (step, launches), probes = run(build, rate, ranks, seconds, budget)
        bare = bare or (step, launches)
        print(f"| {name} | {step:.1f} | {launches:.1f} | {(step / bare[0] - 1) * 100:+.2f} % "
              f"| {(launches - bare[1]) / bare[0] * 100:+.2f} % |", flush=True)
        if probes:
            print("<!-- " + ", ".join(f"{key} {value:g}" for key, value in sorted(probes.items())) + " -->", flush=True)


if __name__ == "__main__":
    main()
