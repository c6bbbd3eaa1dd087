#!/usr/bin/python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/fixtures/labelled_runs: logs of real programs that fail, or do not, and what each of them is.

    make.py [NAME...]      runs all, or some, of the runs below and writes their logs and labels.tsv

Any classifier is scored on it by tests/support/score_failures.py --corpus tests/fixtures/labelled_runs.
"""
import csv
import dataclasses
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TARGET = ROOT / "tests/fixtures/labelled_runs"
PYTHON = "/usr/bin/python3"  # Debian's, whose python3-torch is meant
sys.path.insert(0, str(ROOT / "tests/replay"))
import real_runs  # noqa: E402  (its programs and data, and torchrun with the shim)


@dataclasses.dataclass
class Run:
    name: str
    family: str  # what it is
    script: str  # of sh; {m} is mishaps.py, {image} image_classifier.py, {torchrun} torchrun with two ranks of train.py
    exception: str = "-"
    fault_class: str = "-"
    acceptable: str = ""  # families besides
    key_phrase: str = "-"


def mishap(name, family, at=0, **more):
    options = more.pop("options", "")
    at_step = f" --at {at}" if at else ""
    return Run((f"mid_{name}" if at else name), family, f"{{m}} {name}{at_step} {options}".strip(), **more)


RUNS = [
    mishap("missing_module", "A1", exception="ModuleNotFoundError", fault_class="env", key_phrase="No module named"),
    mishap("missing_name", "A1", exception="ImportError", fault_class="env", key_phrase="cannot import name"),
    mishap("missing_shared_library", "A1", exception="OSError", fault_class="env", key_phrase="libcudart.so.12"),
    mishap("no_cuda", "A1", exception="AssertionError", fault_class="env", key_phrase="not compiled with CUDA"),
    mishap("missing_key_in_config", "A1", exception="KeyError", fault_class="config", acceptable="X1",
           key_phrase="learning_rate"),
    mishap("text_for_number_in_config", "A1", exception="TypeError", fault_class="config", acceptable="X1"),
    mishap("unknown_argument_of_constructor", "A1", exception="TypeError", fault_class="config,env", acceptable="X1",
           key_phrase="unexpected keyword argument"),
    mishap("negative_learning_rate", "A1", exception="ValueError", fault_class="config", acceptable="X1",
           key_phrase="Invalid learning rate"),
    mishap("broken_config_file", "A1", exception="MissingSectionHeaderError", fault_class="config", acceptable="X1"),
    mishap("unknown_command_line_argument", "A1", fault_class="config", key_phrase="unrecognized arguments"),
    mishap("missing_file", "A1", exception="FileNotFoundError", fault_class="asset,data", acceptable="X1",
           key_phrase="shard_00017.bin"),
    mishap("missing_weights", "A1", exception="FileNotFoundError", fault_class="asset", acceptable="X1,E2",
           key_phrase="encoder_base.pt"),
    mishap("no_permission", "A1", exception="PermissionError", fault_class="asset,env,data", acceptable="X1"),
    mishap("empty_dataset", "A1", exception="ValueError", fault_class="data", acceptable="X1", key_phrase="num_samples"),
    mishap("text_in_a_column_of_numbers", "A1", exception="ValueError", fault_class="data", acceptable="X1",
           key_phrase="could not convert string to float"),
    mishap("broken_encoding", "A1", exception="UnicodeDecodeError", fault_class="data", acceptable="X1"),
    mishap("half_a_json_line", "A1", exception="JSONDecodeError", fault_class="data,config", acceptable="X1",
           key_phrase="Unterminated string"),
    mishap("more_than_the_machine_has", "A1", exception="RuntimeError", fault_class="env,config", acceptable="X1",
           key_phrase="allocate memory"),
    Run("refused_store", "C1", "{torchrun} --store 127.0.0.1:{port} --timeout 5", acceptable="A1"),
    Run("unknown_host", "C1", "{torchrun} --store trainer-head.invalid:29500 --timeout 5", acceptable="A1"),
    Run("all_ranks_value_error", "A1", "{torchrun} --optimizer adamx", exception="ValueError", fault_class="config",
        key_phrase="unknown optimizer"),
    Run("all_ranks_missing_module", "A1", "{torchrun} --logger trackio_client", exception="ModuleNotFoundError",
        fault_class="env", key_phrase="trackio_client"),
    Run("all_ranks_broken_json", "A1", "{torchrun} --data broken.jsonl", exception="JSONDecodeError", fault_class="data"),
    Run("one_rank_raises", "X1", "{torchrun} --fail-at 30 --fail-how raise", exception="RuntimeError",
        key_phrase="has an empty mask"),
    Run("one_rank_killed", "A2", "{torchrun} --fail-at 30 --fail-how kill", key_phrase="SIGKILL"),
    Run("one_rank_segfaults", "A2", "{torchrun} --fail-at 30 --fail-how segv", key_phrase="SIGSEGV"),
    mishap("missing_key", "X1", 60, exception="KeyError", key_phrase="'labels'"),
    mishap("index_out_of_range", "X1", 60, exception="IndexError", options="--form iter"),
    mishap("label_out_of_range", "X1", 40, exception="IndexError", key_phrase="out of bounds"),
    mishap("token_out_of_vocabulary", "X1", 40, exception="IndexError", options="--form epoch"),
    mishap("division_by_zero", "X1", 60, exception="ZeroDivisionError", key_phrase="division by zero"),
    mishap("shape_mismatch", "X1", 50, exception="RuntimeError", key_phrase="mat1 and mat2"),
    mishap("stack_of_unequal", "X1", 50, exception="RuntimeError", key_phrase="equal size", options="--form json"),
    mishap("dtype_mismatch", "X1", 50, exception="RuntimeError"),
    mishap("backward_twice", "X1", 50, exception="RuntimeError", key_phrase="backward through the graph a second time"),
    mishap("no_gradient", "X1", 50, exception="RuntimeError", key_phrase="does not require grad"),
    mishap("failed_assertion", "X1", 80, exception="AssertionError", key_phrase="do not sum to one"),
    mishap("not_implemented", "X1", 80, exception="NotImplementedError"),
    mishap("endless_recursion", "X1", 80, exception="RecursionError"),
    mishap("unhashable", "X1", 80, exception="TypeError", key_phrase="unhashable"),
    mishap("failing_worker", "X1", 80, exception="OSError", key_phrase="is truncated"),
    mishap("memory_limit", "X1", 40, exception="MemoryError", acceptable="A2"),
    mishap("killed", "A2", 40, key_phrase="Killed"),
    mishap("segmentation_fault", "A2", 40, key_phrase="Segmentation fault"),
    mishap("aborted", "A2", 40, key_phrase="Aborted"),
    mishap("bus_error", "A2", 40, key_phrase="Bus error"),
    mishap("heap_corruption", "A2", 40, key_phrase="double free"),
    mishap("floating_point_exception", "A2", 40, key_phrase="Floating point exception"),
    Run("worker_killed", "A2", "{image} --workers 2 --epochs 2 --kill-worker-at 333", exception="RuntimeError",
        key_phrase="killed by signal"),
    mishap("terminated", "X20", 40, acceptable="A2", key_phrase="Terminated"),
    mishap("interrupted", "X20", 40, exception="KeyboardInterrupt"),
    mishap("disk_full", "X21", 40, exception="OSError", key_phrase="No space left on device"),
    mishap("disk_full_at_save", "X21", 40),
    mishap("quiet_exit", "U0", acceptable="A1"),
    mishap("said_and_left", "A1", acceptable="U0"),
    mishap("quiet_exit", "U0", 40, acceptable="X1"),
    Run("exploded", "E1", "{m} nothing --lr 1e9 --steps 60"),
    Run("nan", "E1", "{m} nothing --lr 1e30 --steps 60"),
    Run("rises", "E1", "{m} nothing --lr 0.01 --grow 1.06 --steps 300", acceptable="G1"),
    Run("learning_rate_zero", "E1", "{m} nothing --lr 0 --steps 600"),
    Run("plateau", "E1", "{torchrun} --clip 1 --lr 5 --warmup 400 --batch-size 32 --steps 600"),
    Run("resume_without_checkpoint", "E2", "{image} --epochs 2 --resume gone.pth.tar", acceptable="G1",
        key_phrase="no checkpoint found"),
    Run("size_mismatch", "E2", "{image} --epochs 1 >/dev/null; {image} --width 24 --resume checkpoint.pth.tar",
        exception="RuntimeError", acceptable="A1", key_phrase="size mismatch for"),
    Run("truncated_checkpoint", "E2",
        "{image} --epochs 1 >/dev/null; truncate -s 9000 checkpoint.pth.tar; {image} --resume checkpoint.pth.tar",
        acceptable="A1"),
    Run("one_step", "E3", "{torchrun} --steps 1", acceptable="G1"),
    Run("five_steps", "E3", "{m} nothing --steps 5 --every 1", acceptable="G1"),
    Run("healthy_ddp", "G1", "{torchrun}"),
    Run("healthy_image", "G1", "{image} --epochs 5"),
    Run("healthy_bar", "G1", "{image} --epochs 3 --bar"),
    Run("healthy_json", "G1", "{m} nothing --form json"),
    Run("healthy_iter", "G1", "{m} nothing --form iter"),
    Run("healthy_epoch", "G1", "{m} nothing --form epoch"),
    Run("healthy_silent", "G1", "{m} nothing --form none", acceptable="U0"),
    Run("healthy_with_caught_error", "G1", "{m} caught --at 40"),
    Run("resumed", "G1", "{image} --epochs 2 >/dev/null; {image} --epochs 6 --resume checkpoint.pth.tar"),
    Run("second_attempt_succeeds", "G1", "{m} missing_key --at 40; {m} nothing"),
    Run("second_attempt_fails", "X1", "{m} nothing; {m} division_by_zero --at 40", exception="ZeroDivisionError",
        key_phrase="division by zero"),
    Run("three_failed_attempts", "X1", "for i in 1 2 3; do {m} shape_mismatch --at 20; done; exit 1",
        exception="RuntimeError", acceptable="X19"),
]


def programs(script, port):
    torchrun = (f"{PYTHON} torchrun_shim.py --nproc_per_node 2 --master_addr 127.0.0.1 "
                f"--master_port {real_runs.free_port()} train.py")
    return (script.replace("{m}", f"{PYTHON} -u mishaps.py").replace("{torchrun}", torchrun)
            .replace("{image}", f"{PYTHON} -u image_classifier.py").replace("{port}", str(port)))


def execute(run):
    """(exit status as a shell gives it, what was printed)"""
    with tempfile.TemporaryDirectory(prefix="train-") as name, real_runs.silent_port() as port:
        folder = Path(name)
        folder.chmod(0o755)
        case = real_runs.Case(run.name, "", set())
        environment = {"PATH": os.environ["PATH"], "HOME": name, "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1",
                       "GLOO_SOCKET_IFNAME": "lo"}
        real_runs.prepare(case, folder, environment)
        (folder / "mishaps.py").write_bytes((HERE / "mishaps.py").read_bytes())
        # As a batch script is run: the shell says what killed its child.
        script = f"{programs(run.script, port)}\nstatus=$?\nexit $status\n"
        (folder / "job.sh").write_text(script)
        done = subprocess.run(["bash", "job.sh"], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, check=False)
        text = done.stdout.replace(name.encode(), b"/scratch/job")
        return done.returncode, text.replace(socket.gethostname().encode(), b"node1")


def main(names):
    (TARGET / "logs").mkdir(parents=True, exist_ok=True)
    labels = TARGET / "labels.tsv"
    rows = {}
    if labels.exists():
        with open(labels, encoding="utf-8", newline="") as file:
            rows = {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}
    for run in RUNS:
        if names and run.name not in names:
            continue
        status, text = execute(run)
        (TARGET / "logs" / f"{run.name}.log").write_bytes(text)
        rows[f"{run.name}.log"] = {
            "file": f"{run.name}.log", "family": run.family,
            "acceptable": ",".join(filter(None, [run.family, run.acceptable])),
            "fault_class": run.fault_class.split(",")[0], "acceptable_fault_class": run.fault_class,
            "exception_type": run.exception, "key_phrase": run.key_phrase, "exit_code": status,
            "made_by": shlex.join(["sh", "-c", run.script])}
        print(f"{run.name}: exit {status}, {len(text)} bytes")
    known = [f"{run.name}.log" for run in RUNS]
    for stale in (TARGET / "logs").iterdir():
        if stale.name not in known:
            stale.unlink()
    with open(labels, "w", encoding="utf-8", newline="") as file:
        first = next(iter(rows.values()))
        writer = csv.DictWriter(file, list(first), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in known if name in rows)


if __name__ == "__main__":
    main(sys.argv[1:])
