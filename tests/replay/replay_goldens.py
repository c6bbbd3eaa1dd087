#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Judges golden recordings again and compares with what was said of them.

    replay_goldens.py NAME...    tests/fixtures/recordings/NAME/verdict.json: the verdict, but for what is said of other families
    replay_goldens.py --others   tests/fixtures/other_families/CODE.txt: why a family is ruled out or open, of every recording
    replay_goldens.py --accept   writes all of them as the program says it now

Both together are every byte of a verdict, but for the numbers of the evidence that only other families cite. What is not a space
between two tokens is compared as it was printed.
"""
import difflib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("RANKSCOPE_BINARY", ROOT / "build" / "rankscope")
GOLDENS = ROOT / "tests/fixtures/recordings"
OTHERS = ROOT / "tests/fixtures/other_families"
OTHER_LISTS = ("ruled_out", "undecidable")


class Number(str):
    """A number as it was printed: a verdict's bytes do not depend on how Python prints one."""


def parse(text):
    return json.loads(text, parse_float=Number, parse_int=Number)


def compact(value):
    """As rankscope's own writer prints it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{compact(of)}" for key, of in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    return value if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)


def pretty(value, indent=0):
    """One member a line, down to those that fit into one."""
    line = compact(value)
    if not isinstance(value, (dict, list)) or len(line) + indent <= 100 and indent > 2:
        return line
    inner = "\n" + " " * (indent + 1)
    if isinstance(value, dict):
        members = [f"{json.dumps(key)}: {pretty(of, indent + 1)}" for key, of in value.items()]
    else:
        members = [pretty(of, indent + 1) for of in value]
    if not members:
        return line
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return opening + inner + ("," + inner).join(members) + "\n" + " " * indent + closing


def judge(name):
    """The document; AssertionError where there is none, or it does not hold together."""
    result = subprocess.run([BINARY, "replay", "--format", "json", GOLDENS / name / "recording"], capture_output=True, text=True,
                            timeout=60, check=False)
    assert result.returncode == 0, f"{name}: replay: exit {result.returncode}: {result.stderr.strip()}"
    document = parse(result.stdout)
    assert compact(document) == result.stdout.rstrip("\n"), f"{name}: not compact, or a text with escapes of its own"
    for verdict in document["verdicts"]:
        ids = [evidence["id"] for evidence in verdict["shows"]]
        assert ids == [str(i) for i in range(len(ids))], f"{name}: the evidence is not numbered through"
        assert cited(verdict) <= set(ids), f"{name}: something cites evidence that is not there"
    return document


def cited(value):
    """Numbers of the evidence that anything in it cites."""
    if isinstance(value, list):
        return set().union(*map(cited, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    found = set()
    for key, of in value.items():
        if key in ("evidence", "ruled_in_by"):
            found |= set(of if isinstance(of, list) else [of])
        else:
            found |= cited(of)
    return found


def without_others(verdict):
    own = {key: of for key, of in verdict.items() if key not in OTHER_LISTS}
    foreign = cited({key: verdict[key] for key in OTHER_LISTS}) - cited(own)
    return {**own, "shows": [evidence for evidence in own["shows"] if evidence["id"] not in foreign]}


def slim(document):
    return pretty({**document, "verdicts": [without_others(verdict) for verdict in document["verdicts"]]}) + "\n"


def others(documents):
    """Code of a family -> its text: of each recording one line, and below it what that cites."""
    texts = {}
    for name, document in documents.items():
        for verdict in document["verdicts"]:
            shows = {evidence["id"]: evidence for evidence in verdict["shows"]}
            for kind in OTHER_LISTS:
                for row in verdict[kind]:
                    said = {key: of for key, of in row.items() if key not in ("code", "evidence")}
                    lines = [f"{name}: {kind} {compact(said)}"]
                    for number in row.get("evidence", []):
                        lines.append("  " + compact({key: of for key, of in shows[number].items() if key != "id"}))
                    texts.setdefault(row["code"], []).extend(lines)
    return {code: "\n".join(lines) + "\n" for code, lines in texts.items()}


def names_of_goldens():
    return sorted(path.name for path in GOLDENS.iterdir())


def differs(path, now, what):
    golden = path.read_text() if path.exists() else ""
    if golden == now:
        return False
    print(f"{what}; if that is right: tests/accept")
    print("\n".join(difflib.unified_diff(golden.splitlines(), now.splitlines(), "golden", "now", lineterm="", n=2)))
    return True


def check(names):
    return any([differs(GOLDENS / name / "verdict.json", slim(judge(name)), f"{name}: the verdict changed") for name in names])


def check_others():
    texts = others({name: judge(name) for name in names_of_goldens()})
    codes = sorted({path.stem for path in OTHERS.glob("*.txt")} | set(texts))
    return any([differs(OTHERS / f"{code}.txt", texts.get(code, ""), f"{code}: what is said where another family is named changed")
                for code in codes])


def accept():
    documents = {name: judge(name) for name in names_of_goldens()}
    for name, document in documents.items():
        (GOLDENS / name / "verdict.json").write_text(slim(document))
    OTHERS.mkdir(exist_ok=True)
    for path in OTHERS.glob("*.txt"):
        path.unlink()
    for code, text in others(documents).items():
        (OTHERS / f"{code}.txt").write_text(text)


def main(arguments):
    try:
        if arguments == ["--accept"]:
            accept()
            return 0
        return 1 if (check_others() if arguments == ["--others"] else check(arguments or names_of_goldens())) else 0
    except AssertionError as error:
        print(error)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
