# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""SECURITY.md is true: its table of attacks is what tests/hostile holds, and every test that it names exists.

`attacks.py --write` writes the table (CMake target `docs`); `attacks.py --count` prints how many attacks there are.
"""
import ast
import re
import sys

from contract import ROOT, main, read, tracked_files

MARKERS = re.compile(r"(<!-- begin: attacks -->\n).*?(<!-- end: attacks -->)", re.S)
NAMED = re.compile(r"`((?:hostile|contract|unit|serve|bpf|fuzz|run)\.[\w.*]+)`")


def attack_files():
    return [path for path in tracked_files()
            if path.parts[:2] == ("tests", "hostile") and path.name.endswith("_test.py")]


def attacks():
    """(ctest name, method, its docstring on one line) of every attack."""
    found = []
    for path in attack_files():
        for part in ast.parse(read(path)).body:
            if not isinstance(part, ast.ClassDef) or not any(getattr(base, "id", "") == "HostileTest" for base in part.bases):
                continue
            for method in part.body:
                if isinstance(method, ast.FunctionDef) and method.name.startswith("test_"):
                    text = " ".join((ast.get_docstring(method) or "").split())
                    found.append((f"hostile.{part.name}", method.name, text))
    return found


def table():
    lines = ["| test | attack, and what holds |", "| --- | --- |"]
    lines += [f"| `{test}` | {text.replace('|', chr(92) + '|')} |" for test, _, text in sorted(attacks())]
    return "\n".join(lines)


def with_table(text):
    replaced, count = MARKERS.subn(lambda match: f"{match[1]}{table()}\n{match[2]}", text)
    if count != 1:
        raise AssertionError("SECURITY.md: the markers of the table of attacks are missing")
    return replaced


def test_every_attack_says_what_it_is():
    return [f"{test}: {method} has no docstring, which is its row of the table"
            for test, method, text in attacks() if not text]


def test_the_table_is_what_the_tests_are():
    text = read("SECURITY.md")
    return [] if with_table(text) == text else \
        ["SECURITY.md: the table of attacks is not what tests/hostile holds; run `cmake --build build --target docs`"]


def test_rows_of_the_trust_model_name_tests_that_exist():
    text = MARKERS.sub("", read("SECURITY.md"))
    hostile = {test for test, _, _ in attacks()}
    everything = "\n".join(read(path) for path in tracked_files() if path.parts[0] == "tests" and path.suffix in {".cc", ".py", ".txt"})
    findings = []
    for name in NAMED.findall(text):
        tier, rest = name.split(".", 1)
        last = rest.rsplit(".", 1)[-1].rstrip("*")
        known = name in hostile if tier == "hostile" else re.search(rf"\b{re.escape(last)}", everything)
        if not known:
            findings.append(f"SECURITY.md names `{name}`, and there is no such test")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    for row in rows[1:]:
        if not NAMED.search(row):
            findings.append(f"SECURITY.md: a row of the trust model names no test: {row[:80]}")
    return findings


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        (ROOT / "SECURITY.md").write_text(with_table(read("SECURITY.md")), encoding="utf-8")
    elif sys.argv[1:] == ["--count"]:
        print(len(attacks()))
    else:
        main(globals())
