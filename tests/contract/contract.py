# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What the contract tests share: the tree, the program, and a runner of single tests.

A test is a function `test_*` that returns a list of findings, one sentence each; an empty list passes. CMake registers each
of them; by hand: `python3 tests/contract/layering.py [test_name...]`.
"""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("RANKSCOPE_BINARY", ROOT / "build" / "rankscope"))
TOP_LEVEL_FOLDERS = ["alerts", "bench", "bpf", "dashboards", "deploy", "detectors", "exporter", "tests"]


class Skip(Exception):
    """The test cannot run here; the text says why."""


def tracked_files():
    """Paths below ROOT of every file of the project: what git tracks, or what lies there without git."""
    listing = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             capture_output=True, check=False)
    if listing.returncode == 0:
        names = listing.stdout.decode().split("\0")
        return sorted(Path(name) for name in names if name and (ROOT / name).is_file())
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return sorted(path for path in paths if not path.parts[0].startswith(("build", ".git")))


def sources(*folders, suffixes=(".h", ".cc", ".inc")):
    return [path for path in tracked_files() if path.parts[0] in folders and path.suffix in suffixes]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def rankscope(*arguments, stdin=""):
    if not BINARY.exists():
        raise AssertionError(f"{BINARY} is not built")
    return subprocess.run([BINARY, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False)


def output_of(*arguments):
    result = rankscope(*arguments)
    if result.returncode != 0:
        raise AssertionError(f"rankscope {' '.join(arguments)}: exit {result.returncode}: {result.stderr.strip()}")
    return result.stdout


def main(namespace):
    """Runs the tests named on the command line, or all."""
    tests = {name: value for name, value in namespace.items() if name.startswith("test_")}
    names = sys.argv[1:] or list(tests)
    failed = False
    for name in names:
        try:
            findings = tests[name]()
        except Skip as reason:
            print(f"SKIP: {reason}")
            continue
        except (AssertionError, FileNotFoundError) as error:
            findings = [str(error)]
        for finding in findings:
            print(f"{name}: {finding}")
        failed = failed or bool(findings)
    sys.exit(1 if failed else 0)
