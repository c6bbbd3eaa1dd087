#!/usr/bin/python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch runs, judged live and again from their recordings.

    real_runs.py [--under run|serve|kernel] CASE...   runs the cases and checks their verdicts
                                               kernel: no wrapper, all that is known is seen from outside
    real_runs.py --list                        names the cases
    real_runs.py --accept [CASE...]            runs them, keeps the recordings as goldens and rewrites what is said of all

Goldens lie in tests/fixtures/recordings/CASE/ and are judged again, without PyTorch, by replay_goldens.py.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import replay_goldens  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("RANKSCOPE_BINARY", ROOT / "build" / "rankscope"))
SCRIPTS = ROOT / "tests/support/real_runs"
GOLDENS = ROOT / "tests/fixtures/recordings"
PYTHON = "/usr/bin/python3"  # Debian's, whose python3-torch is meant; another python3 may come first in PATH
RUN_SECONDS = 90
NODE = "n1"  # the host's name in goldens


@dataclasses.dataclass
class Case:
    name: str
    arguments: str  # of train.py; {port} is a port that nobody listens on
    codes: set  # acceptable family codes
    status: int = 1
    ranks: tuple = None  # None = not checked
    needs_processes: bool = False  # which rank it was is not in the text: only a daemon that sees exits can say it
    also: dict = dataclasses.field(default_factory=dict)  # other fields of the verdict
    script: str = ""  # a shell script in place of torchrun and train.py; {image} starts image_classifier.py
    before: str = ""  # a shell script that prepares the folder, unseen by rankscope
    small_disk: bool = False  # ./disk is a file system of a few blocks
    terminal: bool = False  # the run's standard streams are a terminal
    not_warned: str = ""  # a warning that must not be there
    terminate_after: str = ""  # SIGTERM to the launcher when the output holds this


CASES = [
    Case("healthy", "", {"G1"}, status=0, also={"sub": "healthy"}),
    Case("valueerror", "--optimizer adamx", {"A1"}, ranks=(0, 1), needs_processes=True,
         also={"fault_class": "config", "exception_type": "ValueError"}),
    Case("missing_file", "--vocab vocab/classes.json", {"A1"},
         also={"fault_class": "asset", "exception_type": "FileNotFoundError"}),
    Case("importerror", "--logger trackio_client", {"A1"},
         also={"fault_class": "env", "exception_type": "ModuleNotFoundError"}),
    Case("broken_json", "--data broken.jsonl", {"A1"},
         also={"fault_class": "data", "exception_type": "json.decoder.JSONDecodeError"}),
    Case("sigkill", "--fail-at 30 --fail-how kill", {"A2"}, ranks=(1,), also={"signal": "SIGKILL"}),
    Case("segv", "--fail-at 30 --fail-how segv", {"A2"}, ranks=(1,), also={"signal": "SIGSEGV"}),
    Case("rendezvous", "--store 127.0.0.1:{port} --timeout 10", {"C1"}),
    Case("loss_nan", "--lr 1e9", {"E1"}, status=0),
    Case("loss_plateau", "--clip 1 --lr 5 --warmup 400 --batch-size 32 --steps 600", {"E1"}, status=0),
    Case("one_step", "--steps 1", {"E3"}, status=0),
    Case("exception_step30", "--fail-at 30 --fail-how raise", {"X1"}, ranks=(1,), needs_processes=True,
         also={"exception_type": "RuntimeError"}),
    Case("sigterm", "--steps 100000 --step-sleep 0.02", {"X20"}, terminate_after="step 40 "),
    Case("resume_not_honoured", "", {"E2"}, status=0, script="{image} --epochs 3 --resume last.pth.tar",
         also={"sub": "not_loaded"}),
    Case("resume_honoured", "", {"G1"}, status=0, before="{image} --epochs 3 >before.log",
         script="{image} --epochs 7 --resume checkpoint.pth.tar", not_warned="started_from_scratch"),
    Case("size_mismatch", "", {"E2"}, before="{image} --epochs 1 >before.log",
         script="{image} --width 24 --resume checkpoint.pth.tar",
         also={"sub": "load_crash", "exception_type": "RuntimeError"}),
    Case("truncated_checkpoint", "", {"E2"},
         before="{image} --epochs 1 >before.log && truncate -s 9000 checkpoint.pth.tar",
         script="{image} --resume checkpoint.pth.tar", also={"sub": "load_crash"}),
    Case("worker_killed", "", {"A2"}, script="{image} --workers 2 --epochs 2 --kill-worker-at 333",
         also={"signal": "SIGKILL"}),
    Case("disk_full_at_save", "", {"X21"}, status=134, script="{image} --width 64 --save disk/checkpoint.pth.tar", small_disk=True,
         also={"sub": "full"}),
    Case("attempts", "", {"G1"}, status=0,
         script="{image} --epochs 6 --crash-in-epoch 2 || {image} --epochs 6 --resume checkpoint.pth.tar"),
    Case("progress_bar", "", {"G1"}, status=0, script="{image} --epochs 3 --bar", terminal=True),
    Case("no_progress", "--log-every 0", {"G1"}, status=0, also={"sub": "unverifiable"}),
]


def write_data(folder):
    """A learnable problem with a tenth of wrong labels, and a copy with broken lines."""
    numbers = random.Random(7)
    centers = [[numbers.gauss(0, 1) for _ in range(16)] for _ in range(8)]
    lines = []
    for index in range(512):
        label = index % 8
        features = [round(center + numbers.gauss(0, 1.5), 4) for center in centers[label]]
        if numbers.random() < 0.1:
            label = numbers.randrange(8)
        lines.append(json.dumps({"x": features, "y": label}) + "\n")
    (folder / "train.jsonl").write_text("".join(lines))
    # A comma that got lost, often enough for the first batch to meet one.
    broken = [line.replace(", ", " ", 1) if index % 7 == 3 else line for index, line in enumerate(lines)]
    (folder / "broken.jsonl").write_text("".join(broken))


JOB_ID = str(9_000_000 + os.getpid() % 100_000)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def silent_port():
    """A port on which connections are refused for as long as this lasts: bound, and not listening."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def launcher_of(wrapper):
    """The pid of the wrapped command."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError, ValueError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == wrapper and b"torchrun_shim" in (entry / "cmdline").read_bytes():
                return int(entry.name)
    return None


def family_of(pid):
    """The process and whom it has started, and so on."""
    members = [pid]
    for member in members:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{member}/task").iterdir():
                members += [int(child) for child in (task / "children").read_text().split()]
    return members


def command_of(case, silent_port_number):
    if case.script:
        script = with_programs(case.script)
        return ["sh", "-c", script] if set(script) & set("|;&<>") else shlex.split(script)
    return [PYTHON, "torchrun_shim.py", "--nproc_per_node", "2", "--master_addr", "127.0.0.1",
            "--master_port", str(free_port()), "train.py", *case.arguments.format(port=silent_port_number).split()]


def with_programs(script):
    return script.replace("{image}", f"{PYTHON} -u image_classifier.py")


def prepare(case, folder, environment):
    for script in ("train.py", "torchrun_shim.py", "image_classifier.py"):
        shutil.copy(SCRIPTS / script, folder)
    write_data(folder)
    if case.small_disk:
        (folder / "disk").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", folder / "disk"], check=True)
    if case.before:
        subprocess.run(["sh", "-c", with_programs(case.before)], cwd=folder, env=environment, check=True)


def copy_terminal(master, output):
    """The terminal's screen into a file, until nobody holds the terminal any more."""
    with contextlib.suppress(OSError):
        while block := os.read(master, 65536):
            output.write(block)
            output.flush()


@contextlib.contextmanager
def streams_of(case, path):
    """What the run's standard output and error are; all of it is in the file `path` at the end."""
    with open(path, "wb") as output:
        if not case.terminal:
            yield output
            return
        master, slave = os.openpty()
        copier = threading.Thread(target=copy_terminal, args=(master, output))
        copier.start()
        try:
            yield slave
        finally:
            os.close(slave)
            copier.join(RUN_SECONDS)
            os.close(master)


def run_case(case, folder, before=(), on_start=None, variables=None):
    """Runs the case below `folder`, behind the command `before`; returns (exit status, output)."""
    environment = {**(variables or {}), "PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1",
                   "GLOO_SOCKET_IFNAME": "lo"}
    prepare(case, folder, environment)
    try:
        with silent_port() as silent, streams_of(case, folder / "output") as output:
            process = subprocess.Popen([*before, *command_of(case, silent)], cwd=folder, env=environment, stdout=output,
                                       stderr=output, stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                if on_start:
                    on_start(process)
                if case.terminate_after:
                    wait_for(lambda: case.terminate_after.encode() in (folder / "output").read_bytes()
                             or process.poll() is not None, "the run to print " + case.terminate_after)
                    os.kill(launcher_of(process.pid) if before else process.pid, signal.SIGTERM)
                status = process.wait(timeout=RUN_SECONDS)
                status = status if status >= 0 else 128 - status  # as a shell and the wrapper say it
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    finally:
        if case.small_disk:
            subprocess.run(["umount", folder / "disk"], check=False)
    shown = (folder / "output").read_bytes()
    return status, shown.replace(b"\r\n", b"\n") if case.terminal else shown


def wrapper(case, folder, sock=""):
    return [BINARY, "run", "--dir", folder / "run", "--job-id", case.name.replace("_", "-"), "--socket", sock, "--verdict", "none",
            "--"]


def wait_for(condition, what, seconds=RUN_SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.02)


def is_torn(case, output):
    """Whether ranks that died in the same instant tore each other's last line: `python -u`, which torchrun starts, writes
    it in pieces, and not every shuffle of them can be read (unit test Tangled)."""
    name = case.also.get("exception_type", "").encode()
    last = name.rpartition(b".")[2]
    lines = [line for line in output.splitlines() if not line.startswith(b" ")]
    whole = [line for line in lines if line.startswith(name + b": ") and line.count(last) == 1]
    return not whole or any(last in line and line not in whole for line in lines)


def check(case, verdict, under, output):
    torn = "exception_type" in case.also and is_torn(case, output)
    codes = case.codes | {"U0"} if torn else case.codes
    findings = []
    if verdict.get("code") not in codes:
        findings.append(f"code {verdict.get('code')}, expected one of {sorted(codes)}")
    if torn:
        print(f"{case.name}: the ranks tore each other's last line; ranks and exception are not compared")
        return findings
    checks_ranks = case.ranks is not None and (under == "serve" or not case.needs_processes)
    if checks_ranks and tuple(verdict.get("ranks", ())) != case.ranks:
        findings.append(f"ranks {verdict.get('ranks')}, expected {list(case.ranks)}")
    if case.not_warned and case.not_warned in (warning["kind"] for warning in verdict.get("warnings", ())):
        findings.append(f"warned of {case.not_warned}")
    for key, value in case.also.items():
        if verdict.get(key) != value:
            findings.append(f"{key} {verdict.get(key)!r}, expected {value!r}")
    return findings


def replay(recording):
    result = subprocess.run([BINARY, "replay", "--format", "json", recording], capture_output=True, text=True,
                            timeout=60, check=False)
    if result.returncode != 0:
        raise AssertionError(f"replay: exit {result.returncode}: {result.stderr.strip()}")
    return result.stdout


def compare(live, again):
    """A verdict from the recording is the live one, byte for byte."""
    if json.dumps(live) == json.dumps(again):
        return []
    return [f"replay differs in {key}: {again.get(key)!r}, live {live.get(key)!r}"
            for key in dict.fromkeys([*live, *again]) if live.get(key) != again.get(key)] or ["replay orders its keys differently"]


def check_under_run(case, folder):
    status, output = run_case(case, folder, wrapper(case, folder))
    findings = [] if status == case.status else [f"exit status {status}, expected {case.status}"]
    log = (folder / "run/log").read_bytes()
    if sorted(log.splitlines()) != sorted(output.splitlines()):
        findings.append("the log is not what the run printed")
    live = json.loads((folder / "run/verdict.json").read_text())
    findings += check(case, live, "run", output)
    first = replay(folder / "run/recording")
    if first != replay(folder / "run/recording"):
        findings.append("two replays differ")
    findings += compare(live, json.loads(first)["verdicts"][0])
    return findings


def ask(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def daemon_below(folder):
    """A daemon with its state in `folder`; gives its port and its socket."""
    port, sock = free_port(), folder / "run.sock"
    (folder / "serve.yaml").write_text(f'web: {{listen: ["127.0.0.1:{port}"]}}\n'
                                       f'state: {{dir: "{folder}/state"}}\nrun: {{socket: "{sock}"}}\n')
    with open(folder / "serve.log", "wb") as log:
        daemon = subprocess.Popen([BINARY, "serve", "--config", folder / "serve.yaml"], stdout=log, stderr=log)
    try:
        def ready():
            with contextlib.suppress(OSError):
                return bool(ask(port, "/-/ready"))
            return daemon.poll() is not None

        wait_for(ready, "serve to be ready", 20)
        yield port, sock
    except AssertionError as error:
        raise AssertionError(f"{error}\n{(folder / 'serve.log').read_text()[-2000:]}") from error
    finally:
        daemon.terminate()
        daemon.wait(timeout=20)


def final_verdict(port, job):
    verdict = {}

    def final():
        nonlocal verdict
        with contextlib.suppress(OSError):
            document = json.loads(ask(port, f"/verdict?job_id={job}"))
            verdict = document["verdicts"][0] if "verdicts" in document else document
        return verdict.get("state") == "final"

    wait_for(final, f"the final verdict of {job}", 60)
    wait_for(lambda: f'rankscope_verdict_info{{job_id="{job}",family="{verdict["family"]}",' in ask(port, "/metrics"),
             "the series of the verdict", 5)
    return verdict


def check_under_serve(case, folder):
    with daemon_below(folder) as (port, sock):
        status, output = run_case(case, folder, wrapper(case, folder, str(sock)))
        findings = [] if status == case.status else [f"exit status {status}, expected {case.status}"]
        return findings + check(case, final_verdict(port, case.name.replace("_", "-")), "serve", output)


def check_under_kernel(case, folder):
    """The same run, started as if there were no rankscope: found, heard and judged from outside. Ranks are known by what
    torchrun gives them; what it does not start is known as a job of Slurm's."""
    job = JOB_ID if case.script else ""

    def find(process):
        nonlocal job

        def look():
            nonlocal job
            for pid in family_of(process.pid):
                with contextlib.suppress(OSError):
                    found = re.search(r"proc-[0-9a-f]{8}", ask(port, f"/explain?pid={pid}"))
                    job = job or (found[0] if found else "")
            return job or process.poll() is not None

        wait_for(look, "the run to be found", 20)

    with daemon_below(folder) as (port, _):
        if "rankscope_source_up{source=\"stdio\"} 1" not in ask(port, "/metrics"):
            print("SKIP: nothing captures output here; `rankscope check` says why")
            return []
        variables = {"SLURM_JOB_ID": JOB_ID} if case.script else {}
        status, output = run_case(case, folder, on_start=None if case.script else find, variables=variables)
        findings = [] if status == case.status else [f"exit status {status}, expected {case.status}"]
        if not job:
            return findings + ["the run was not found"]
        return findings + check(case, final_verdict(port, job), "serve", output)


def accept(case, folder):
    """Keeps what a run left as golden, when it is judged as it should be."""
    findings = check_under_run(case, folder)
    target = GOLDENS / case.name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder / "run/recording", target / "recording")
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return findings


def torch_is_missing():
    probe = subprocess.run([PYTHON, "-c", "import torch.distributed, torchvision, tqdm"], capture_output=True, check=False)
    return probe.returncode != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--under", choices=["run", "serve", "kernel"], default="run")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(case.name for case in CASES))
        return 0
    if torch_is_missing():
        print(f"SKIP: {PYTHON} lacks a module; apt-get install python3-torch python3-torchvision python3-tqdm")
        return 0
    if arguments.accept and socket.gethostname() != NODE:
        # Goldens must not carry the names of this machine and of its cgroups: once more, in namespaces of their own.
        os.execvp("unshare", ["unshare", "--uts", "--cgroup", "sh", "-c", f'hostname {NODE} && exec "$@"', "sh", PYTHON, *sys.argv])
    judge = accept if arguments.accept else {"run": check_under_run, "serve": check_under_serve, "kernel": check_under_kernel}[arguments.under]
    failed = False
    for case in CASES:
        if arguments.cases and case.name not in arguments.cases:
            continue
        with tempfile.TemporaryDirectory(prefix="train-") as folder:
            try:
                findings = judge(case, Path(folder))
            except AssertionError as error:
                findings = [str(error)]
            if findings:
                failed = True
                print(f"{case.name}: " + f"\n{case.name}: ".join(findings))
                with contextlib.suppress(OSError):
                    print((Path(folder) / "output").read_text(errors="replace")[-3000:])
            else:
                print(f"{case.name}: as expected")
    if arguments.accept:
        replay_goldens.accept()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
