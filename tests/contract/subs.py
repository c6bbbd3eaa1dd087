# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A family's sub is a label value: a closed list of at most 16. The subs that code compares are in one table."""
import re

from contract import ROOT, main, read, sources

LIMIT = 16
SUB = r"[a-z][a-z0-9_]*"
# Values that come from elsewhere: the list in the comment of the type that carries them.
EXCEPTION = ("detectors/logs/failures/exception_table.h", r"((?:// )?(?:%s\s*\|\s*(?://)?\s*)+%s)\nstd::string_view ExceptionSub" % (SUB, SUB))
RENDEZVOUS = ("detectors/logs/record.h", r"could not form; sub\s+(?://\s*)?(%s(?:\|%s)+);" % (SUB, SUB))
BORROWED = {"A1": EXCEPTION, "X1": EXCEPTION, "C1": RENDEZVOUS}


def borrowed(code):
    path, pattern = BORROWED[code]
    found = re.search(pattern, read(path))
    return set(re.findall(SUB, found[1])) if found else None


COMPARED = r'\bsub(?:\(\))?\s*[!=]=\s*"|"[^"\n]*"\s*[!=]=\s*[\w.>()-]*\bsub\b'
# Functions that compare their argument with the sub of an incident.
HANDED_ON = r'\b(?:PrimarySchedulerEnd|SchedulerFinding|Notice|NoticeFinding)\(f,\s*"'


def table():
    """constant -> text"""
    return dict(re.findall(r'^SUB\((k\w+), "(%s)"\)' % SUB, read("detectors/model/subs.inc"), re.M))


def with_texts(source):
    constants = table()
    return re.sub(r"\bsubs::(k\w+)", lambda found: f'"{constants[found[1]]}"', source)


def subs_of_families():
    subs = {}
    for code, name in re.findall(r"^FAMILY\((\w+), (\w+),", read("detectors/families/families.inc"), re.M):
        text = with_texts(read(f"detectors/families/{name}.cc"))
        rows = set(re.findall(r'\{SIG\w+, "(%s)"\}' % SUB, text))
        named = set(re.findall(r'return "(%s)";' % SUB, text))  # functions that name a sub
        for body in re.findall(r"^Finding Evaluate\(.*?\{\n(.*?)^\}", text, re.M | re.S):
            found = subs.setdefault(code, set())
            for statement in re.findall(r"\bsub = ([^;]*);|SchedulerFinding\(f, (\"[^)]*)\)", body):
                found |= set(re.findall(r'"(%s)"' % SUB, " ".join(statement)))
            if "kSubs" in body:
                found |= rows
            if re.search(r"\b(Sub|Divergence|NotLearning)\(", body):
                found |= named
    return subs


def test_subs_are_compared_by_name():
    findings, used = [], set()
    for path in sources("detectors"):
        text = re.sub(r"//.*", "", read(path))
        used |= set(re.findall(r"\bsubs::(k\w+)", text))
        for found in re.finditer(f"{COMPARED}|{HANDED_ON}", text):
            line = text[:found.start()].count("\n") + 1
            findings.append(f"{path}:{line} compares a sub with a literal; use or add a row of detectors/model/subs.inc")
    names = table()
    findings += [f"detectors/model/subs.inc: {constant} is not used" for constant in names if constant not in used]
    return findings + [f'detectors/model/subs.inc: two rows have "{text}"' for text in set(names.values())
                       if list(names.values()).count(text) > 1]


def test_subs_are_few():
    findings = []
    families = subs_of_families()
    if len(families) < 20:
        findings.append(f"only {len(families)} Evaluate functions were read: has their form changed?")
    for code in BORROWED:
        values = borrowed(code)
        if values is None:
            findings.append(f"{code}: {BORROWED[code][0]} lists its subs no more")
        else:
            families.setdefault(code, set()).update(values)
    for code, subs in sorted(families.items()):
        if len(subs) > LIMIT:
            findings.append(f"{code} has {len(subs)} subs, more than {LIMIT}: {', '.join(sorted(subs))}")
    return findings


if __name__ == "__main__":
    main(globals())
