# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What recordings, verdicts and readers of them rely on for years: tags, signal ids and JSON keys.

frozen_tags.txt has one line for each. Adding is allowed: `frozen.py --append` writes new lines at the end; a line that is
there never changes and never goes.
"""
import json
import re
import sys

from contract import ROOT, main, rankscope, read

FILE = "tests/contract/frozen_tags.txt"
LOG = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\nValueError: no\n"


def proto_lines(path):
    """`recording LogLine.text = 6`, `recording LogLine.End.LF = 1`, in the order of the file."""
    lines, scope = [], []
    for line in read(path).splitlines():
        line = line.split("//")[0].strip()
        if opening := re.match(r"(message|enum|oneof)\s+(\w+)\s*\{", line):
            if not line.endswith("}"):
                scope.append("" if opening[1] == "oneof" else opening[2])
        elif line == "}":
            scope.pop()
        elif field := re.match(r"(?:(?:repeated|optional)\s+)?(\w+\s+)?(\w+)\s*=\s*(\d+)\s*;", line):
            name = ".".join([part for part in scope if part] + [field[2]])
            kind = (field[1] or "").strip()
            lines.append(f"{path.rsplit('/')[-1]} {name} = {field[3]} {kind}".rstrip())
    return lines


def signal_lines():
    rows = re.findall(r'^(?:SIGNAL\((\d+), \w+|// RESERVED\((\d+)), "(\w+)", "([^"]*)", (\w+)', read("detectors/model/signals.inc"), re.M)
    return [f"signal {name} = {number or reserved} {kind} {unit}".rstrip() for number, reserved, name, unit, kind in rows]


def event_lines():
    rows = re.findall(r'^EVENT\((\d+), \w+, "(\w+)"\)', read("detectors/model/event_types.inc"), re.M)
    return [f"event {name} = {number}" for number, name in rows]


def key_lines(value, prefix):
    """Paths of all keys of a JSON document; elements of a list share a path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{prefix}.{key}"
            yield from key_lines(inner, f"{prefix}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from key_lines(inner, f"{prefix}[]")


def verdict_lines():
    result = rankscope("classify", "--format", "json", "-", stdin=LOG)
    if result.returncode != 0:
        raise AssertionError(f"rankscope classify: exit {result.returncode}: {result.stderr.strip()}")
    keys = dict.fromkeys(key_lines(json.loads(result.stdout.splitlines()[0]), "verdict"))
    # Text has no clock and no processes; a recording has both.
    replay = rankscope("replay", str(ROOT / "tests" / "fixtures" / "recordings" / "segv" / "recording"))
    if replay.returncode != 0:
        raise AssertionError(f"rankscope replay: exit {replay.returncode}: {replay.stderr.strip()}")
    keys |= dict.fromkeys(key_lines(json.loads(replay.stdout)["verdicts"][0], "verdict"))
    return [f"json {key}" for key in keys]


def frozen():
    return [line for line in read(FILE).splitlines() if line and not line.startswith("#")]


def present():
    lines = proto_lines("detectors/proto/recording.proto") + proto_lines("detectors/proto/verdict.proto") \
        + proto_lines("exporter/proto/notification.proto") + signal_lines() + event_lines()
    return lines


def differences(now, prefixes):
    then = [line for line in frozen() if line.startswith(prefixes)]
    findings = [f"'{line}' was there and is gone or changed" for line in then if line not in now]
    findings += [f"'{line}' is new: `python3 tests/contract/frozen.py --append` freezes it" for line in now if line not in then]
    return findings


def test_tags_and_signals():
    return differences(present(), ("recording.proto", "verdict.proto", "notification.proto", "signal", "event"))


def test_tags_are_used_once():
    findings, seen = [], {}
    for line in frozen():
        if line.startswith("json"):
            continue
        name, number = line.split(" = ")
        scope = (name.rpartition(".")[0] if "." in name else name.split()[0], number.split()[0])
        if scope in seen:
            findings.append(f"'{line}' uses the number of '{seen[scope]}'")
        seen[scope] = line
    return findings


def test_verdict_keys():
    then = [line for line in frozen() if line.startswith("json")]
    now = verdict_lines()
    return [f"'{line}' was in the verdict and is gone" for line in then if line not in now] + (
        [] if then else ["no key of the verdict is frozen"])


def append():
    now = present()
    try:
        now += verdict_lines()
    except AssertionError as error:
        print(f"keys of the verdict are not added: {error}")
    new = [line for line in now if line not in frozen()]
    with open(ROOT / FILE, "a", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in new)


if __name__ == "__main__":
    if sys.argv[1:] == ["--append"]:
        append()
    else:
        main(globals())
