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


REASON = re.compile(r"^REASON\((k\w+),((?:\s*\"(?:[^\"\\]|\\.)*\")+)", re.M)


def families():
    return "\n".join(read(path) for path in sources("detectors") if path.parts[1] == "families" and path.suffix == ".cc")


def test_every_reason_is_given_by_a_family():
    """That each has a row is a static_assert of reasons.cc."""
    code = families()
    reasons = [reason for reason, _ in REASON.findall(read("detectors/sentences/reasons.inc")) if reason != "kNone"]
    return [f"{reason} of reasons.inc is given by no family" for reason in reasons if f"Reason::{reason}" not in code]


def test_every_remark_is_made():
    code = "\n".join(read(path) for path in sources("detectors") if path.parts[1] in {"verdict", "engine"})
    remarks = re.findall(r"^REMARK\((k\w+),", read("detectors/sentences/remarks.inc"), re.M)
    return [f"{remark} of remarks.inc is made by nobody" for remark in remarks if f"Remark::{remark}" not in code]


def test_every_field_of_a_reason_is_written_by_a_family():
    code, known, findings = families(), fields(), []
    for reason, text in REASON.findall(read("detectors/sentences/reasons.inc")):
        names = set(PLACEHOLDER.findall(text))
        for first, second in CONDITION.findall(text):
            names |= {match.group(1) for term in (first or second).split(",") if (match := TERM.match(term))}
        findings += [f"{reason} quotes {name}, which no family writes" for name in sorted(names)
                     if f"FieldId::{known.get(name)}" not in code]
    return findings


def test_what_no_text_has_is_what_families_look_for():
    words = re.findall(r'^WORDS\("no_text", "(\w+)"', read("detectors/sentences/words.inc"), re.M)
    asked = set(re.findall(r'\b(?:NoSuchText|NoSchedulerText|NotTheEnd)\([^;]*?"(\w+)"\)', families()))
    return [f"WORDS no_text {name}: asked for by a family, or in the table, but not both" for name in sorted(asked ^ set(words))]


def test_a_cited_metric_is_of_the_catalogue():
    known = catalogue()
    return [f"{path} cites {name}, which is not in `rankscope list metrics`" for path in sources("detectors")
            if path.parts[1] in {"features", "windows", "verdict"} for name in sorted(set(METRIC.findall(read(path)))) if name not in known]


if __name__ == "__main__":
    main(globals())
