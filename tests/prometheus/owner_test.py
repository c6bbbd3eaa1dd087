# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A GPU of a real daemon reports damage, and the alerts of a real Prometheus say whose it is: node, GPU, rank, job and user. Every rule can
be evaluated over the daemon's page.

Usage: owner_test.py RANKSCOPE STUB_TRAINER STUB_LIBRARIES FAKE_NVML SOURCE_DIR
"""
import contextlib
import os
import pathlib
import re
import sys
import tempfile

from board_node import TRAINS, Cards, pids_of, running
from daemon_test import Daemon
from support import Prometheus, need, wait_for

JOB = "cards-1"  # two ranks, each with a GPU
ILL = 1
# What the node of board_node.py reports of an ill GPU, apart from what needs a past.
WANTED = {"RankscopeGpuXid", "RankscopeGpuNeedsAction", "RankscopeGpuRemapPending", "RankscopeGpuRemapFailed", "RankscopeGpuFabricNotReady"}


def firing(prometheus):
    """{alert: labels} of the alerts on GPUs of the job, once all are there."""
    found = {labels["alertname"]: labels for labels, _ in prometheus.query(f'ALERTS{{alertstate="firing",job_id="{JOB}",rank!=""}}')}
    return WANTED <= found.keys() and found


def impatient(folder, source):
    for path in (source / "alerts").glob("rankscope_*.yaml"):
        copy = pathlib.Path(folder) / path.name
        copy.write_text(re.sub(r"\n +for: \w+", "", path.read_text(encoding="utf-8")), encoding="utf-8")
        yield str(copy)


def main():
    binary, stub_trainer, stubs, fake_nvml, source = sys.argv[1:6]
    need("prometheus")
    with tempfile.TemporaryDirectory() as folder:
        cards = Cards(folder)
        os.environ.update({"LD_LIBRARY_PATH": fake_nvml, "FAKE_NVML_SCRIPT": str(cards.path)})
        rules = list(impatient(folder, pathlib.Path(source)))
        with contextlib.closing(Daemon(binary, folder)) as daemon, \
                contextlib.closing(Prometheus(folder, daemon.address, rules, interval="1s")) as prometheus:
            script = pathlib.Path(folder) / "script"
            script.write_text(TRAINS, encoding="utf-8")
            command = [binary, "run", "--socket", daemon.socket, "--dir", f"{folder}/runs", "--job-id", JOB, "--", stub_trainer, str(script)]
            plain = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
            with running(command, {**plain, "STUB_GPU_LIBRARIES": stubs}):
                cards.say(wait_for("all ranks", lambda: pids_of(daemon, JOB)), ill=True)
                wanted = {"gpu": str(ILL), "rank": str(ILL), "node": "127.0.0.1", "job_id": JOB, "domain": "infrastructure"}
                for labels in wait_for("the alerts with their owner", lambda: firing(prometheus), seconds=90).values():
                    assert wanted.items() <= labels.items() and labels["gpu_uuid"] and labels["user"], labels
                prometheus.check_rules()
    print("ok")


if __name__ == "__main__":
    main()
