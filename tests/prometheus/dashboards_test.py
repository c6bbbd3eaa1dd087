# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Every panel of every dashboard shows something of a job on GPUs: its query, asked of a real Prometheus that scrapes a real
daemon, returns a series.

Two jobs run: one whose ranks call CUDA and NCCL on cards of the stand-in for the driver's library, and one that prints how many
steps there will be. A panel without data fails by its title.

Usage: dashboards_test.py RANKSCOPE STUB_TRAINER STUB_LIBRARIES FAKE_NVML SOURCE_DIR
"""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from daemon_test import Daemon
from support import Prometheus, dashboard_queries, fetch, need, wait_for

RANKS = 2
GB = 10 ** 9
# What a panel needs besides GPUs, by the name of its metric: without the source it has nothing to show.
NEEDS = {"rankscope_rank_oldest_collective_seconds": "nccl"}
# Prints as Megatron-LM does, which says how many iterations there will be.
COUNTS = """
import itertools, time
for step in itertools.count(1):
    print(f" iteration {step:8d}/  100000 | consumed samples: {8 * step:12d} | elapsed time per iteration (ms): 100.0 | "
          f"learning rate: 1.000000E-04 | global batch size:     8 | lm loss: {4 / step + 1:.6E} |", flush=True)
    time.sleep(0.1)
"""
SCRIPT = f"ranks {RANKS}\nsteps 1000000\nstep_ms 100\nlaunches 4\ncollectives 1\nwatchdog 1\n"


class Cards:
    """What the stand-in for NVML reads: busy cards, and on card N the process of rank N."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "gpus"
        self.say({})

    def say(self, pids):
        lines = ["driver 550.54.15", f"gpus {RANKS} hopper"]
        lines += [f"gpu * {key} {value}" for key, value in (("gpu_utilization", 97), ("gpm_1", 97), ("gpm_2", 62))]
        lines += [f"gpu {rank} process {pid} {50 * GB}" for rank, pid in pids.items()]
        self.path.with_suffix(".next").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.path.with_suffix(".next").rename(self.path)


def pids_of(daemon, job):
    """{rank: pid} of a job, once all its ranks are known."""
    with contextlib.suppress(OSError):
        evidence = json.loads(fetch(f"{daemon.url}/evidence?job_id={job}"))
        pids = {rank["rank"]: rank["pid"] for rank in evidence["ranks"] if rank["pid"] > 0}
        return pids if len(pids) == RANKS else None
    return None


@contextlib.contextmanager
def running(command, environment):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def queries(source):
    """[(title, query)] with a user's choice of everything filled in."""
    for path in sorted((source / "dashboards").glob("*.json")):
        for title, query in dashboard_queries(json.loads(path.read_text(encoding="utf-8"))):
            query = query.replace("$__rate_interval", "10s").replace("$__range", "1h")
            yield title, re.sub(r"\$\{?\w+\}?", ".+", query)


def check(prometheus, source):
    empty = []
    for title, query in queries(source):
        wanted = next((need_ for metric, need_ in NEEDS.items() if metric in query), None)
        if wanted and prometheus.value(f'rankscope_source_up{{source="{wanted}"}}') != "1":
            print(f"panel '{title}' is not asked: the source {wanted} does not work here")
            continue
        try:
            wait_for(f"a series of panel '{title}'", lambda query=query: prometheus.query(query))
        except AssertionError:
            empty.append(f"panel '{title}' shows nothing: {query}")
    assert not empty, "\n".join(empty)


def main():
    binary, stub_trainer, stubs, fake_nvml, source = sys.argv[1:6]
    need("prometheus")
    with tempfile.TemporaryDirectory() as folder:
        cards = Cards(folder)
        os.environ.update({"LD_LIBRARY_PATH": fake_nvml, "FAKE_NVML_SCRIPT": str(cards.path)})
        with contextlib.closing(Daemon(binary, folder)) as daemon, \
                contextlib.closing(Prometheus(folder, daemon.address)) as prometheus:
            script = pathlib.Path(folder) / "script"
            script.write_text(SCRIPT, encoding="utf-8")
            wrapper = [binary, "run", "--socket", daemon.socket, "--dir", f"{folder}/runs", "--job-id"]
            plain = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
            with running([*wrapper, "cards-1", "--", stub_trainer, str(script)], {**plain, "STUB_GPU_LIBRARIES": stubs}), \
                    running([*wrapper, "steps-1", "--", sys.executable, "-c", COUNTS], plain):
                cards.say(wait_for("all ranks", lambda: pids_of(daemon, "cards-1")))
                check(prometheus, pathlib.Path(source))
    print("ok")


if __name__ == "__main__":
    main()
