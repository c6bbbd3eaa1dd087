# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""THIRD_PARTY.md lists what the programs are linked with, with the versions that are installed; LICENSES/ has the texts."""
import re
import subprocess

from contract import BINARY, ROOT, Skip, main, read, sources

PROGRAMS = ["rankscope", "rankscope-serve"]
COMPILER = {"libc", "libstdc++", "libgcc"}  # the compiler adds them; no link command names them
LICENCES = {"Apache-2.0", "GPL-2.0-only", "BSD-2-Clause"}


def rows():
    """library -> (package, version, {program: how})"""
    found = {}
    for line in read("THIRD_PARTY.md").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 7 and cells[0].startswith("`"):
            found[cells[0].strip("`")] = (cells[1].strip("`"), cells[2], dict(zip(PROGRAMS, cells[4:6])))
    return found


def linked(program):
    """library -> {static, shared}, from the program's link command."""
    ninja = BINARY.parent / "build.ninja"
    if not ninja.exists():
        raise Skip(f"{ninja} does not exist: the program was not built by Ninja")
    block = re.search(rf"^build {program}: .*?^$", ninja.read_text(encoding="utf-8"), re.M | re.S)
    if block is None:
        raise AssertionError(f"{ninja} does not build {program}")
    libraries = re.search(r"^  LINK_LIBRARIES = (.*)$", block[0], re.M)[1]
    found = {}
    for name, kind in re.findall(r"/(lib[\w+-]+)\.(a|so)(?=[.\s]|$)", libraries):
        if not name.startswith("librankscope_"):
            found.setdefault(name, set()).add("static" if kind == "a" else "shared")
    return found


def test_the_table_is_what_is_linked():
    findings = []
    for program in PROGRAMS:
        listed = {library: set(how[program].split(" and ")) for library, (_, _, how) in rows().items()
                  if how[program] not in ("", "header", "loaded") and library not in COMPILER}
        found = linked(program)
        findings += [f"{program} is linked with {library} ({', '.join(sorted(kinds))}); THIRD_PARTY.md says {listed.get(library, 'nothing')}"
                     for library, kinds in sorted(found.items()) if listed.get(library) != kinds]
        findings += [f"THIRD_PARTY.md lists {library}, with which {program} is not linked" for library in sorted(listed.keys() - found.keys())]
    return findings


def test_libraries_that_are_loaded_are_those_that_are_opened():
    opened = {library for path in sources("detectors", "exporter") if "dlopen(" in read(path)
              for library in re.findall(r'"(lib[\w+-]+)\.so[.\d]*"', read(path))}
    driver = {"libnvidia-ml"}  # of whoever has a GPU; no package of the distribution
    listed = {library for library, (_, _, how) in rows().items() if "loaded" in how.values()}
    return [f"{library} is opened and not in THIRD_PARTY.md as loaded" for library in sorted(opened - driver - listed)] + \
        [f"{library} is in THIRD_PARTY.md as loaded and not opened" for library in sorted(listed - opened)]


def test_header_libraries_are_those_that_are_included():
    included = {header for path in sources("detectors", "exporter")
                for header in re.findall(r"^#include <(\w+/)[^>]*>", read(path), re.M)}
    listed = {library for library in rows() if library.endswith("/")}
    ours = {"sys/", "linux/", "netinet/", "arpa/", "net/", "asm/", "bpf/"}  # of the C library and the kernel; libbpf is linked
    compiled = {"google/", "re2/", "spdlog/", "fmt/", "yaml-cpp/", "prometheus/", "curl/", "openssl/"}  # of libraries that are linked
    return [f"{library} is included and not in THIRD_PARTY.md" for library in sorted(included - listed - ours - compiled)] + \
        [f"{library} is in THIRD_PARTY.md and not included" for library in sorted(listed - included)]


def test_versions_are_those_installed():
    findings = []
    for library, (package, version, _) in rows().items():
        found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False).stdout
        upstream = re.sub(r"^\d+:", "", found)
        if not re.match(re.escape(version) + r"(?!\d)", upstream):
            findings.append(f"{library}: THIRD_PARTY.md says {version}, {package} is {found or 'not installed'}")
    return findings


def test_licence_texts_are_there():
    findings = [f"LICENSES/{name}.txt is missing" for name in sorted(LICENCES) if not (ROOT / "LICENSES" / f"{name}.txt").is_file()]
    if not findings and read("LICENSES/Apache-2.0.txt") != read("LICENSE"):
        findings.append("LICENSES/Apache-2.0.txt is not LICENSE")
    return findings


if __name__ == "__main__":
    main(globals())
