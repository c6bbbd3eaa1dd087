# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Each command that a verdict prints runs on a node as it is printed, and each step of a remedy is there.

A command is the whole of a question's next test. In a step of a remedy, a warning or a hazard it is the end of the sentence,
behind a colon, so that it can be copied. The templates are rendered with plausible values, each of their alternatives in turn.
"""
import ast
import itertools
import json
import os
import re
import shutil
import subprocess

from contract import main, rankscope, read

# The program -> where it comes from; those that are run here if they are installed, with a time limit, only read.
READS = {
    "awk": "mawk", "cat": "coreutils", "df": "coreutils", "dmesg": "util-linux", "export": "bash", "findmnt": "util-linux",
    "free": "procps", "fuser": "psmisc", "getent": "libc-bin", "grep": "grep", "hostname": "hostname", "ip": "iproute2",
    "journalctl": "systemd", "last": "util-linux", "ls": "coreutils", "head": "coreutils", "nc": "netcat-openbsd",
    "pgrep": "procps", "ping": "iputils-ping", "ps": "procps", "sacct": "slurm-client", "scontrol": "slurm-client",
    "sed": "sed", "sinfo": "slurm-client", "ss": "iproute2", "tail": "coreutils", "timeout": "coreutils", "ulimit": "bash",
    "uptime": "procps", "vmstat": "procps",
}
# Those that are not run: why not. Their syntax is still read by bash.
NOT_RUN = {
    "dcgmi": "NVIDIA's DCGM; it loads the GPU", "fi_info": "libfabric-bin; needs an adapter",
    "ibstat": "infiniband-diags; needs an adapter", "perfquery": "infiniband-diags; needs an adapter",
    "ipmitool": "needs a management controller", "kill": "changes a process", "nvidia-smi": "comes with NVIDIA's driver",
    "py-spy": "from PyPI; stops a process while it reads it", "python3": "needs PyTorch: its text is parsed instead",
    "systemctl": "needs systemd as process 1, and can change a service",
}
KNOWN = READS | NOT_RUN
KEYWORDS = {"for", "do", "done", "in"}

# What a program says of a command line that it does not understand.
REFUSED = re.compile(r"invalid option|unrecognized option|unknown option|illegal option|^usage:|syntax error|invalid field|"
                     r"invalid argument|command not found|extra argument|unexpected argument|failed to parse|bad expression", re.I | re.M)

VALUES = {
    "pid": "1", "sender_pid": "1", "sender_uid": "1000", "gpu": "0", "host": "localhost", "port": "29500", "job_id": "41",
    "parent": "40", "who": "rank 3", "where": "the node of rank 3", "bus_id": "0000:3b:00.0", "the_node": "gx12",
    "holder": "pid 17 (python)", "message": "no such thing", "file": "train.py:12", "sender": "cleanup.sh", "signal": "SIGTERM",
}
LITERAL = r'"(?:[^"\\]|\\.)*"'
ROW = re.compile(r"^(REMEDY|QUESTION|WARNING|HAZARD)\(", re.M)
TABLES = ("questions.inc", "remedies_ended.inc", "remedies_slow.inc", "warnings.inc", "hazards.inc")


def arguments(text, start):
    """The arguments of a macro's call whose '(' ends at `start`: strings joined, everything else as it is."""
    found, current, depth, at = [], [], 0, start
    while True:
        if text[at] == '"':
            literal = re.compile(LITERAL).match(text, at)
            current.append(ast.literal_eval(literal[0]))
            at = literal.end()
            continue
        if text[at] in "({":
            depth += 1
        elif text[at] in ")}":
            depth -= 1
            if depth < 0:
                return found + ["".join(current)]
        if text[at] == "," and depth == 0:
            found.append("".join(current))
            current = []
        elif not text[at].isspace():
            current.append(text[at])
        at += 1


def rows():
    """(table, kind of row, its arguments)"""
    for table in TABLES:
        text = read(f"detectors/sentences/{table}")
        text = "".join(line for line in text.splitlines(True) if not line.lstrip().startswith("//"))
        for name, body in re.findall(r"^#define (\w+) ((?:.*\\\n)*.*)$", text, re.M):
            value = body.replace("\\\n", " ")
            text = re.sub(rf"(?<!#define )\b{name}\b", lambda _, value=value: value, text)
        text = re.sub(r"^#.*(?:\\\n.*)*$", "", text, flags=re.M)
        for row in ROW.finditer(text):
            yield table, row[1], arguments(text, row.end())


def split(text):
    """A list of sentences, '|' between them, or of alternatives."""
    parts, depth = [""], 0
    for c in text:
        depth += {"[": 1, "]": -1}.get(c, 0)
        if c == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def group(text, at):
    """The text inside the bracket that opens at `at`, and where it ends."""
    depth = 0
    for end in range(at, len(text)):
        depth += {"[": 1, "]": -1}.get(text[end], 0)
        if depth == 0:
            return text[at + 1:end], end + 1
    raise AssertionError(f"a bracket is not closed: {text}")


def renderings(template):
    """Each text that a template can become."""
    choices, at, plain = [], 0, ""
    while at < len(template):
        if template[at] == "[":
            inside, at = group(template, at)
            options = {""}
            for alternative in split(inside):
                if alternative.startswith("?"):
                    alternative = alternative.partition(":")[2]
                options.update(renderings(alternative))
            choices += [[plain], sorted(options)]
            plain = ""
            continue
        plain += template[at]
        at += 1
    choices.append([plain])
    return {"".join(parts) for parts in itertools.islice(itertools.product(*choices), 500)}


def filled(text):
    def value(found):
        if "/" in (found[2] or ""):
            return found[2].rpartition("/")[2]
        return VALUES.get(found[1], "7")
    return re.sub(r"\{(\w+)(?::([^}]*))?\}", value, text)


def command_of(sentence):
    """The command at the end of a sentence, or nothing."""
    for found in re.finditer(r": ", sentence):
        tail = sentence[found.end():]
        words = [word for word in tail.split() if "=" not in word]
        if words and words[0] in KNOWN and not tail.endswith(" by"):
            return tail
    return ""


def sentences():
    """(where, sentence) of every step that is printed and is no next test."""
    for table, kind, cells in rows():
        where = f"{table}, {' '.join(cells[:2])[:40]}"
        if kind == "REMEDY":
            steps = [step for cell in cells[4:7] for step in split(cell)]
        elif kind in {"WARNING", "HAZARD"}:
            steps = [cells[5]]
        else:
            continue
        for step in steps:
            for text in renderings(step):
                yield where, filled(text)


def commands():
    found = {}
    for where, sentence in sentences():
        if command := command_of(sentence):
            found.setdefault(command, where)
    for table, kind, cells in rows():
        if kind == "QUESTION":
            for text in renderings(cells[3]):
                if text.strip():
                    found.setdefault(filled(text), f"{table}, {cells[0]}")
    return found


def programs(command):
    """The programs that a command line starts."""
    quoted = re.sub(r"'[^']*'", "''", command)
    for part in re.split(r"\$\(|[|;)]|\bdo\b|\bdone\b", quoted):
        words = [word for word in part.split() if not re.match(r"\w+=", word)]
        if words and words[0] == "timeout":
            yield words[0]
            words = words[2:]
        if words and words[0] not in KEYWORDS and not words[0].startswith("-"):
            yield words[0]


def test_every_command_parses():
    findings = []
    known = commands()
    if len(known) < 40:
        findings.append(f"only {len(known)} commands were read: have the tables changed?")
    for command, where in sorted(known.items()):
        shell = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
        if shell.returncode != 0:
            findings.append(f"{where}: bash refuses {command!r}: {shell.stderr.strip()}")
        if re.search(r"<[a-z ]+>|\bPID\b", command):
            findings.append(f"{where}: {command!r} has a blank that its reader has to fill in")
        findings += [f"{where}: {command!r} starts {program}, which is in no table of this test"
                     for program in programs(command) if program not in KNOWN]
        for words in re.findall(r"python3 -c '([^']*)'", command):
            try:
                ast.parse(words)
            except SyntaxError as error:
                findings.append(f"{where}: {command!r}: {error}")
    return findings


def test_no_bracket_of_a_command_is_lost():
    """A bracket of a template is not printed: one that leaves nothing out and chooses nothing was meant for the reader."""
    findings = []
    for table, kind, cells in rows():
        if kind == "HAZARD":
            cells = cells[5:]
        for cell in cells:
            findings += [f"{table}, {' '.join(cells[:2])[:40]}: {found[0]!r} is printed without its brackets"
                         for found in re.finditer(r"\[(?!\?)[^\[\]{}|]*\]", cell)]
    return findings


def test_a_command_is_the_end_of_its_sentence():
    """What else names a program with its options cannot be copied as a whole."""
    findings = []
    options = re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, KNOWN))}) (?:-\w|--\w)")
    for where, sentence in sentences():
        command = command_of(sentence)
        rest = sentence[:len(sentence) - len(command)] if command else sentence
        if found := options.search(rest):
            findings.append(f"{where}: {found[1]} is named with options within a sentence: {sentence!r}")
        if command and re.search(r"[.,]$| on (?:the|every|that) | and ", re.sub(r"'[^']*'", "", command)):
            findings.append(f"{where}: words follow a command: {sentence!r}")
    return findings


def test_a_command_that_only_reads_runs():
    findings = []
    environment = dict(os.environ, LC_ALL="C", SYSTEMD_PAGER="cat", PAGER="cat")
    for command, where in sorted(commands().items()):
        if not all(program in READS and (READS[program] == "bash" or shutil.which(program)) for program in programs(command)):
            continue
        try:
            run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=20, env=environment,
                                 stdin=subprocess.DEVNULL, errors="replace", check=False)
        except subprocess.TimeoutExpired:
            continue  # it was understood, and waits for what is not here: a server, a controller
        if refused := REFUSED.search(run.stderr):
            findings.append(f"{where}: {command!r}: {run.stderr.strip()[:200]} ({refused[0]})")
    return findings


def test_every_value_of_a_command_is_one_word():
    """A value that a job controls must not become an option or a second command."""
    findings = []
    hostile = {"message", "file", "command", "line", "name", "sender", "trigger", "phrase"}
    for table, kind, cells in rows():
        steps = cells[3:4] if kind == "QUESTION" else [step for cell in cells[4:7] for step in split(cell)]
        for step in steps:
            for text in renderings(step):
                command = text if kind == "QUESTION" else command_of(text)
                findings += [f"{table}, {' '.join(cells[:2])}: {command!r} quotes {name}, which a job controls"
                             for name in re.findall(r"\{(\w+)", command) if name in hostile]
    return findings


def test_no_command_quotes_a_host_that_is_no_word():
    """A job's text names a host; a reader copies the command."""
    findings = []
    for host, quoted in (("trainer-head", True), ("$(reboot)", False), ("x;reboot", False), ("-oreboot", False), ("`reboot`", False)):
        line = ("[E302 08:15:00.120 socket.cpp:1023] [c10d] The client socket has timed out after 120000ms while trying to "
                f"connect to [{host}]:23456.\n")
        result = rankscope("classify", "-", stdin=line)
        verdict = json.loads(result.stdout)
        printed = verdict["next_tests"] + [verdict["resolution"]]
        if (host in json.dumps(printed)) != quoted:
            findings.append(f"{host!r} is {'not ' if quoted else ''}quoted: {json.dumps(printed)[:300]}")
    return findings


# Families in which there is nothing for a person to do, as the head of remedies_ended.inc lists them.
def without_steps():
    listed = set()
    for line in re.findall(r"^//   (\S+) (\S.*)$", read("detectors/sentences/remedies_ended.inc"), re.M):
        subs = re.split(r"\s{2,}|(?<=[^,]) (?=[a-z' ]+$)", line[1])[0]
        listed |= {(line[0], sub.strip()) for sub in subs.split(",")}
    return listed


def test_every_remedy_has_steps():
    findings, used = [], set()
    allowed = without_steps()
    for table, kind, cells in rows():
        if kind != "REMEDY":
            continue
        for name, cell in zip(("immediate", "structural", "verify"), cells[4:7]):
            if cell:
                continue
            if (cells[0], cells[1]) not in allowed:
                findings.append(f"{table}: {cells[0]} {cells[1]} has no {name} step")
            used.add((cells[0], cells[1]))
    return findings + [f"remedies_ended.inc lists {code} {sub}, which has all steps" for code, sub in sorted(allowed - used)]


def test_a_step_is_a_whole_sentence():
    """A '|' that was meant for the shell splits a step in two: the second begins like no sentence."""
    findings = []
    for table, kind, cells in rows():
        if kind != "REMEDY":
            continue
        for step in (step for cell in cells[4:7] for step in split(cell)):
            for text in renderings(step):
                sentence = filled(text)
                if sentence and not step.startswith("[") and not sentence[0].isupper():
                    findings.append(f"{table}: {cells[0]} {cells[1]}: {sentence!r} is no sentence")
    return findings


if __name__ == "__main__":
    main(globals())
