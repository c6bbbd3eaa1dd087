# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""How both programs are linked: position-independent, everything bound and made read-only at the start, no stack to run."""
import re
import shutil
import subprocess

from contract import BINARY, Skip, main

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


if __name__ == "__main__":
    main(globals())
