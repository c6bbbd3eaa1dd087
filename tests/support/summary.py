#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit files as ctest writes them.

Prints the failed tests, the skipped ones with their reasons and, last, `N passed, M failed, K skipped`.
Exit status 1 when something failed or nothing ran.

    summary.py RESULTS.xml...               the summary
    summary.py --failed REASON RESULTS.xml  writes a file with one failed test (a build that broke)
"""
import re
import sys
import xml.etree.ElementTree as ET


def reason_of(case):
    """Why a test skipped itself: what GTEST_SKIP printed, or a script's `SKIP: reason` line."""
    output = case.findtext("system-out") or ""
    match = re.search(r"^SKIP: *(.+)$", output, re.M) or re.search(r": Skipped\n(.+)", output)
    return match.group(1).strip() if match else "no reason given"


def write_failure(reason, path):
    suite = ET.Element("testsuite", name="build", tests="1", failures="1")
    case = ET.SubElement(suite, "testcase", name=reason, status="fail")
    ET.SubElement(case, "failure", message=reason)
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def main(argv):
    if len(argv) == 3 and argv[0] == "--failed":
        write_failure(argv[1], argv[2])
        return 0
    passed, failed, skipped = 0, [], []
    for path in argv:
        try:
            cases = ET.parse(path).getroot().iter("testcase")
        except (OSError, ET.ParseError) as error:
            failed.append(f"{path}: {error}")
            continue
        for case in cases:
            status = case.get("status", "run")
            if case.find("skipped") is not None and status != "fail":
                # ctest says so too of a test whose program is missing: that is a failure, not a choice.
                message = case.find("skipped").get("message", "")
                if "SKIP" in message:
                    skipped.append((case.get("name"), reason_of(case)))
                else:
                    failed.append(f"{case.get('name')} ({message or 'not run'})")
            elif status == "fail" or case.find("failure") is not None or case.find("error") is not None:
                failed.append(case.get("name"))
            else:
                passed += 1
    for name, reason in skipped:
        print(f"skipped: {name}: {reason}")
    for name in failed:
        print(f"FAILED: {name}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or passed + len(skipped) == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
