#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Scores a classifier of training logs against a folder of labelled ones.

usage: tests/support/score_failures.py [BINARY] [--classifier 'CMD {file} {exit_code}'] [--baselines] [--corpus DIR] [--misses]

BINARY is rankscope, asked as `BINARY classify`. CMD is anything that prints a family's code, or JSON with `code` (and
`confidence`, `exception_type`, `fault_class`, `shows` where it knows them). --baselines adds tests/support/baselines.py to
the table. The folder holds labels.tsv and logs/; a column exit_code is told to the classifiers. Without --corpus it is
../shared/corpus/failures beside the source tree; where that is absent, says so and exits 0.
"""

import argparse
import csv
import json
import pathlib
import shlex
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


def rankscope_command(binary):
    def command(log, exit_code):
        return [binary, "classify", *(["--exit-code", exit_code] if exit_code else []), str(log)]
    return command


def other_command(template):
    def command(log, exit_code):
        return [part.format(file=log, exit_code=exit_code or "") for part in shlex.split(template)]
    return command


def ask(command):
    """The answer of one process, so that a crash costs one log and not all."""
    try:
        text = subprocess.run(command, capture_output=True, timeout=60, check=False).stdout.decode(errors="replace").strip()
        answer = json.loads(text) if text.startswith("{") else {"code": text.split()[0]}
    except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    if "error" not in answer:
        answer = {"confidence": 1.0, "exception_type": None, "fault_class": None, "shows": [], **answer}
    return answer


def classify(command, corpus, rows):
    """One object per log, in order."""
    return [ask(command(corpus / "logs" / row["file"], row.get("exit_code"))) for row in rows]


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


def print_table(scored):
    print(f"{'classifier':<24} {'family':>16} {'wrong >= 0.6':>16} {'exception':>16} {'key phrase':>16}")
    for name, answers in scored.items():
        columns = [[a["family"] for a in answers], [a["confident_wrong"] for a in answers],
                   [a["exception"] for a in answers], [a["phrase"] for a in answers]]
        print(f"{name:<24} " + " ".join(f"{share(column):>16}" for column in columns))
    print()


def classifiers(arguments):
    commands = {}
    if arguments.binary:
        commands["rankscope"] = rankscope_command(arguments.binary)
    for template in arguments.classifier:
        commands[template.split()[0]] = other_command(template)
    if arguments.baselines:
        script = pathlib.Path(__file__).with_name("baselines.py")
        for name in ("exit_code", "keywords", "first_regex"):
            commands[name] = other_command(f"{shlex.quote(sys.executable)} {script} {name} {{file}} {{exit_code}}")
    return commands


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description="scores classifiers against labelled logs")
    parser.add_argument("binary", nargs="?")
    parser.add_argument("--classifier", action="append", default=[], metavar="CMD")
    parser.add_argument("--baselines", action="store_true")
    parser.add_argument("--corpus", type=pathlib.Path, default=root.parent / "shared/corpus/failures")
    parser.add_argument("--misses", action="store_true", help="list what is wrong, file by file")
    arguments = parser.parse_args()
    labels = arguments.corpus / "labels.tsv"
    if not labels.exists():
        print(f"skipped: {labels} is not there")
        return 0
    with open(labels, encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE))
    scored = {name: [judge(row, verdict) for row, verdict in zip(rows, classify(command, arguments.corpus, rows))]
              for name, command in classifiers(arguments).items()}
    if len(scored) > 1:
        print_table(scored)
    for name, answers in list(scored.items())[:1]:
        print_scores(answers)
        if arguments.misses:
            print_misses(answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
