# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The shape of the tree and of its files."""
import re
from pathlib import Path

from contract import ROOT, TOP_LEVEL_FOLDERS, main, read, tracked_files

TOP_LEVEL_FILES = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md",
                   "THIRD_PARTY.md", ".clang-format", ".clang-tidy", ".editorconfig", ".gitignore"}
PATH = Path(__file__).resolve().relative_to(ROOT)
SOFT_LINES, HARD_LINES = 400, 600
WITHOUT_SPDX = {".json", ".md", ".log", ".tsv", ".txt", ".rsrec", ".rec", ".pb", ".bin", ".out", ".prom", ".jsonl", ".yaml.golden",
                ".gitkeep", ".patch"}
# Generated or recorded, by folder.
DATA_FOLDERS = ("tests/fixtures/", "tests/fuzz/seeds/", "tests/prometheus/golden/")


def is_text(path):
    return b"\0" not in (ROOT / path).read_bytes()[:4096]


def own_sources():
    return [path for path in tracked_files() if not path.as_posix().startswith(DATA_FOLDERS)]


def test_top_level_is_the_picture():
    findings = []
    for path in tracked_files():
        if len(path.parts) == 1:
            if path.name not in TOP_LEVEL_FILES:
                findings.append(f"{path}: no such file in the picture of README.md")
        elif path.parts[0] not in TOP_LEVEL_FOLDERS + [".ci", "LICENSES"]:
            findings.append(f"{path}: no such folder in the picture of README.md")
    for folder in TOP_LEVEL_FOLDERS:
        if not (ROOT / folder).is_dir():
            findings.append(f"{folder}/ is missing")
    return findings


def test_no_lumber_rooms():
    names = {"src", "include", "utils", "util", "common", "misc", "helpers", "lib"}
    return [f"{path}: a folder of this name shows that a room is missing"
            for path in tracked_files() if names & set(path.parts[:-1])]


def test_two_spdx_lines():
    findings = []
    for path in own_sources():
        if path.suffix in WITHOUT_SPDX or path.name in {"LICENSE", ".gitignore", ".clang-format", ".clang-tidy", ".editorconfig"}:
            continue
        if not is_text(path):
            continue
        head = "\n".join(read(path).splitlines()[:6])
        if "SPDX-FileCopyrightText: The rankscope authors" not in head or "SPDX-License-Identifier: " not in head:
            findings.append(f"{path} does not begin with the two SPDX lines")
    return findings


def test_every_source_is_built():
    findings = []
    globbed = " ".join(read(path) for path in tracked_files() if path.name == "CMakeLists.txt")
    for path in tracked_files():
        if path.suffix != ".cc" or f"{path.parent}/*.cc" in globbed:
            continue
        lists = [read(folder / "CMakeLists.txt") for folder in path.parents if (ROOT / folder / "CMakeLists.txt").exists()]
        if not any(re.search(rf"\b{re.escape(path.stem)}\b", text) for text in lists) and not re.search(r"GLOB|^rankscope_room\(", lists[0], re.M):
            findings.append(f"{path}: no CMakeLists.txt names it")
    return findings


def test_licences_are_ours():
    findings = []
    for path in own_sources():
        match = re.search(r"SPDX-License-Identifier: (.+?)(?: \*/| -->)?$", read(path)[:400], re.M)
        if match is None:
            continue
        wanted = "GPL-2.0 OR BSD-2-Clause" if path.parts[0] == "bpf" and path.suffix in {".c", ".h"} else "Apache-2.0"
        if match.group(1).strip() != wanted:
            findings.append(f"{path} is under '{match.group(1).strip()}', its folder's licence is {wanted}")
    return findings


def test_files_fit_in_a_head():
    findings = []
    for path in own_sources():
        if path.suffix not in {".h", ".cc", ".c", ".py"}:
            continue
        lines = read(path).count("\n")
        if lines > HARD_LINES:
            findings.append(f"{path} has {lines} lines; split it (at most {HARD_LINES}, better {SOFT_LINES})")
        elif lines > SOFT_LINES:
            print(f"note: {path} has {lines} lines; better at most {SOFT_LINES}")
    return findings


def test_nothing_is_left_to_do():
    mark = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    findings = []
    for path in own_sources():
        if path == PATH or path.suffix in {".md"} or not is_text(path):
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            if mark.search(line):
                findings.append(f"{path}:{number}: {line.strip()}")
    return findings


def test_headers_say_what_they_are_for():
    """A header begins, after the SPDX lines, with a paragraph and #pragma once."""
    findings = []
    for path in own_sources():
        if path.suffix != ".h" or path.parts[0] == "bpf":
            continue
        lines = read(path).splitlines()
        if len(lines) < 4 or not lines[3].startswith("//"):
            findings.append(f"{path} does not say what it is for, and who may call it")
        if "#pragma once" not in lines:
            findings.append(f"{path} has no #pragma once")
    return findings


def test_commands_are_executable():
    findings = []
    for path in own_sources():
        if is_text(path) and read(path).startswith("#!") and path.suffix != ".py":
            if not (ROOT / path).stat().st_mode & 0o100:
                findings.append(f"{path} has a #! line and is not executable")
    return findings


if __name__ == "__main__":
    main(globals())
