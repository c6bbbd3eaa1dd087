#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What probes add to launches of PyTorch on a real GPU: bench/real_launches.py build [ROUNDS]

One rank launches kernels of ten clock cycles through the real runtime and driver as fast as it can, then trains a network so small
that its steps wait for launches and not for the card. Without the daemon, with it and its default budget, and with a budget that
is never reached, by turns, ROUNDS (3) times; medians. As root; RANKSCOPE_TORCH_PYTHON is the Python that has PyTorch.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from governor import serve_within
from verdict_latency import ask

RANK = r"""
import statistics, time, torch
from torch import nn
LAUNCHES, STEPS = 5000, 200
model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(32, 64, device="cuda")

def launch():
    for _ in range(LAUNCHES):
        torch.cuda._sleep(10)

def train():
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

def timed(what, times, least):
    rounds, end = [], time.monotonic() + least
    while time.monotonic() < end:  # a daemon beside it has found the libraries by then, and the budget is settled
        torch.cuda.synchronize()
        begin = time.monotonic()
        what()
        torch.cuda.synchronize()
        rounds.append((time.monotonic() - begin) / times)
    return statistics.median(rounds[len(rounds) // 2:]) * 1e6

print("microseconds", timed(launch, LAUNCHES, 5), timed(train, STEPS, 6))
"""


def run(build, budget):
    python = os.environ.get("RANKSCOPE_TORCH_PYTHON", sys.executable)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")} | {"RANK": "0", "WORLD_SIZE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        daemon, port, probes = None, None, {}
        if budget:
            daemon, port = serve_within(build, folder, budget)
        said = subprocess.run([python, "-c", RANK], env=environment, capture_output=True, text=True, check=True).stdout
        if daemon:
            text = ask(port, "/metrics")[1].decode()
            probes = dict(re.findall(r'^rankscope_probe_runs_total\{source="cuda",probe="(\w+)"\} (\S+)$', text, re.M))
            daemon.terminate()
            daemon.wait()
    return [float(number) for number in said.split()[1:]], probes


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    kinds = (("none", None), ("ebpf.budget 1%", "1%"), ("ebpf.budget 100%", "100%"))
    found = {name: [] for name, _ in kinds}
    counted = {}
    for _ in range(rounds):
        for name, budget in kinds:
            numbers, counted[name] = run(build, budget)
            found[name].append(numbers)
    print("| daemon | us per launch | us per step | launch added | step added |\n| --- | ---: | ---: | ---: | ---: |")
    bare = None
    for name, numbers in found.items():
        launch, step = (statistics.median(each[i] for each in numbers) for i in (0, 1))
        bare = bare or (launch, step)
        print(f"| {name} | {launch:.2f} | {step:.1f} | {launch - bare[0]:+.2f} us | {(step / bare[1] - 1) * 100:+.2f} % |")
    print(f"<!-- runs of probes: {counted} -->")


if __name__ == "__main__":
    main()
