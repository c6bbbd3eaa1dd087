#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Scores `rankscope progress` against a corpus of logs with expected records.

usage: score_progress.py BINARY CORPUS_DIR [--verbose] [--events]

CORPUS_DIR holds NAME.log, NAME.expect.tsv and index.tsv (file, framework, ...). A cell that is empty in the expectation is
not judged. Exits 1 where an invented record was printed for a log of framework `custom`.

With --events scores `rankscope progress --events` instead: the number of checkpoint saves, and whether a checkpoint was
loaded or resumed from, against the columns checkpoint_saves and resume_marker. Exits 1 where a resume was invented.
"""
import collections
import csv
import itertools
import math
import pathlib
import subprocess
import sys

COLUMNS = ("step", "loss", "grad_norm", "lr")


def read_rows(text):
    rows = list(csv.reader(text.splitlines(), delimiter="\t"))
    return [dict(zip(COLUMNS, row + [""] * 4)) for row in rows[1:]]


def same_number(got, expected):
    if expected == "":
        return True
    if got == "":
        return False
    try:
        a, b = float(got), float(expected)
    except ValueError:
        return got == expected
    return a == b or (math.isnan(a) and math.isnan(b))


def same_row(got, expected):
    return all(same_number(got[c], expected[c]) for c in COLUMNS)


def matched(got, expected):
    """Length of the longest common subsequence, greedily where rows run in step (they nearly always do)."""
    i = j = count = 0
    while i < len(got) and j < len(expected):
        if same_row(got[i], expected[j]):
            count, i, j = count + 1, i + 1, j + 1
            continue
        ahead = next((k for k in range(i + 1, min(i + 50, len(got))) if same_row(got[k], expected[j])), None)
        if ahead is not None:
            i = ahead
        else:
            j += 1
    return count


def last_per_epoch(rows):
    return [row for i, row in enumerate(rows) if row["step"] != "" or i + 1 == len(rows)]


def distinct_steps(rows):
    return [row for i, row in enumerate(rows) if i == 0 or row != rows[i - 1]]


def alternatives(framework, expected):
    yield expected
    if framework in ("lightning", "keras"):
        yield last_per_epoch(expected)
    yield distinct_steps(expected)
    if framework == "other":
        yield []


def score(got, framework, expected):
    best = None
    for rows in alternatives(framework, expected):
        exact = matched(got, rows)
        result = (exact == len(rows) and len(got) == len(rows), exact - (len(got) - exact), exact, len(rows))
        if best is None or result > best:
            best = result
    all_exact, _, exact, wanted = best
    return {"expected": wanted, "got": len(got), "exact": exact, "invented": len(got) - exact, "all": all_exact}


def score_events(binary, corpus, files):
    """Saves are announced at their begin, their end or both, so the larger of the two counts is theirs."""
    exact = resumes = invented = 0
    print(f"{'file':28}{'saves':>6}{'got':>5}{'resume':>8}{'got':>5}")
    for entry in files:
        run = subprocess.run([binary, "progress", "--events", str(corpus / entry["file"])], capture_output=True,
                             text=True, check=False)
        events = [line.split("\t", 1)[1] for line in run.stdout.splitlines()[1:]]
        # Every rank may say it: what is said again at once is one event.
        kinds = collections.Counter(key.split("\t")[0] for key, _ in itertools.groupby(events))
        saves, got = int(entry["checkpoint_saves"]), max(kinds["save_begin"], kinds["save_end"])
        resumed, said = entry["resume_marker"] != "-", kinds["loaded"] > 0 or kinds["load_begin"] > 0
        exact += saves == got
        resumes += resumed == said
        invented += said and not resumed
        mark = "" if saves == got and resumed == said else "  <--"
        print(f"{entry['file']:28}{saves:6}{got:5}{str(resumed):>8}{str(said):>7}{mark}")
    print(f"\nfiles with all saves exact: {exact} of {len(files)}; with the resume right: {resumes} of {len(files)}")
    return 1 if invented else 0


def main(argv):
    if len(argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    binary, corpus, verbose = argv[1], pathlib.Path(argv[2]), "--verbose" in argv
    frameworks = collections.defaultdict(lambda: collections.Counter())
    invented_in_custom = 0
    with open(corpus / "index.tsv", encoding="utf-8") as index:
        files = list(csv.DictReader(index, delimiter="\t", quoting=csv.QUOTE_NONE))
    if "--events" in argv:
        return score_events(binary, corpus, files)
    print(f"{'file':28}{'expected':>9}{'got':>7}{'exact':>7}{'invented':>9}")
    for entry in files:
        log = corpus / entry["file"]
        expected = read_rows((corpus / (log.stem + ".expect.tsv")).read_text(encoding="utf-8"))
        run = subprocess.run([binary, "progress", str(log)], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            print(f"{entry['file']}: exit status {run.returncode}: {run.stderr.strip()}")
        got = read_rows(run.stdout)
        result = score(got, entry["framework"], expected)
        total = frameworks[entry["framework"]]
        total.update({"files": 1, **{k: int(v) for k, v in result.items()}})
        if entry["framework"] == "custom":
            invented_in_custom += len(got)
        mark = "" if result["all"] else "  <--"
        print(f"{entry['file']:28}{result['expected']:9}{result['got']:7}{result['exact']:7}{result['invented']:9}{mark}")
        if verbose and not result["all"]:
            for g, e in list(zip(got, expected))[:3]:
                print("    got", list(g.values()), "expected", list(e.values()))
    print(f"\n{'framework':22}{'files':>6}{'all exact':>10}{'expected':>9}{'exact':>8}{'invented':>9}")
    for name, total in sorted(frameworks.items()):
        print(f"{name:22}{total['files']:6}{total['all']:10}{total['expected']:9}{total['exact']:8}{total['invented']:9}")
    every = sum(frameworks.values(), collections.Counter())
    print(f"\nfiles with all records exact: {every['all']} of {every['files']} ({100 * every['all'] / every['files']:.1f} %)")
    return 1 if invented_in_custom else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
