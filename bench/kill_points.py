#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon at random points while runs go on: how many verdicts are right, how many gaps are told, and how many
verdicts are called exact although something was not heard. As root.

    kill_points.py [--kills 200] [--rounds 10] [--runs-in-round 5] [--seed 1]
"""
import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/hostile"))
import kill_points  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--runs-in-round", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rankscope_kill_") as folder:
        total = kill_points.rounds(folder, arguments.seed, arguments.kills, arguments.runs_in_round, arguments.rounds,
                                   report=lambda line: print(line, flush=True))
    print(f"seed {arguments.seed}: {total.text()}")
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
