#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What it costs to hear what ranks write: those who are heard, and everybody else on the machine.

    bench/stdio_cost.py [--rounds N] [--quick]

Each figure is a median over rounds in which the three states alternate: no daemon, a daemon that does not hear (its
source `stdio` is off), a daemon that does. Needs root, a C compiler and a kernel that takes the programs. Ratios are
what counts: absolute times are those of the machine at hand.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BINARY = os.environ.get("RANKSCOPE_BINARY", str(ROOT / "build" / "rankscope"))
PYTHON = "/usr/bin/python3"
STATES = ("none", "deaf", "hears")

CALLS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
int main(int argc, char **argv) {
  char text[100] = "step 1 loss 2.5";
  int calls = atoi(argv[1]), fd = atoi(argv[2]), i;
  double begin, write_ns, other_ns;
  int null = open("/dev/null", O_WRONLY);
  FILE *out = fopen(argv[3], "w");
  dup2(null, fd);
  text[99] = '\n';
  begin = now();
  for (i = 0; i < calls; i++) write(fd, text, sizeof text);
  write_ns = (now() - begin) / calls;
  begin = now();
  for (i = 0; i < calls; i++) syscall(SYS_getppid);
  other_ns = (now() - begin) / calls;
  fprintf(out, "%f %f\n", write_ns, other_ns);
  return 0;
}
"""

LOOP = r"""
import sys, time
import torch
torch.set_num_threads(1)
layer = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
data = torch.randn(64, 256)
def steps(n):
    for step in range(n):
        optimizer.zero_grad()
        loss = layer(data).pow(2).mean()
        loss.backward()
        optimizer.step()
        print("step", step, "loss", loss.item(), "lr", 0.05)
steps(50)
begin = time.monotonic()
steps(int(sys.argv[1]))
open(sys.argv[2], "w").write(str(time.monotonic() - begin))
"""

FLOOD = r"""
import os, sys, time
block = (b"step 1 of a rank that says nothing that matters" + b"." * 51 + b"\n") * 41
rate, seconds = float(sys.argv[1]), float(sys.argv[2])
begin, written = time.monotonic(), 0
while written < rate * seconds:
    written += os.write(1, block)
    ahead = written / rate - (time.monotonic() - begin)
    if ahead > 0.01:
        time.sleep(ahead)
open(sys.argv[3], "w").write(str(written))
"""


class Daemon:
    def __init__(self, folder, hears):
        self.folder = Path(folder)
        config = self.folder / f"config-{hears}.yaml"
        config.write_text(f"sources: {{stdio: {{enabled: {str(hears).lower()}}}, stdout_tail: {{enabled: false}}}}\n")
        self.log = self.folder / f"serve-{time.monotonic_ns()}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [BINARY, "serve", "--config", str(config), "--web.listen-address", "127.0.0.1:0", "--state.dir",
                 str(self.folder / f"state-{time.monotonic_ns()}"), "--run.socket", str(self.folder / "run.sock")],
                stdout=log, stderr=log)
        end = time.monotonic() + 20
        while True:
            found = re.search(r"msg=listening address=(\S+)", self.log.read_text())
            if found and self.get(found[1], "/-/ready") is not None:
                break
            if time.monotonic() > end or self.process.poll() is not None:
                sys.exit(f"the daemon does not start: {self.log.read_text()}")
            time.sleep(0.05)
        self.address = found[1]
        if hears and self.metric('rankscope_source_up{source="stdio"}') != 1:
            sys.exit(f"the source `stdio` is not up: {self.log.read_text()}")

    @staticmethod
    def get(address, path):
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def metric(self, name):
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.get(self.address, "/metrics") or "", re.M)
        return float(found[1]) if found else None

    def hook(self):
        return next((kind for kind in ("fexit", "tracepoint", "raw")
                     if self.metric(f'rankscope_output_hook{{kind="{kind}"}}') == 1), "none")

    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


class Bench:
    def __init__(self, folder, quick):
        self.folder = Path(folder)
        self.calls = 100_000 if quick else 300_000
        self.steps = 400 if quick else 1500
        self.copies = 2000 if quick else 8000
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("RANK", "SLURM_", "WORLD_SIZE"))}
        (self.folder / "calls.c").write_text(CALLS)
        subprocess.run(["cc", "-O2", "-w", "-o", self.folder / "calls", self.folder / "calls.c"], check=True)
        (self.folder / "loop.py").write_text(LOOP)
        (self.folder / "flood.py").write_text(FLOOD)
        body = "".join(f"double f{i}(double x) {{ double s = 0; for (int i = 0; i < 9; i++) s += x * i / (s + {i}); return s; }}\n"
                       for i in range(300))
        (self.folder / "unit.c").write_text("#include <stdio.h>\n#include <stdlib.h>\n#include <math.h>\n" + body)

    def rank(self):
        return {**self.environment, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}

    def per_call(self, fd, environment, calls=0):
        out = self.folder / "calls.out"
        subprocess.run([self.folder / "calls", str(calls or self.calls), str(fd), out], env=environment, stdout=subprocess.DEVNULL, check=True)
        return map(float, out.read_text().split())

    def timed(self, *command):
        begin = time.monotonic()
        subprocess.run(command, cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return time.monotonic() - begin

    def measure(self):
        """One state, once: name of a figure -> value."""
        found = {}
        found["write of 100 bytes, untracked, ns"], found["another system call, untracked, ns"] = self.per_call(1, self.environment)
        found["the same write by descriptor 5, ns"], _ = self.per_call(5, self.environment)
        # Ten thousand are within the budget of a stream.
        found["write of 100 bytes, a rank's output, ns"], _ = self.per_call(1, self.rank(), 10_000)
        found["the same beyond its budget, ns"], _ = self.per_call(1, self.rank())
        found["compiling a file 4 times, s"] = self.timed("sh", "-c", "for i in 1 2 3 4; do cc -O1 -c unit.c -o unit.o; done")
        found["copying a file by writes of 64 kB, s"] = self.timed("dd", "if=/dev/zero", "of=copy", "bs=64k", f"count={self.copies}",
                                                                   "conv=notrunc")
        out = self.folder / "loop.out"
        with open(self.folder / "loop.log", "wb") as log:
            subprocess.run([PYTHON, "-u", "loop.py", str(self.steps), out], cwd=self.folder, env=self.rank(), stdout=log, check=True)
        found[f"{self.steps} training steps with a print each, s"] = float(out.read_text())
        return found

    def flood(self, daemon, ranks=8, rate=200e6, seconds=5.0):
        idle = daemon.cpu()
        time.sleep(2)
        idle = (daemon.cpu() - idle) / 2
        before, begin = daemon.cpu(), time.monotonic()
        running = []
        for rank in range(ranks):
            with open(self.folder / f"flood-{rank}", "wb") as out:
                running.append(subprocess.Popen(
                    [PYTHON, "flood.py", str(rate / ranks), str(seconds), f"flood-{rank}.written"], cwd=self.folder, stdout=out,
                    env={**self.environment, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}))
        for process in running:
            process.wait()
        took = time.monotonic() - begin
        used = (daemon.cpu() - before) / took
        time.sleep(6)  # the job becomes final, and what was lost at the end is told
        written = sum(int((self.folder / f"flood-{rank}.written").read_text()) for rank in range(ranks))
        counts = {kind: daemon.metric(f'rankscope_output_bytes_total{{kind="{kind}"}}')
                  for kind in ("captured", "over_budget", "ring_full", "over_share", "over_long", "unreadable", "spliced", "not_output", "no_room")}
        return {"written": written, "took": took, "counts": counts, "idle": idle, "used": used}


def report(values, baseline="none"):
    print(f"| what | {' | '.join(STATES)} | hears/none | hears/deaf |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in values[baseline][0]:
        medians = {state: statistics.median(one[name] for one in values[state]) for state in STATES}
        cells = " | ".join(f"{medians[state]:.4g}" for state in STATES)
        print(f"| {name} | {cells} | {medians['hears'] / medians['none']:.3f} | {medians['hears'] / medians['deaf']:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="three rounds of shorter loops")
    arguments = parser.parse_args()
    rounds = 3 if arguments.quick else arguments.rounds
    with tempfile.TemporaryDirectory(prefix="rankscope_bench_") as folder:
        bench = Bench(folder, arguments.quick)
        values = {state: [] for state in STATES}
        hook = "none"
        for index in range(rounds):
            for state in STATES[index % 3:] + STATES[:index % 3]:
                daemon = Daemon(folder, state == "hears") if state != "none" else None
                values[state].append(bench.measure())
                if daemon:
                    hook = daemon.hook() if state == "hears" else hook
                    daemon.stop()
        print(f"hook: {hook}; {rounds} rounds")
        report(values)
        daemon = Daemon(folder, True)
        flood = bench.flood(daemon)
        daemon.stop()
    counted = sum(flood["counts"].values())
    print(f"\nflood: {flood['written'] / flood['took'] / 1e6:.0f} MB/s of 8 ranks, {flood['written']} bytes written, {counted:.0f} accounted "
          f"for: {json.dumps(flood['counts'])}")
    print(f"daemon: {100 * flood['used']:.2f} % of a core during the flood, {100 * flood['idle']:.2f} % before it")
    return 0 if counted == flood["written"] else 1


if __name__ == "__main__":
    sys.exit(main())
