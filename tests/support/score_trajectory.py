#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Scores what `BINARY classify` makes of training curves against a corpus that names their shape.

usage: tests/support/score_trajectory.py BINARY [--corpus DIR] [--misses]

The folder holds index.tsv (file, trajectory, ...) and the logs. Without --corpus it is ../shared/corpus/progress beside the source
tree; where that is absent, says so and exits 0.
"""

import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys

CONFIDENT = 0.6


def family_state(verdict, code):
    for group in ("ruled_out", "undecidable"):
        for family in verdict.get(group, []):
            if family["code"] == code:
                return family.get("by") or ""
    return ""


def trajectory(verdict):
    """The shape of the curve as the verdict tells it; None where another event is the answer."""
    code, sub = verdict["code"], verdict.get("sub")
    if code == "E1":
        return {"nonfinite": "nan", "silent_nan": "nan", "frozen": "flat", "lr_zero": "flat"}.get(sub, "diverging")
    reason = family_state(verdict, "E1")
    if reason.startswith("the loss fell"):
        return "decreasing"
    if reason.startswith("the loss stays finite"):
        return "flat"
    if reason.startswith("only "):
        return "too_short"
    if "no loss is readable" in reason or "before it trained" in reason:
        return "unverifiable"
    return None


def accepted(row):
    shapes = {row["trajectory"]}
    for also in re.findall(r"\((\w+) also acceptable\)", row["note"]):
        shapes.add(also)
    # A curve that spiked and came back has fallen; in an index without that word it is flat or falling.
    if row["trajectory"] == "spike_recovered":
        shapes |= {"decreasing", "flat"}
    # Readable formats outside the listed ones: not reading them is right as well.
    if row["framework"] == "other":
        shapes.add("unverifiable")
    return shapes


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description="scores BINARY classify against logs whose curve has a name")
    parser.add_argument("binary")
    parser.add_argument("--corpus", type=pathlib.Path, default=root.parent / "shared/corpus/progress")
    parser.add_argument("--misses", action="store_true", help="list what is wrong, file by file")
    arguments = parser.parse_args()
    index = arguments.corpus / "index.tsv"
    if not index.exists():
        print(f"skipped: {index} is not there")
        return 0
    with open(index, encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE))
    right = told = confident_wrong = 0
    misses = []
    for row in rows:
        done = subprocess.run([arguments.binary, "classify", str(arguments.corpus / row["file"])], capture_output=True, check=False)
        verdict = json.loads(done.stdout)
        told_shape = trajectory(verdict)
        told += told_shape is not None
        good = told_shape in accepted(row)
        right += good
        wrong_health = verdict["code"] == "G1" and verdict["sub"] == "healthy" and row["trajectory"] in ("diverging", "nan")
        wrong_fault = verdict["code"] == "E1" and row["trajectory"] not in ("diverging", "nan", "flat")
        confident_wrong += (wrong_health or wrong_fault) and verdict["confidence"] >= CONFIDENT
        if not good:
            misses.append(f"{row['file']}  {told_shape} not {row['trajectory']} "
                          f"({verdict['code']} {verdict.get('sub')} {verdict['confidence']})")
    print(f"trajectory as named   {right}/{len(rows)} = {right / len(rows):.3f}")
    print(f"told at all           {told}/{len(rows)}")
    print(f"confident and wrong   {confident_wrong}/{len(rows)}")
    if arguments.misses:
        print("\n".join(misses))
    return 0


if __name__ == "__main__":
    sys.exit(main())
