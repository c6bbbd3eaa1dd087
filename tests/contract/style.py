# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""How C++ is written: as clang-format writes it, in functions and files that a reader takes in at once, without what clang-tidy
finds in the lines that changed. The target `lint` gives the whole tree to clang-tidy."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from contract import BINARY, ROOT, Skip, main, read, tracked_files

FORMAT, TIDY = "clang-format-14", "clang-tidy-14"
DATABASE = "compile_commands.json"
MAX_FUNCTION_LINES, MAX_FILE_LINES = 80, 500
MAX_TIDY_FILES, MAX_TIDY_SECONDS = 20, 50
GENERATED = {"bpf/vmlinux.h"}

# Longer than MAX_FILE_LINES for now -> how long it may be, and why it is. The list and its numbers only shrink.
LONG_FILES = {
    "bpf/stdio.bpf.c": (546, "one program, whose parts share their maps"),
    "tests/unit/http/router_test.cc": (560, "cases of one table of routes"),
    "tests/unit/logs/dialects_test.cc": (507, "one table of records"),
}
# Longer than MAX_FUNCTION_LINES -> how long it may be. Shrinks, too.
LONG_FUNCTIONS = {
    "detectors/logs/progress/pairs.cc": 91,
    "detectors/logs/text/prefix.cc": 86,
    "detectors/reports/pickle.cc": 97,
    "detectors/verdict/verdict_builder.cc": 95,
    "exporter/config/config_keys.cc": 90,
    # Tables of cases.
    "tests/support/observations.h": 97,
    "tests/unit/logs/dialects_test.cc": 248,
    "tests/unit/logs/formats_test.cc": 122,
    "tests/unit/logs/markers_test.cc": 102,
    "tests/unit/metrics/published_states.h": 91,
    "tests/unit/verdict_json/example.h": 133,
}


def sources():
    return [path for path in tracked_files() if path.suffix in {".h", ".cc", ".c"} and path.as_posix() not in GENERATED]


def test_everything_is_formatted():
    if shutil.which(FORMAT) is None:
        raise Skip(f"no {FORMAT}")
    paths = sources()
    batches = [paths[i::8] for i in range(8)]

    def run(batch):
        return subprocess.run([FORMAT, "--dry-run", "-Werror", *batch], cwd=ROOT, capture_output=True, text=True, check=False).stderr
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = "".join(pool.map(run, batches))
    return [f"{path}: {FORMAT} -i {path}" for path in sorted(set(re.findall(r"^(\S+?):\d+:\d+: error:", said, re.M)))]


def test_files_are_short():
    findings = []
    for path in sources():
        name, lines = path.as_posix(), read(path).count("\n")
        allowed = LONG_FILES.get(name, (MAX_FILE_LINES, ""))[0]
        if lines > allowed:
            findings.append(f"{name} has {lines} lines, at most {allowed}")
    for name, (_, reason) in LONG_FILES.items():
        if not (ROOT / name).exists() or read(name).count("\n") <= MAX_FILE_LINES:
            findings.append(f"{name} is no longer long: take it from LONG_FILES ({reason})")
    return findings


def long_functions(path):
    """(line, lines, first words) of each function: in formatted code it ends with a brace at the column at which it began."""
    lines, found, begin = read(path).splitlines(), [], None
    for number, line in enumerate(lines):
        opens = re.match(r"^( ?| {2})(?!namespace|struct|class|enum|extern|union|constexpr|const |static const|inline const)(\S.*)?[)a-z] \{$", line)
        if begin is None and opens and not line.startswith(("   ", "}")):
            begin = (number, len(line) - len(line.lstrip()))
        elif begin is not None and line.rstrip() == " " * begin[1] + "}":
            if number - begin[0] > MAX_FUNCTION_LINES:
                found.append((begin[0] + 1, number - begin[0] + 1, lines[begin[0]].strip()))
            begin = None
        elif begin is not None and line.startswith("}"):
            begin = None
    return found


def test_functions_are_short():
    findings = []
    for path in sources():
        for line, lines, words in long_functions(path):
            if lines > LONG_FUNCTIONS.get(path.as_posix(), MAX_FUNCTION_LINES):
                findings.append(f"{path}:{line}: {lines} lines, at most {MAX_FUNCTION_LINES}: {words}")
    return findings


def git(*arguments):
    result = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Skip(f"git {arguments[0]}: {result.stderr.strip()[:100]}")
    return result.stdout


def changed_lines():
    """Of each .cc that is not only moved: the ranges of lines that differ from the commit before the last."""
    git("rev-parse", "--verify", "HEAD~1")
    ranges, path = {}, None
    for line in git("diff", "-M", "-U0", "--diff-filter=AM", "HEAD~1", "--", "*.cc").splitlines():
        if line.startswith("+++ b/"):
            path = line[6:]
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            if count:
                ranges.setdefault(path, []).append([first, first + count - 1])
    return ranges


def clang_database():
    """The folder of a compile_commands.json without what only g++ knows, for clang-tidy reads no file whose command it
    does not, without the extensions that g++ and clang call by other names, and without headers that g++ has read already:
    a file must include what it uses."""
    folder = BINARY.parent / "tidy"
    folder.mkdir(exist_ok=True)
    commands = json.loads((BINARY.parent / DATABASE).read_text())
    for entry in commands:
        # A std::array that counts its own rows folds over them, and clang stops at 256.
        entry["command"] = "%s -fbracket-depth=1024" % re.sub(r" (-Wpedantic|-Winvalid-pch|-Wno-(restrict|stringop-overflow)|-include \S+\.hxx|-m(memcpy|memset)-strategy=\S+)", "", entry["command"])
    (folder / DATABASE).write_text(json.dumps(commands))
    return folder


def tidy(database, path, ranges, until):
    left = until - time.monotonic()
    if left <= 1:
        return path, None
    lines = json.dumps([{"name": path, "lines": ranges}])
    try:
        result = subprocess.run([TIDY, "-p", database, "--quiet", f"--line-filter={lines}", path], cwd=ROOT, timeout=left,
                                capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        return path, None
    return path, [line for line in (result.stdout + result.stderr).splitlines() if re.search(r"(^|: )(error|warning): ", line)]


def test_clang_tidy_on_what_changed():
    if shutil.which(TIDY) is None:
        raise Skip(f"no {TIDY}")
    if not (BINARY.parent / DATABASE).exists():
        raise Skip(f"no {DATABASE} beside the program")
    database = clang_database()
    compiled = {entry["file"] for entry in json.loads((database / DATABASE).read_text())}
    changed = {path: ranges for path, ranges in changed_lines().items() if str(ROOT / path) in compiled}
    chosen = sorted(changed)[:MAX_TIDY_FILES]
    until = time.monotonic() + MAX_TIDY_SECONDS
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda path: tidy(database, path, changed[path], until), chosen))
    missed = len(changed) - len(chosen) + sum(findings is None for _, findings in results)
    if missed:
        print(f"note: {missed} of {len(changed)} changed files were left out: more than {MAX_TIDY_FILES}, or {MAX_TIDY_SECONDS} s")
    return [finding for _, findings in results for finding in findings or []]


def lint():
    """Everything that is compiled, clang-tidy's whole word on it. Takes half an hour on two processors."""
    database = clang_database()
    paths = sorted({entry["file"] for entry in json.loads((database / DATABASE).read_text())
                    if entry["file"].endswith(".cc") and Path(entry["file"]).is_relative_to(ROOT)
                    and not Path(entry["file"]).is_relative_to(BINARY.parent)})

    def run(path):
        result = subprocess.run([TIDY, "-p", database, "--quiet", path], cwd=ROOT, capture_output=True, text=True, check=False)
        print(result.stdout, *re.findall(r"^error: .*\n", result.stderr, re.M), sep="", end="", flush=True)
        return result.returncode
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return 1 if any(list(pool.map(run, paths))) else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--lint"]:
        sys.exit(lint())
    main(globals())
