#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps what the daemon recorded of the real Slurm jobs of slurm_test.py as goldens, with the verdict that a replay gives.

    tests/slurm/record_goldens.py [CASE...]      default: all whose verdict is what slurm_test.py expects

They lie in tests/fixtures/recordings/slurm_CASE/ and are judged again, without Slurm, by tests/replay/replay_goldens.py.
Takes three minutes; needs what the tests need, and a machine on which nothing else trains: what befalls a node stands in
the recording of each of its jobs.
"""
import os
import re
import shutil
import socket
import sys
import unittest
from pathlib import Path

import slurm_test  # adds tests/replay to the path
import replay_goldens

GOLDENS = Path(__file__).resolve().parent.parent / "fixtures" / "recordings"
NODE = "n1"  # the host's name in goldens


def keep(name, job):
    target = GOLDENS / ("slurm_" + re.sub(r"\W+", "_", name))
    shutil.rmtree(target, ignore_errors=True)
    (target / "recording").mkdir(parents=True)
    for path in Path(slurm_test.daemon.state, "jobs", job).glob("*.rec"):
        shutil.copy(path, target / "recording")
        (target / "recording" / path.name).chmod(0o644)


def main(names):
    if socket.gethostname() != NODE:
        # Goldens must not carry the name of this machine: once more, in a namespace of its own.
        os.execvp("unshare", ["unshare", "--uts", "sh", "-c", f'hostname {NODE} && exec "$@"', "sh", sys.executable, *sys.argv])
    slurm_test.setUpModule(prefix="n", first_job=8800)
    failed = 0
    kept = []
    try:
        looks = slurm_test.Cases("settled")
        for name in names or slurm_test.EXPECTED:
            try:
                looks.look_at(name)
                kept.append(name)
            except AssertionError as error:
                print(f"{name}: not kept: {error}", file=sys.stderr)
                failed = 1
        slurm_test.daemon.stop()  # the last of it is on disk then
        for name in kept:
            keep(name, slurm_test.runner.jobs[name])
        replay_goldens.accept()
    finally:
        unittest.doModuleCleanups()
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
