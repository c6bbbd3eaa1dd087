# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A node whose boards have something to show: a real daemon, healthy at first, then ill; and the daemon of a controller of an ill Slurm.

Its GPUs are those of the stand-in for the driver's library; Slurm is a server that answers as slurmrestd 25.11 does; its jobs are
real processes: ranks that call CUDA and NCCL, one that prints as Megatron-LM does and saves checkpoints, one that prints its speed.
"""
import contextlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from unittest import mock

from daemon_test import Daemon
from support import fetch, wait_for

RANKS = 2
GB = 10 ** 9
TRAINS = f"ranks {RANKS}\nsteps 1000000\nstep_ms 100\nlaunches 4\ncollectives 1\nwatchdog 1\n"
# argv: folder of checkpoints, whether it is ill. Megatron-LM says how many iterations there will be.
COUNTS = """
import itertools, os, sys, time, zipfile
for step in itertools.count(1):
    loss = "nan" if sys.argv[2] == "ill" and step > 20 else f"{4 / step + 1:.6E}"
    print(f" iteration {step:8d}/  100000 | consumed samples: {8 * step:12d} | elapsed time per iteration (ms): 100.0 | "
          f"learning rate: 1.000000E-04 | global batch size:     8 | lm loss: {loss} | grad norm: 1.234 |", flush=True)
    if step % 25 == 1:  # saves less than 2 s apart are one
        path = f"{sys.argv[1]}/iter_{step:07d}/mp_rank_00"
        os.makedirs(path, exist_ok=True)
        print(f"saving checkpoint at iteration {step:7d} to {sys.argv[1]} in torch format", flush=True)
        with zipfile.ZipFile(path + "/model_optim_rng.pt", "w") as out:  # as torch.save writes
            out.writestr("archive/data/0", os.urandom(1 << 20))
        print(f"  successfully saved checkpoint from iteration {step:7d} to {sys.argv[1]}", flush=True)
    time.sleep(0.1)
"""
# argv: milliseconds of a step. llm.c says how fast it is.
HURRIES = """
import itertools, sys, time
ms = int(sys.argv[1])
for step in itertools.count(1):
    print(f"step {step:4d}/90000 | loss {4 / step + 1:.6f} (+0.10z)| norm 3.2500 (+1.00z)| lr 6.00e-06 | {ms}.12 ms | "
          f"{5000 / ms:.1f}% bf16 MFU | {int(17e6 / ms)} tok/s", flush=True)
    time.sleep(ms / 1000)
"""
FAILS = "print('epoch 1 starts'); raise ValueError('bad shard 7')"
# What holds of the GPUs: NVML's units, its GPM metrics 1 engine, 2 SMs, 5 tensor, 10 memory, in percent.
BUSY = {"gpu_utilization": 97, "gpm_1": 97, "gpm_2": 62, "gpm_5": 31, "gpm_10": 42, "gpm_20": 900, "gpm_21": 900, "field_138": "0 +900",
        "field_139": "0 +900", "throttle_bits": 0, "power": 640000, "clock_1": 1980, "memory_used": 61 * GB, "temperature": 66}
# GPU 1: an error that calls for a reset, memory that is worn out, heat, a link that is down.
ILL = {"ecc_1_0_2": 3, "remap_failed": 1, "remap_pending": 1, "remapped_uncorrectable": 2, "throttle_bits": 0x48, "violation_2": "0 +500000000",
       "temperature": 90, "clock_1": 900, "pcie_width": 8, "pcie_replays": "0 +7", "nvlink_state_3": 0, "nvlink_error_3_0": "0 +5", "margin": 0,
       "gpm_2": 4, "gpm_5": 0, "fabric_state": 2}
# Others write into the kernel's log, about GPUs of the same addresses.
CONFIG = """
node: {{name: n1}}
sources: {{kmsg: {{enabled: false}}, nvml: {{interval: 500ms}}}}
slurm: {{role: controller, restd_url: "{url}/slurm/v0.0.44"}}
notify: {{file: "{folder}/notify.yaml"}}
"""
CONTROLLER = """
node: {{name: c1}}
ebpf: {{mode: "off"}}
sources: {{run: {{enabled: false}}, procfs: {{enabled: false}}, proc_connector: {{enabled: false}}, kmsg: {{enabled: false}}, nvml: {{enabled: false}}}}
slurm: {{role: controller, restd_url: "{url}/slurm/v0.0.44"}}
"""
NOTIFY = """
channels: [{{name: hook, kind: webhook, url: "{url}/hook"}}]
"""


class Cards:
    """What the stand-in for NVML reads: busy GPUs, and on GPU N the process of rank N."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "gpus"
        self.say({})

    def say(self, pids, ill=False):
        lines = ["driver 550.54.15", f"gpus {RANKS} hopper"]
        lines += [f"gpu * {key} {value}" for key, value in BUSY.items()]
        lines += [f"gpu 1 {key} {value}" for key, value in ILL.items() if ill]
        lines += ["gpu 1 xid 79"] if ill else []
        lines += [f"gpu {rank} process {pid} {50 * GB}" for rank, pid in pids.items()]
        self.path.with_suffix(".next").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.path.with_suffix(".next").rename(self.path)


class Slurmrestd:
    """Answers as slurmrestd did when the fixtures were made; of a cluster that is well, with those of its nodes and jobs that are. Takes
    notifications, too."""

    def __init__(self, fixtures, ill):
        answers = {name: json.loads((fixtures / f"{name}.json").read_text(encoding="utf-8")) for name in ("jobs", "nodes", "diag", "accounting")}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                part, name = self.path.split("?")[0].strip("/").split("/")[0::2][:2]
                document = dict(answers["accounting"] if part == "slurmdb" else answers.get(name, answers["jobs"]))
                if not ill and name == "nodes":
                    document["nodes"] = [node for node in document["nodes"] if "MIXED" in node["state"]]
                if not ill and "jobs" in document:
                    document["jobs"] = [job for job in document["jobs"] if {"RUNNING", "PENDING"} & set(job.get("job_state", ()))]
                self.answer(json.dumps(document).encode())

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.answer(b"{}")

            def answer(self, body):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def pids_of(daemon, job):
    """{rank: pid} of a job, once all its ranks are known."""
    with contextlib.suppress(OSError):
        evidence = json.loads(fetch(f"{daemon.url}/evidence?job_id={job}"))
        pids = {rank["rank"]: rank["pid"] for rank in evidence["ranks"] if rank["pid"] > 0}
        return pids if len(pids) == RANKS else None
    return None


@contextlib.contextmanager
def running(command, environment):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


class BoardNode:
    """As a context: the daemon runs and its healthy jobs have begun. `fall_ill` makes a GPU ill and starts the broken jobs."""

    HEALTHY = ("cards-1", "steps-1", "speed-1")
    BROKEN = ("hangs-1", "nan-1", "slow-1", "fails-1")

    def __init__(self, binary, stub_trainer, stubs, fake_nvml, source):
        self._binary, self._trainer, self._stubs, self._fake_nvml = binary, stub_trainer, stubs, fake_nvml
        self._source = pathlib.Path(source)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = stack.enter_context(tempfile.TemporaryDirectory())
            self._cards = Cards(self.folder)
            with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": self._fake_nvml, "FAKE_NVML_SCRIPT": str(self._cards.path)}):
                self.daemon = self._daemon(stack, "node", CONFIG, ill=False)
            self.controller = self._daemon(stack, "controller", CONTROLLER, ill=True)
            self._stack = stack
            self._train("cards-1", TRAINS)
            self._print("steps-1", COUNTS, f"{self.folder}/steps", "well")
            self._print("speed-1", HURRIES, "50")
            self._cards.say(wait_for("all ranks", lambda: pids_of(self.daemon, "cards-1")))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _daemon(self, stack, name, config, ill):
        folder = pathlib.Path(self.folder) / name
        folder.mkdir()
        slurm = stack.enter_context(contextlib.closing(Slurmrestd(self._source / "tests/fixtures/slurm/25.11", ill)))
        for file, text in (("config.yaml", config), ("notify.yaml", NOTIFY)):
            (folder / file).write_text(text.format(url=slurm.url, folder=folder), encoding="utf-8")
        return stack.enter_context(contextlib.closing(Daemon(self._binary, folder, "--config", str(folder / "config.yaml"))))

    def scrape_configs(self):
        """The node twice, as two nodes of the same jobs: n1 and n2; the controller once: c1."""
        addresses = {"n1:10177": self.daemon.address, "n2:10177": self.daemon.address, "c1:10178": self.controller.address}
        return [{"job_name": "rankscope", "static_configs": [{"targets": [address], "labels": {"instance": instance}}
                                                             for instance, address in addresses.items()]}]

    def fall_ill(self):
        self._train("hangs-1", TRAINS + "rank 1 leave at 10\n")
        self._print("nan-1", COUNTS, f"{self.folder}/nan", "ill")
        self._print("slow-1", HURRIES, "200")
        self._print("fails-1", FAILS)
        self._cards.say(wait_for("all ranks", lambda: pids_of(self.daemon, "hangs-1")), ill=True)

    def _train(self, job, script):
        path = pathlib.Path(self.folder) / job
        path.write_text(script, encoding="utf-8")
        self._run(job, self._trainer, str(path))

    def _print(self, job, program, *arguments):
        self._run(job, sys.executable, "-c", program, *arguments)

    def _run(self, job, *command):
        wrapper = [self._binary, "run", "--socket", self.daemon.socket, "--dir", f"{self.folder}/runs", "--job-id", job, "--"]
        self._stack.enter_context(running([*wrapper, *command], {**os.environ, "STUB_GPU_LIBRARIES": self._stubs}))
