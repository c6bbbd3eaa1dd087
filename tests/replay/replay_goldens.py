#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Judges a golden recording again and compares bytes. `--accept` writes what the program says now.

    replay_goldens.py [--accept] [NAME...]
"""
import difflib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("RANKSCOPE_BINARY", ROOT / "build" / "rankscope")
GOLDENS = ROOT / "tests/fixtures/recordings"


def pretty(text):
    return json.dumps(json.loads(text), indent=1).splitlines()


def main(names):
    accept = "--accept" in names
    names = [name for name in names if name != "--accept"] or sorted(path.name for path in GOLDENS.iterdir())
    failed = False
    for name in names:
        golden = GOLDENS / name / "verdict.json"
        result = subprocess.run([BINARY, "replay", "--format", "json", GOLDENS / name / "recording"], capture_output=True,
                                text=True, timeout=60, check=False)
        if result.returncode != 0:
            print(f"{name}: replay: exit {result.returncode}: {result.stderr.strip()}")
            failed = True
        elif accept:
            golden.write_text(result.stdout)
        elif result.stdout != golden.read_text():
            failed = True
            print(f"{name}: the verdict changed; if that is right: tests/replay/replay_goldens.py --accept {name}")
            print("\n".join(difflib.unified_diff(pretty(golden.read_text()), pretty(result.stdout), "golden", "now", lineterm="")))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
