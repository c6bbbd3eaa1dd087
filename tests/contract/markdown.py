# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What the Markdown files refer to exists, and the verdict in README.md is what its command prints."""
import re

from contract import ROOT, TOP_LEVEL_FOLDERS, main, output_of, read, tracked_files

LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
# A path in backticks: of a folder of the tree, and of nothing that stands for many (`*`, `NAME`, `{a,b}`).
NAMED = re.compile(rf"`((?:{'|'.join(TOP_LEVEL_FOLDERS)})/[\w./-]+)`")
PLACEHOLDER = re.compile(r"(^|/)(x|[A-Z]{2,})(\.|/|$)")
EXCERPT = re.compile(r"`build/rankscope (replay [^`]*)` prints.*?<!-- verdict -->\n```\n(.*?)```", re.S)


def documents():
    return [path for path in tracked_files() if path.suffix == ".md"]


def test_links_exist():
    return [f"{path}: the link to {target} leads nowhere" for path in documents() for target in LINK.findall(read(path))
            if "://" not in target and not (ROOT / path.parent / target).exists()]


def test_named_paths_exist():
    findings = []
    for path in documents():
        for name in NAMED.findall(read(path)):
            if PLACEHOLDER.search(name) or (ROOT / name).exists() or name.startswith("bench/") and (ROOT / f"{name}.cc").exists():
                continue
            if not any((ROOT / name).parent.glob((ROOT / name).name + ".*")):
                findings.append(f"{path} names {name}, which does not exist")
    return findings


def test_the_verdict_of_the_readme_is_printed():
    found = EXCERPT.search(read("README.md"))
    if found is None:
        return ["README.md has no verdict below '<!-- verdict -->', or no command that prints it"]
    arguments = [str(ROOT / word) if "/" in word else word for word in found[1].split()]
    rest = output_of(*arguments).splitlines()
    for line in found[2].splitlines():
        if line.strip() in ("", "..."):
            continue
        if line not in rest:
            return [f"README.md: 'rankscope {found[1]}' does not print, or not at this place: {line}"]
        rest = rest[rest.index(line) + 1:]
    return []


if __name__ == "__main__":
    main(globals())
