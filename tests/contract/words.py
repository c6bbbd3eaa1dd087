# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What users read has no word of the column "not" in the table of CONTRIBUTING.md."""
import re

from command_line import COMMANDS
from contract import main, output_of, read


def refused():
    """The words of the column, but for those that the table refuses in names only and for a tier's letter."""
    words = read("CONTRIBUTING.md").partition("\n## Words\n")[2].partition("\n## ")[0]
    found = []
    for cell in re.findall(r"^\| (.+?) \| .+ \|$", words, re.M):
        if cell in {"not", "---"} or "(in names)" in cell or "a tier's letter" in cell:
            continue
        found += [term.strip().strip('"') for term in re.sub(r"\(.*?\)", "", cell).split(",")]
    return found


def findings_in(texts):
    """`texts`: where a text is -> the text."""
    words = refused()
    if len(words) < 15:
        return ["the table of words in CONTRIBUTING.md has few rows: has its form changed?"]
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})s?\b", re.I)
    return [f'{where}: "{match[0]}" in "{text.strip()}"' for where, text in texts for match in pattern.finditer(text)]


def rows_of(table):
    """The cells of prose of a table that `rankscope list` prints: what stands between backticks is a name."""
    for line in output_of("list", table).splitlines()[2:]:
        yield f"`list {table}`", re.sub(r"`[^`]*`", "", line)


def test_help_of_metrics():
    return findings_in(rows_of("metrics"))


def test_sources_and_probes():
    return findings_in([*rows_of("sources"), *rows_of("probes")])


def test_help_of_commands_and_configuration():
    calls = [["--help"], ["serve", "--print-config"], *([command, "--help"] for command in COMMANDS)]
    return findings_in((f"`rankscope {' '.join(call)}`", line) for call in calls for line in output_of(*call).splitlines())


if __name__ == "__main__":
    main(globals())
