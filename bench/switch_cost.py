#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What the source `wait` costs at a switch of context: two threads of control on one CPU pass a byte to and fro, which is two
switches and two wake-ups a round trip, as a process that nobody tracks and as a rank; with the source counting in the kernel,
and without it (`sources.wait.enabled: false`). Prints medians of interleaved rounds and their ratios.

    bench/switch_cost.py [rounds]      as root
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "serve"))

from serve_test import Daemon, wait_for  # noqa: E402

SOURCE = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
// Waits for a line, then measures; one line of output for each: ns per switch.
int main(int argc, char** argv) {
  int trips = atoi(argv[1]), there[2], back[2];
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(atoi(argv[2]), &one);
  sched_setaffinity(0, sizeof one, &one);
  if (pipe(there) || pipe(back)) return 1;
  char byte = 0;
  if (fork() == 0) {
    close(there[1]);
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {}
    return 0;
  }
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < trips; ++i)
      if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 2;
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.1f\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / (2.0 * trips));
    fflush(stdout);
  }
}
"""
TRIPS = 40_000


class PingPong:
    def __init__(self, binary, environment):
        self.process = subprocess.Popen([binary, str(TRIPS), str(os.cpu_count() - 1)], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=lambda: os.nice(-20))

    def measure(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def tracked(daemon, pid):
    return "job" in daemon.get(f"/explain?pid={pid}")[1]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    plain = {key: value for key, value in os.environ.items()
             if not key.startswith(("SLURM_", "RANK", "WORLD_SIZE", "TORCHELASTIC_"))}
    results = {}
    with tempfile.TemporaryDirectory(prefix="rankscope_switch_") as folder:
        binary = str(Path(folder) / "pingpong")
        subprocess.run(["gcc", "-O2", "-x", "c", "-", "-o", binary], input=SOURCE, text=True, check=True)
        config = Path(folder) / "without.yaml"
        config.write_text("sources: {wait: {enabled: false}}\n")
        for _ in range(3):  # both daemons in turn, so that the machine's drift falls on both alike
            for name, flags in (("without", ["--config.file", str(config)]), ("with", [])):
                daemon = Daemon(folder, *flags)
                rank = PingPong(binary, {**plain, "RANK": "0", "WORLD_SIZE": "1"})
                nobody = PingPong(binary, plain)
                wait_for("the rank to be tracked", lambda: tracked(daemon, rank.process.pid))
                time.sleep(3)  # the programs are attached, and the rank's threads are seen
                for _ in range(max(1, rounds // 3)):
                    results.setdefault((name, "tracked"), []).append(rank.measure())
                    results.setdefault((name, "untracked"), []).append(nobody.measure())
                rank.end()
                nobody.end()
                daemon.stop()
    print(f"{'process':10} {'without':>10} {'with':>10} {'added':>8} {'ratio':>7}   ns per switch, medians of {rounds}")
    for who in ("untracked", "tracked"):
        without, with_it = (statistics.median(results[(name, who)]) for name in ("without", "with"))
        print(f"{who:10} {without:10.0f} {with_it:10.0f} {with_it - without:8.0f} {with_it / without:7.3f}")


main()
