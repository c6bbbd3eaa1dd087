# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""How both programs are built: position-independent, everything bound and made read-only at the start, no stack to run, and
stacks and copies that are checked while they run."""
import json
import re
import shutil
import subprocess

from contract import BINARY, ROOT, Skip, main

PROGRAMS = [BINARY, BINARY.with_name("rankscope-serve")]


def readelf(program, *flags):
    if not shutil.which("readelf"):
        raise Skip("no readelf (binutils)")
    return subprocess.run(["readelf", "-W", *flags, program], capture_output=True, text=True, check=True).stdout


def of_each(*rules):
    """(what, flags of readelf, pattern, whether it must be there)"""
    findings = []
    for program in PROGRAMS:
        for what, flags, pattern, wanted in rules:
            if (re.search(pattern, readelf(program, *flags), re.M) is not None) != wanted:
                findings.append(f"{program.name}: {what}")
    return findings


def test_programs_are_position_independent():
    return of_each(("is not of type DYN", ["-h"], r"Type:\s+DYN", True),
                   ("is no PIE", ["-d"], r"\(FLAGS_1\).*\bPIE\b", True),
                   ("relocates its text", ["-d"], r"\(TEXTREL\)", False))


def test_tables_are_bound_and_read_only():
    return of_each(("has no RELRO segment", ["-l"], r"^\s+GNU_RELRO\s", True),
                   ("does not bind at the start", ["-d"], r"\(FLAGS_1\).*\bNOW\b", True))


def test_no_stack_and_no_writable_segment_runs():
    return of_each(("has no word on its stack", ["-l"], r"^\s+GNU_STACK\s", True),
                   ("has a stack that runs", ["-l"], r"^\s+GNU_STACK\s.*\bRWE\b", False),
                   ("has a segment that can be written and run", ["-l"], r"^\s+LOAD\s.*\bRWE\b", False))


def test_stacks_and_copies_are_checked():
    """Of the daemon by what it calls, of every file of ours by how it was compiled."""
    findings = of_each()
    called = readelf(PROGRAMS[1], "--dyn-syms")
    findings += [f"rankscope-serve: calls no {name}" for name in ("__stack_chk_fail",)
                 if not re.search(rf"UND {name}(@|$)", called, re.M)]
    database = BINARY.with_name("compile_commands.json")
    if not database.exists():
        raise Skip(f"no {database}")
    for unit in json.loads(database.read_text()):
        path = unit["file"].removeprefix(f"{ROOT}/")
        if not path.startswith(("exporter/", "detectors/")) or not path.endswith(".cc"):
            continue
        missing = [flag for flag in ("-fstack-protector-strong", "-fstack-clash-protection", "-D_FORTIFY_SOURCE=2")
                   if flag not in unit["command"].split()]
        findings += [f"{path}: compiled without {' '.join(missing)}"] if missing else []
    return findings


if __name__ == "__main__":
    main(globals())
