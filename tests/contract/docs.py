# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Tables in the folder READMEs are what `rankscope list` prints. `docs.py --write` writes them (CMake target `docs`)."""
import re
import sys

from contract import ROOT, main, output_of, read

# README -> the tables in it, between <!-- begin: TABLE --> and <!-- end: TABLE -->.
TABLES = {
    "detectors/README.md": ["families", "signals", "formats", "shapes", "redactions", "warnings", "hazards"],
    "exporter/README.md": ["sources", "expositions", "metrics"],
    "bpf/README.md": ["probes"],
}


def between(table):
    return re.compile(rf"(<!-- begin: {table} -->\n).*?(<!-- end: {table} -->)", re.S)


def with_table(text, table):
    output = output_of("list", table).strip("\n")
    replaced, count = between(table).subn(lambda match: f"{match[1]}{output}\n{match[2]}", text)
    if count != 1:
        raise AssertionError(f"the markers of table {table} are missing")
    return replaced


def check(readme, table):
    text = read(readme)
    if with_table(text, table) == text:
        return []
    return [f"{readme}: the table of {table} is not what `rankscope list {table}` prints; run `cmake --build build --target docs`"]


def test_families():
    return check("detectors/README.md", "families")


def test_signals():
    return check("detectors/README.md", "signals")


def test_formats():
    return check("detectors/README.md", "formats")


def test_shapes():
    return check("detectors/README.md", "shapes")


def test_redactions():
    return check("detectors/README.md", "redactions")


def test_warnings():
    return check("detectors/README.md", "warnings")


def test_hazards():
    return check("detectors/README.md", "hazards")


def test_sources():
    return check("exporter/README.md", "sources")


def test_expositions():
    return check("exporter/README.md", "expositions")


def test_metrics():
    return check("exporter/README.md", "metrics")


def write():
    for readme, tables in TABLES.items():
        text = read(readme)
        for table in tables:
            text = with_table(text, table)
        (ROOT / readme).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        main(globals())
