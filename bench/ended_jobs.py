#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What ended jobs cost the daemon: bench/ended_jobs.py build/rankscope [--jobs 1000] [--seconds 30]

JOBS short runs under the wrapper, eight at a time; when the last verdict is final and the last job has come to rest, the daemon
is left alone for SECONDS. Prints its share of a core and its memory before the first job, after the last, and at the end; exit 1
above 1 % of a core more than without jobs, or where memory still grows. Needs root.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import time

from tenants import Bench, VICTIM

LIMIT, GROWTH_MIB = 0.01, 2.0
RESTS_S = 40  # after the end of a job its state is packed up
COMMAND = 'for step in $(seq 1 20); do echo "step $step loss 1.$step lr 0.1"; done'


def share_of_core(bench, seconds):
    cpu, begin = bench.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    return (bench.cpu_seconds() - cpu) / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rankscope_ended_") as folder:
        bench = Bench(os.path.abspath(options.binary), folder)
        try:
            time.sleep(3)
            alone, first = share_of_core(bench, options.seconds), bench.resident_mib()
            bench.home(VICTIM)

            def one(number):
                # Root's: of another user no more than some hundred jobs begin within a minute.
                subprocess.run([bench.binary, "run", "--socket", bench.socket, "--job-id", f"ended-{number}", "--dir",
                                os.path.join(folder, f"run{number}"), "--", "/bin/sh", "-c", COMMAND],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=bench.environment, check=False)

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                list(pool.map(one, range(options.jobs)))
            time.sleep(RESTS_S)
            after = bench.resident_mib()
            cost, last = share_of_core(bench, options.seconds), bench.resident_mib()
        finally:
            bench.daemon.terminate()
            bench.daemon.wait()
    print(f"alone      {100 * alone:5.2f} % of a core  {first:6.1f} MiB")
    print(f"{options.jobs} ended {100 * cost:5.2f} % of a core  {after:6.1f} MiB, {last:.1f} MiB {options.seconds:.0f} s later")
    return 0 if cost <= alone + LIMIT and last <= after + GROWTH_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
