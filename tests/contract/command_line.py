# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What scripts rely on: exit statuses, where output goes, and the shape of machine-readable output."""
import json
import os
import re
import tempfile

from contract import main, rankscope

COMMANDS = ["run", "serve", "classify", "progress", "replay", "verdict", "check", "list", "explain", "watch", "deliver"]
TRACEBACK = ('Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    main()\n'
             "ModuleNotFoundError: No module named 'apex'\n")


def expect(findings, what, condition, detail=""):
    if not condition:
        findings.append(f"{what}{': ' + detail if detail else ''}")


def test_no_command_is_a_usage_error():
    findings = []
    for arguments in ([], ["frobnicate"]):
        result = rankscope(*arguments)
        expect(findings, f"{arguments}: exit 2", result.returncode == 2, f"was {result.returncode}")
        expect(findings, f"{arguments}: speaks on stderr", result.stderr and not result.stdout)
    return findings


def test_help_of_every_command():
    findings = []
    overview = rankscope("--help")
    expect(findings, "--help: exit 0", overview.returncode == 0)
    for command in COMMANDS:
        expect(findings, f"--help names {command}", re.search(rf"^\s+{command}\s", overview.stdout, re.M))
        result = rankscope(command, "--help")
        expect(findings, f"{command} --help: exit 0", result.returncode == 0, f"was {result.returncode}")
        expect(findings, f"{command} --help: on stdout", len(result.stdout) > 20)
    return findings


def test_version():
    result = rankscope("--version")
    return [] if re.fullmatch(r"rankscope, version \d+\.\d+\.\d+\n", result.stdout) else [repr(result.stdout)]


def test_unknown_options_are_usage_errors():
    findings = []
    for command in COMMANDS:
        if command == "run":  # its refusal to execute has a status of its own
            continue
        result = rankscope(command, "--no-such-option")
        expect(findings, f"{command} --no-such-option: exit 2", result.returncode == 2, f"was {result.returncode}")
    return findings


def test_run_passes_the_status_on():
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        for command, status in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137),
                                (["/no/such/program"], 127), (["/etc/passwd"], 126)):
            result = rankscope("run", "--dir", f"{folder}/{status}", "--socket", "", "--verdict", "none", "--", *command)
            expect(findings, f"run {command}: exit {status}", result.returncode == status, f"was {result.returncode}")
            expect(findings, f"run {command}: leaves a log", os.path.exists(f"{folder}/{status}/log"))
        refused = rankscope("run", "--no-such-option")
        expect(findings, "run --no-such-option: exit 125", refused.returncode == 125, f"was {refused.returncode}")
    return findings


def test_classify_of_what_is_no_log():
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        def path(name, content=None, size=None):
            at = os.path.join(folder, name)
            with open(at, "wb") as file:
                file.write(content or b"")
                if size:
                    file.truncate(size)
            return at

        nothing = {"empty": path("empty"), "nul": path("nul", b"\0" * 300000), "sparse": path("sparse", size=10 << 30),
                   "binary": path("binary", bytes((i * 7919 >> 3) & 255 for i in range(200000))),
                   "endless": path("endless", b"x" * (8 << 20))}
        for name, at in nothing.items():
            result = rankscope("classify", at)
            verdict = json.loads(result.stdout)
            expect(findings, f"{name}: exit 0, it was judged", result.returncode == 0, f"was {result.returncode}")
            expect(findings, f"{name}: nothing is claimed", verdict["code"] == "U0" or verdict["sub"] == "unverifiable",
                   f"{verdict['code']} {verdict['sub']}")
            notes = " ".join(verdict["data_quality"]["notes"])
            if name in ("empty", "sparse"):
                expect(findings, f"{name}: says that there is no text", "there is no text" in notes, notes)
            if name == "nul":
                expect(findings, "nul: says that it is no text", "this is no text" in notes, notes)
        for name, at in (("a missing file", os.path.join(folder, "missing")), ("a directory", folder)):
            result = rankscope("classify", at)
            expect(findings, f"{name}: exit 1", result.returncode == 1, f"was {result.returncode}")
            expect(findings, f"{name}: an error", json.loads(result.stdout)["error"])
        result = rankscope("classify", "--job", os.path.join(folder, "missing"), nothing["endless"])
        answer = json.loads(result.stdout)
        expect(findings, "--job with a missing file: exit 1", result.returncode == 1, f"was {result.returncode}")
        expect(findings, "--job with a missing file: an error and a verdict", "missing" in answer["error"] and answer["code"])
    return findings


def test_classify_status():
    findings = []
    judged = rankscope("classify", "--format", "json", "-", stdin=TRACEBACK)
    expect(findings, "classify of a log: exit 0", judged.returncode == 0, f"was {judged.returncode}")
    missing = rankscope("classify", "--format", "json", "/no/such/file.log")
    expect(findings, "classify of no file: exit 1", missing.returncode == 1, f"was {missing.returncode}")
    try:
        document = json.loads(missing.stdout)
        expect(findings, "classify of no file: an object with error", "error" in document and "file" in document)
    except ValueError as error:
        findings.append(f"classify of no file does not print JSON: {error}")
    usage = rankscope("classify")
    expect(findings, "classify without a file: exit 2", usage.returncode == 2, f"was {usage.returncode}")
    return findings


def test_classify_keys():
    line = rankscope("classify", "--exit-code", "1", "--format", "json", "-", stdin=TRACEBACK).stdout
    verdict = json.loads(line)
    wanted = ["file", "family", "code", "sub", "fault_class", "exception_type", "signal", "ranks", "domain", "confidence",
              "framework", "onset", "shows", "implies", "cannot_decide", "ruled_out"]
    findings = [f"classify has no key {key}" for key in wanted if key not in verdict]
    expect(findings, "one line per file", line.count("\n") == 1)
    expect(findings, "the family of an ImportError", verdict.get("family") == "startup_crash", str(verdict.get("family")))
    return findings


def test_progress_header():
    with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
        log.write("step 5 loss 2.5000 lr 0.05 step_time 0.053s\nstep 10 loss 1.2500 lr 0.05 step_time 0.053s\n")
        log.flush()
        result = rankscope("progress", "--format", "tsv", log.name)
    wanted = "step\tloss\tgrad_norm\tlr\n5\t2.5000\t\t0.05\n10\t1.2500\t\t0.05\n"
    return [] if result.stdout == wanted else [f"progress prints {result.stdout!r}, not {wanted!r}"]


def test_progress_facts_and_events():
    findings = []
    with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
        log.write("***** Running training *****\n"
                  "{'loss': 1.5, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'reward': 0.25, 'epoch': 0.5}\n"
                  "{'eps': 1, 'objective/kl': 0.5, 'objective/rlhf_reward': 2.5, 'lr': 1e-06, 'episode': 8}\n"
                  "Saving model checkpoint to out/checkpoint-70\n")
        log.flush()
        records = rankscope("progress", log.name).stdout
        facts = rankscope("progress", "--facts", log.name).stdout.splitlines()
        events = rankscope("progress", "--events", log.name).stdout
        explained = rankscope("progress", "--help").stdout
    expect(findings, "records", records == "step\tloss\tgrad_norm\tlr\n\t1.5\t0.5\t1e-05\n", records)
    names = facts[0].split("\t")
    rows = [dict(zip(names, line.split("\t"))) for line in facts[1:]]
    expect(findings, "facts", [row["reward"] for row in rows] == ["0.25", "2.5"], str(rows))
    expect(findings, "facts", rows[0]["epoch"] == "0.5" and rows[0]["kl"] == "" and rows[1]["kl"] == "0.5", str(rows))
    expect(findings, "every column is explained", all(name in explained for name in names), explained)
    expect(findings, "events", events == "offset\tkind\tname\tstep\ttext\n"
           "0\ttrain_begin\thf_train_begin\t\t\n"
           "204\tsave_begin\thf_save\t70\tout/checkpoint-70\n", events)
    return findings


def test_bad_configuration_names_every_mistake():
    mistakes = ["web: {listen: [nonsense]}", "state: {keep: soon}", "colour: blue", "log: {level: loud}",
                "metrics: {max_series: -4}"]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write("\n".join(mistakes) + "\n")
        config.flush()
        result = rankscope("check", "--config", config.name)
    findings = []
    expect(findings, "check of a bad configuration: exit 2", result.returncode == 2, f"was {result.returncode}")
    for number, mistake in enumerate(mistakes, 1):
        expect(findings, f"the mistake in line {number} ({mistake}) is named with its line",
               re.search(rf"(:{number}\b|line {number}\b)", result.stderr + result.stdout))
    return findings


def check_of(config):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "c.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config.format(folder=folder))
        result = rankscope("check", "--strict", "--format", "json", "--config", path)
    document = json.loads(result.stdout)
    return result, {row["name"]: row for row in document["checks"]}


def test_check_as_a_document():
    """Strict: what the configuration asks for and does not get is an error; what nobody asked for is none."""
    findings = []
    sources = re.findall(r"^\| `(\w+)` ", rankscope("list", "sources").stdout, re.M)
    off = "sources: {{" + ", ".join(f"{name}: {{{{enabled: false}}}}" for name in sources if name != "slurm") + "}}\n" + \
        "state: {{dir: {folder}}}\nebpf: {{mode: \"off\"}}\n"
    result, rows = check_of(off + "slurm: {{role: \"off\"}}\n")
    expect(findings, "nothing asked for: exit 0", result.returncode == 0, f"was {result.returncode}: {result.stderr}")
    expect(findings, "every row has all keys", all(set(row) == {"name", "state", "wanted", "text", "lost", "needs"} for row in rows.values()))
    expect(findings, "states", {row["state"] for row in rows.values()} <= {"yes", "partly", "no", "off", "n/a"})
    refused = "http://127.0.0.1:9"
    for wish, name in ((f"slurm: {{{{role: controller, restd_url: \"{refused}/slurm/v0.0.41\"}}}}\n", "slurm"),
                       (f"slurm: {{{{controller_url: \"{refused}\"}}}}\n", "slurm"),
                       (f"slurm: {{{{role: \"off\"}}}}\nfleet: {{{{prometheus: \"{refused}\"}}}}\n", "fleet")):
        result, rows = check_of(off + wish)
        row = rows[name]
        expect(findings, f"{wish.strip()}: exit 1", result.returncode == 1, f"was {result.returncode}")
        expect(findings, f"{wish.strip()}: a wanted gap, with what is lost and needed",
               row["state"] == "no" and row["wanted"] and row["lost"] and row["needs"], str(row))
        expect(findings, f"{wish.strip()}: named on stderr", f"rankscope check: {name}: " in result.stderr, result.stderr)
        expect(findings, f"{wish.strip()}: nothing else", result.stderr.count("\n") == 1, result.stderr)
    return findings


if __name__ == "__main__":
    main(globals())
