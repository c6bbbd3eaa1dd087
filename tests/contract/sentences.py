# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What sentences quote is there: each field that a row names is written by somebody, each field is used, and a metric that an
evidence cites is one of the catalogue."""
import re

from catalogue import METRIC, catalogue
from contract import main, read, sources

FIELD = re.compile(r'^FIELD\((k\w+), "(\w+)", k\w+\)', re.M)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
# {name}, {name:format} of a template, and the terms of a condition: of a row's second or third string, or behind "[?".
PLACEHOLDER = re.compile(r"\{(\w+)[:}]")
CONDITION = re.compile(r"\[\?([^:\]]*):|\|\?([^:\]]*):")
TERM = re.compile(r"!?(\w+)(?:[=<>!*]|$)")
EVIDENCE = re.compile(r'^EVIDENCE\((\w+), "[^"]*", "([^"]*)"', re.M)
# Read from every observation by the renderer itself.
OF_EVIDENCE = {"who", "ranks", "process", "store", "observed", "expected", "times", "repeats", "line", "at"}


def tables():
    return [path for path in sources("detectors") if path.parent.name == "sentences" and path.suffix == ".inc"]


def fields():
    return {name: identifier for identifier, name in FIELD.findall(read("detectors/model/fields.inc"))}


def quoted():
    """Each field that a row quotes or asks for -> the table that does."""
    found = {}
    for table in tables():
        text = read(table)
        conditions = [condition for _, condition in EVIDENCE.findall(text)]
        for literal in STRING.findall(text):
            for name in PLACEHOLDER.findall(literal):
                found.setdefault(name, table.name)
            conditions += [first or second for first, second in CONDITION.findall(literal)]
        for condition in conditions:
            for term in condition.split(","):
                if match := TERM.match(term):
                    found.setdefault(match.group(1), table.name)
    return found


def test_every_field_that_a_row_names_is_written():
    code = "\n".join(read(path) for path in sources("detectors")
                     if path.parts[1] in {"features", "families", "verdict", "engine", "windows", "logs"})
    known = fields()
    findings = []
    for name, table in sorted(quoted().items()):
        if name in OF_EVIDENCE:
            continue
        if name not in known:
            findings.append(f"{table} names {name}, which is no field")
        elif f"FieldId::{known[name]}" not in code and not re.search(rf'"{name}"[,\s}}]', code):
            findings.append(f"{table} names {name}, which nobody writes")
    return findings


def test_every_field_is_used():
    code = "\n".join(read(path) for path in sources("detectors") if path.name != "fields.inc")
    named = quoted()
    return [f"{name} is a field that no sentence quotes and no code reads or writes" for name, identifier in sorted(fields().items())
            if name not in named and f"FieldId::{identifier}" not in code and f'"{name}"' not in code]


def test_a_cited_metric_is_of_the_catalogue():
    known = catalogue()
    return [f"{path} cites {name}, which is not in `rankscope list metrics`" for path in sources("detectors")
            if path.parts[1] in {"features", "windows", "verdict"} for name in sorted(set(METRIC.findall(read(path)))) if name not in known]


if __name__ == "__main__":
    main(globals())
