#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit files as ctest writes them.

Prints the ten slowest tests, the skipped ones with their reasons, the failed ones and, last, `N passed, M failed, K skipped`.
A test that failed, and passed in again.xml, counts as passed and is named `unsteady`. Of a group of GoogleTest's cases each
case counts. Exit status 1 when something failed or nothing ran.

    summary.py RESULTS.xml...               the summary
    summary.py --again RESULTS.xml...       names of the failed tests, if they may be tried once more
    summary.py --failed REASON RESULTS.xml  writes a file with one failed test (a build that broke)
"""
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

SLOWEST = 10
MAX_AGAIN = 3
# With real daemons, processes and clusters: what else the machine does may disturb them.
MAY_BE_UNSTEADY = ("serve", "hostile", "bpf", "run", "slurm", "real", "prometheus")


class Result:
    """One test: `state` is passed, failed or skipped; `why` says more of the latter two."""

    def __init__(self, case):
        self.name = case.get("name")
        self.seconds = float(case.get("time") or 0)
        self.output = case.findtext("system-out") or ""
        self.state, self.why = self.judge(case)

    def judge(self, case):
        status = case.get("status", "run")
        if case.find("skipped") is not None and status != "fail":
            # ctest says so too of a test whose program is missing: that is a failure, not a choice.
            message = case.find("skipped").get("message", "")
            return ("skipped", self.reason()) if "SKIP" in message else ("failed", message or "not run")
        if status == "fail" or case.find("failure") is not None or case.find("error") is not None:
            return "failed", ", ".join(sorted(set(re.findall(r"^\[  FAILED  \] (\S+?),? .*\(\d+ ms\)$", self.output, re.M))))
        return "passed", ""

    def reason(self):
        """Why a test skipped itself: what GTEST_SKIP printed, or a script's `SKIP: reason` line."""
        match = re.search(r"^SKIP: *(.+)$", self.output, re.M) or re.search(r": Skipped\n(.+)", self.output)
        return match.group(1).strip() if match else "no reason given"

    def cases(self):
        """Of a group, as GoogleTest's last lines count them."""
        match = re.search(r"^\[  PASSED  \] (\d+) tests?\.$", self.output, re.M)
        return int(match.group(1)) if match else 1


def read(path):
    return [Result(case) for case in ET.parse(path).getroot().iter("testcase")]


def write_failure(reason, path):
    suite = ET.Element("testsuite", name="build", tests="1", failures="1")
    case = ET.SubElement(suite, "testcase", name=reason, status="fail")
    ET.SubElement(case, "failure", message=reason)
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def print_again(paths):
    failed = [result.name for path in paths for result in read(path) if result.state == "failed"]
    if len(failed) <= MAX_AGAIN:
        for name in failed:
            if name.partition(".")[0] in MAY_BE_UNSTEADY:
                print(name)


def summarise(paths):
    results, unreadable = [], []
    for path in paths:
        try:
            results += read(path)
        except (OSError, ET.ParseError) as error:
            unreadable.append(f"{path}: {error}")
    return results, unreadable


def main(argv):
    if len(argv) == 3 and argv[0] == "--failed":
        write_failure(argv[1], argv[2])
        return 0
    if argv[:1] == ["--again"]:
        print_again(argv[1:])
        return 0
    again = [path for path in argv if Path(path).name == "again.xml"]
    results, failed = summarise([path for path in argv if path not in again])
    passed_alone = {result.name for result in summarise(again)[0] if result.state == "passed"}

    print(f"the {SLOWEST} slowest:")
    for result in sorted(results, key=lambda result: -result.seconds)[:SLOWEST]:
        print(f"  {result.seconds:6.1f} s  {result.name}")
    skipped = [result for result in results if result.state == "skipped"]
    for result in skipped:
        print(f"skipped: {result.name}: {result.why}")
    passed = sum(result.cases() for result in results if result.state == "passed")
    unsteady = []
    for result in results:
        if result.state == "failed" and result.name in passed_alone:
            unsteady.append(result.name)
        elif result.state == "failed":
            failed.append(result.name + (f" ({result.why})" if result.why else ""))
    for name in failed:
        print(f"FAILED: {name}")
    for name in unsteady:
        print(f"unsteady: {name} failed beside others and passed alone")
    passed += len(unsteady)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or passed + len(skipped) == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
