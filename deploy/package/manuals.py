# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Manual pages and shell completions, from what the program says of itself.

    manuals.py --binary build/rankscope FOLDER

`rankscope COMMAND --help` is the table of options, `rankscope serve --print-config` the table of keys. Nothing is written down twice.
"""
import argparse
import dataclasses
import gzip
import re
import subprocess
from pathlib import Path

from completions import bash, fish, zsh

SECTIONS = {"serve": 8, "check": 8}  # of whoever runs the node; all others are 1


@dataclasses.dataclass
class Option:
    names: list  # --config.file, --config; a positional's name stands alone
    value: str   # TEXT, INT, {a,b}; empty: a flag
    text: str

    @property
    def choices(self):
        found = re.search(r"\{([\w,.-]+)\}", self.value)
        return found[1].split(",") if found else []


@dataclasses.dataclass
class Command:
    name: str
    what: str
    usage: str = ""
    description: list = dataclasses.field(default_factory=list)  # paragraphs
    positionals: list = dataclasses.field(default_factory=list)
    options: list = dataclasses.field(default_factory=list)


def output_of(binary, *arguments):
    return subprocess.run([binary, *arguments], capture_output=True, text=True, check=True).stdout


def commands_of(binary):
    overview = re.findall(r"^  (\w+) +(\S.*)$", output_of(binary, "--help"), re.M)
    return [read_help(name, what, output_of(binary, name, "--help")) for name, what in overview]


def entries(lines):
    """(names and value, text): an entry begins two columns in, what is further right belongs to it."""
    found = []
    for line in lines:
        head = re.match(r" {2}(-\S.*?|[A-Z]\S*.*?)(?:\s{2,}|(?<=[A-Z=N]) (?=[a-z])|\s*$)(\S.*)?$", line)
        if head and not line.startswith("   "):
            found.append([head[1], head[2] or ""])
        elif found:
            found[-1][1] = f"{found[-1][1]} {line.strip()}".strip()
    return found


def option_of(head, text):
    # The name of an option in CLI11's columns may touch its text: `--config.file,--config TEXT Configuration file`.
    head, _, rest = head.partition(" ")
    touching = re.match(r"((?:TEXT|INT|FLOAT)\S*(?: \.\.\.)?(?: in \[[^]]*\])?(?: REQUIRED)?)(?: (.*))?$", rest)
    value, more = (touching[1], touching[2] or "") if touching else (rest, "")
    names = head.split(",")
    return Option(names, value, f"{more} {text}".strip())


def read_help(name, what, text):
    command = Command(name, what)
    section = None
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        usage = next((line for line in lines if line.lower().startswith("usage: ")), "")
        if usage:
            command.usage = usage.partition(": ")[2]
            lines.remove(usage)
        if lines and lines[0] in ("Positionals:", "Options:"):
            section = lines.pop(0)
        elif lines and lines[0].startswith("  -"):
            section = "Options:"
        elif lines:
            command.description.append("\n".join(lines))
            continue
        for head, what_it_does in entries(lines):
            into = command.positionals if section == "Positionals:" else command.options
            into.append(option_of(head, what_it_does))
    return command


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in text.split("\n"))


def bold(text):
    return f"\\fB{roff(text)}\\fR"


def described(options):
    out = []
    for option in options:
        names = ", ".join(bold(name) for name in option.names)
        value = option.value.replace(" REQUIRED", "").removeprefix("TEXT:")
        out += [".TP", f"{names} \\fI{roff(value)}\\fR" if value else names, roff(option.text or "Print this help and exit.")]
    return out


def page(name, section, title, version):
    return [f'.TH {name.upper()} {section} "" "rankscope {version}" "rankscope"', ".ad l", ".SH NAME", f"{roff(name)} \\- {roff(title)}"]


def command_page(command, version, others):
    section = SECTIONS.get(command.name, 1)
    out = page(f"rankscope-{command.name}", section, command.what, version)
    out += [".SH SYNOPSIS", bold(command.usage), ".SH DESCRIPTION"]
    for number, paragraph in enumerate(command.description):
        out += [".PP"] * (number > 0) + [roff(paragraph)]
    if command.positionals:
        out += [".SH ARGUMENTS", *described(command.positionals)]
    out += [".SH OPTIONS", *described(command.options)]
    if section == 8:
        out += [".SH FILES", ".TP", bold("/etc/rankscope/config.yaml"), "Configuration of the service; see rankscope.yaml(5).",
                ".TP", bold("/etc/default/rankscope"), "Further options of the service."]
    out += [".SH SEE ALSO", ", ".join(f"{bold(f'rankscope-{other.name}')}({SECTIONS.get(other.name, 1)})"
                                      for other in others if other.name != command.name) + f", {bold('rankscope.yaml')}(5)"]
    return section, "\n".join(out) + "\n"


def overview_page(commands, version):
    out = page("rankscope", 1, "explains why training jobs fail, hang or are slow", version)
    out += [".SH SYNOPSIS", f"{bold('rankscope')} \\fICOMMAND\\fR [\\fIARGS\\fR...]", ".SH COMMANDS"]
    for command in commands:
        out += [".TP", f"{bold(f'rankscope-{command.name}')}({SECTIONS.get(command.name, 1)})", roff(command.what)]
    out += [".SH OPTIONS", ".TP", bold("--help"), "Print the list of commands.", ".TP", bold("--version"), "Print the version."]
    return "\n".join(out) + "\n"


def configuration_page(config, version):
    """Each key with the comment above it and the value that it has by default."""
    out = page("rankscope.yaml", 5, "configuration of rankscope serve", version)
    out += [".SH DESCRIPTION", "YAML. Every key may be left out; the default value stands beside its name. A key that does not exist,",
            "or a value that is not understood, is an error that names its line. Options of rankscope\\-serve(8) override the file.",
            ".SH KEYS"]
    folders, comment = [], []
    for line in config.splitlines():
        found = re.match(r"( *)([\w.]+):(?: (.+))?$", line)
        if line.lstrip().startswith("#"):
            comment.append(line.strip().lstrip("# "))
        elif found:
            folders = folders[:len(found[1]) // 2] + [found[2]]
            if found[3] is not None:
                out += [".TP", f"{bold('.'.join(folders))}: {roff(found[3])}", *map(roff, comment or ["See rankscope list sources."])]
            comment = []
    out += [".SH FILES", bold("/etc/rankscope/config.yaml"), ".SH SEE ALSO", f"{bold('rankscope-serve')}(8), {bold('rankscope-check')}(8)"]
    return "\n".join(out) + "\n"


def write_page(folder, name, section, text):
    path = folder / "man" / f"man{section}" / f"{name}.{section}.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    version = output_of(arguments.binary, "--version").split()[-1]
    commands = commands_of(arguments.binary)
    write_page(arguments.folder, "rankscope", 1, overview_page(commands, version))
    for command in commands:
        section, text = command_page(command, version, commands)
        write_page(arguments.folder, f"rankscope-{command.name}", section, text)
    write_page(arguments.folder, "rankscope.yaml", 5, configuration_page(output_of(arguments.binary, "serve", "--print-config"), version))
    for name, text in (("rankscope.bash", bash(commands)), ("_rankscope", zsh(commands)), ("rankscope.fish", fish(commands))):
        (arguments.folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
