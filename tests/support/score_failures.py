#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Scores `BINARY classify` against a folder of labelled logs.

usage: tests/support/score_failures.py BINARY [--corpus DIR] [--misses]

The folder holds labels.tsv and logs/. Without --corpus it is ../shared/corpus/failures beside the source tree; where that is
absent, says so and exits 0.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys

# The labels' `other`: families that the labels' own list lacks.
OTHER = {"X1", "X20", "X21"}
CONFIDENT = 0.6


def last_part(name):
    return name.rsplit(".", 1)[-1]


def acceptable(row):
    codes = set()
    for code in row["acceptable"].split(","):
        codes |= OTHER if code == "other" else {code}
    return codes


def cites(verdict, phrase):
    for shown in verdict["shows"]:
        cite = shown.get("cite", {})
        if any(phrase in text for text in (shown["text"], cite.get("line", ""), cite.get("text", ""))):
            return True
    return False


def classify(binary, logs):
    """One object per log, in order; one process per log, so that a crash costs one answer and not all."""
    verdicts = []
    for log in logs:
        try:
            done = subprocess.run([binary, "classify", str(log)], capture_output=True, timeout=60)
            verdicts.append(json.loads(done.stdout))
        except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
            verdicts.append({"error": f"{type(error).__name__}: {error}"})
    return verdicts


def judge(row, verdict):
    """What is right about one verdict; None = the label does not ask."""
    answer = {"row": row, "verdict": verdict, "error": verdict.get("error")}
    if answer["error"]:
        verdict = {"code": "-", "exception_type": None, "shows": [], "confidence": 0.0, "fault_class": None}
        answer["verdict"] = verdict
    answer["family"] = verdict["code"] in acceptable(row)
    answer["exception"] = None
    if row["exception_type"] != "-":
        answer["exception"] = last_part(verdict["exception_type"] or "") == last_part(row["exception_type"])
    answer["phrase"] = None if row["key_phrase"] == "-" else cites(verdict, row["key_phrase"])
    answer["confident_wrong"] = not answer["family"] and float(verdict["confidence"]) >= CONFIDENT
    answer["fault_class"] = None
    if row["family"] == "A1" and row["acceptable_fault_class"] != "-":
        answer["fault_class"] = verdict["fault_class"] in row["acceptable_fault_class"].split(",")
    return answer


def share(values):
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    return f"{sum(values)}/{len(values)} = {sum(values) / len(values):.3f}"


def print_scores(answers):
    print(f"family acceptable     {share([a['family'] for a in answers])}")
    for code in sorted({a["row"]["family"] for a in answers}):
        print(f"  {code:<19} {share([a['family'] for a in answers if a['row']['family'] == code])}")
    print(f"exception exact       {share([a['exception'] for a in answers])}")
    print(f"key phrase cited      {share([a['phrase'] for a in answers])}")
    print(f"confident and wrong   {share([a['confident_wrong'] for a in answers])}")
    print(f"A1 fault class        {share([a['fault_class'] for a in answers])}")
    print(f"no answer             {share([a['error'] is not None for a in answers])}")


def print_misses(answers):
    for a in answers:
        row, verdict = a["row"], a["verdict"]
        wrong = []
        if a["error"]:
            wrong.append(f"error: {a['error']}")
        elif not a["family"]:
            wrong.append(f"family {verdict['code']} ({verdict['confidence']}) not in {row['acceptable']}")
        if a["exception"] is False:
            wrong.append(f"exception {verdict['exception_type']} not {row['exception_type']}")
        if a["phrase"] is False:
            wrong.append(f"not cited: {row['key_phrase']!r}")
        if a["fault_class"] is False:
            wrong.append(f"fault_class {verdict['fault_class']} not in {row['acceptable_fault_class']}")
        for text in wrong:
            print(f"{row['file']}  {text}")


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description="scores BINARY classify against labelled logs")
    parser.add_argument("binary")
    parser.add_argument("--corpus", type=pathlib.Path, default=root.parent / "shared/corpus/failures")
    parser.add_argument("--misses", action="store_true", help="list what is wrong, file by file")
    arguments = parser.parse_args()
    labels = arguments.corpus / "labels.tsv"
    if not labels.exists():
        print(f"skipped: {labels} is not there")
        return 0
    with open(labels, encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE))
    verdicts = classify(arguments.binary, [arguments.corpus / "logs" / row["file"] for row in rows])
    answers = [judge(row, verdict) for row, verdict in zip(rows, verdicts)]
    print_scores(answers)
    if arguments.misses:
        print_misses(answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
