#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""How long after an Xid /verdict blames the card: bench/xid_latency.py BUILD [RUNS]

BUILD is the folder of the build. The Xid 95 of the card of a rank is a line in the real /dev/kmsg, then, that not read, an
event of a stand-in for the driver's library. /verdict is asked every 5 ms until the job of the rank is judged B2. Prints of
each the median, the 99th percentile and the largest delay in seconds; exit 1 when the largest is above 1. Needs root.
"""
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from verdict_latency import LIMIT_S, ask, free_port, wait_until_ready

GPU = 2
BUS = "0000:28:00"  # of the stand-in's third card


class Node:
    def __init__(self, build, folder, log):
        self.folder = Path(folder)
        self.script = self.folder / "gpus"
        self.xids = []
        self.job = 1000
        self.log = log
        self.say()
        config = self.folder / "c.yaml"
        config.write_text(f"sources: {{kmsg: {{enabled: {'true' if log else 'false'}}}}}\n")
        self.port = free_port()
        environment = {**os.environ, "FAKE_NVML_SCRIPT": str(self.script),
                       "LD_LIBRARY_PATH": str(build / "tests/support/fake_nvml/lib")}
        with open(self.folder / "log", "wb") as out:
            self.daemon = subprocess.Popen(
                [str(build / "rankscope"), "serve", "--web.listen-address", f"127.0.0.1:{self.port}", "--state.dir",
                 str(self.folder / "state"), "--run.socket", str(self.folder / "run.sock"), "--config.file", str(config),
                 "--metrics.max-series", "16000"],  # jobs that have ended keep their series for a while
                env=environment, stderr=out, stdout=out)
        wait_until_ready(self.port, self.daemon)

    def say(self, *lines):
        next_script = self.script.with_suffix(".next")
        next_script.write_text("\n".join(["driver 550.54.15", "gpus 4 hopper", *lines, *self.xids, ""]))
        next_script.rename(self.script)

    def wait(self, what, look):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if look():
                return time.monotonic()
            time.sleep(0.005)
        raise SystemExit(f"{what} did not come within a minute")

    def code(self, job):
        status, body = ask(self.port, f"/verdict?job_id={job}")
        return json.loads(body).get("code") if status == 200 else None

    def raise_xid(self, pid):
        begin = time.monotonic()
        if self.log:
            with open("/dev/kmsg", "wb", buffering=0) as kmsg:
                kmsg.write(f"<3>NVRM: Xid (PCI:{BUS}): 95, pid={pid}, name=sleep, Uncontained: LTC TAG\n".encode())
        else:
            self.xids.append(f"gpu {GPU} xid 95")
            self.say(f"gpu {GPU} process {pid} 8589934592")
        return begin

    def one_delay(self):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
        self.job += 1  # ranks of one session would be one job that begins again
        job = str(self.job)
        environment |= {"SLURM_JOB_ID": job, "RANK": "0", "WORLD_SIZE": "1"}
        process = subprocess.Popen(["sleep", "600"], env=environment)
        try:
            self.wait("the job", lambda: self.code(job))
            self.say(f"gpu {GPU} process {process.pid} 8589934592")
            held = re.compile(rf'(?m)^rankscope_gpu_processes{{gpu="{GPU}",[^}}]*kind="compute"}} 1$'.encode())
            self.wait("the process on its card", lambda: held.search(ask(self.port, "/metrics")[1]))
            time.sleep(1.2)  # the card's next look tells whose it is; and one Xid a second is told
            if self.code(job) == "B2":
                raise SystemExit("the card is blamed already")
            return -self.raise_xid(process.pid) + self.wait("the verdict", lambda: self.code(job) == "B2")
        finally:
            process.kill()
            process.wait()
            self.say()

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait()


def main():
    build, runs = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    limit = Path("/proc/sys/kernel/printk_devkmsg")
    before = limit.read_text()
    limit.write_text("on\n")
    worst = 0.0
    with contextlib.ExitStack() as at_end:
        at_end.callback(limit.write_text, before)
        for name, log in [("a line of the kernel's log", True), ("the driver's library alone", False)]:
            with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stopping:
                node = Node(build, folder, log)
                stopping.callback(node.stop)
                found = sorted(node.one_delay() for _ in range(runs))
            worst = max(worst, found[-1])
            p99 = statistics.quantiles(found, n=100, method="inclusive")[98] if runs > 1 else found[0]
            print(f"{name}: median {statistics.median(found):.3f} s, p99 {p99:.3f} s, largest {found[-1]:.3f} s of {runs}")
    return 1 if worst > LIMIT_S else 0


if __name__ == "__main__":
    sys.exit(main())
