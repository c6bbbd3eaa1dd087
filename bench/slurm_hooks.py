#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""How long Slurm waits for each hook of deploy/slurm/: bench/slurm_hooks.py [RUNS]

RUNS (50) times each, in a temporary folder, with the environment that Slurm gives and no daemon to answer; by turns with
a shell that does nothing. Prints the median and the 99th percentile in milliseconds; exit 1 when one is above 100.
"""
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_MS = 100
HOOKS = Path(__file__).resolve().parent.parent / "deploy" / "slurm"
NAMES = ("prolog", "task_prolog", "epilog", "epilog_slurmctld")
ENVIRONMENT = {"SLURM_JOB_GPUS": "0-7", "SLURM_JOB_NODELIST": "n1", "RANKSCOPE_TASK_ENV": "all"}


def milliseconds(command, environment):
    began = time.monotonic()
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return (time.monotonic() - began) * 1000


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    took = {name: [] for name in ("sh -c :", *NAMES)}
    with tempfile.TemporaryDirectory(prefix="rankscope_hooks_") as folder:
        hooks = Path(folder, "hooks")
        shutil.copytree(HOOKS, hooks)
        # Port 1: refused at once, so that no more than RUNS of them wait behind.
        (hooks / "rankscope.conf").write_text(f"url=http://127.0.0.1:1\nwait=0\njob_mapping={folder}/map\ndump_dir={folder}/%u/%j\n")
        for job in range(1, runs + 1):
            took["sh -c :"].append(milliseconds(["/bin/sh", "-c", ":"], {}))
            for name in NAMES:
                took[name].append(milliseconds([hooks / name], {**ENVIRONMENT, "SLURM_JOB_ID": str(job)}))
        time.sleep(1)  # what runs behind still needs the folder
    above = 0
    print(f"{'':20} {'median':>8} {'p99':>8} ms")
    for name, values in took.items():
        p99 = statistics.quantiles(values, n=100, method="inclusive")[98]
        above += p99 > LIMIT_MS
        print(f"{name:20} {statistics.median(values):8.1f} {p99:8.1f}")
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
