#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What a poll of the controller role costs the daemon: bench/slurm_poll.py build/rankscope [POLLS] [JOBS]

Programs in the place of Slurm's, and a server in the place of slurmrestd, tell JOBS (5,000) jobs and 500 nodes in the shapes
of 24.11; between two polls one job in a hundred ends, one starts, and one that had ended makes room for one that waits. The
interval is the product's: POLLS (6) polls after the first take three minutes and more. Two daemons, one that reads text and
one that reads JSON, poll a quarter of a minute apart; each begins with as many events of earlier jobs as it ever keeps.

Prints the daemon's own time on a CPU for the first poll and for the others (median, worst), that of the programs it runs, what
it takes between polls, and its resident memory. Exit 1 when a poll other than the first takes more than 100 ms. Needs root: it
lays the programs over Slurm's folders, in a mount namespace of its own.
"""
import copy
import ctypes
import http.server
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from serve_cost import resident_mib
from verdict_latency import free_port, wait_until_ready

LIMIT_MS = 100
INTERVAL_S = 30
NODES = 500
EVENTS = 20_000  # what the daemon keeps
FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "slurm" / "24.11"
COMMANDS = ("scontrol", "sacct", "sdiag")
CLONE_NEWNS = 0x00020000
OTHERS = ("procfs proc_connector process stdio stdout_tail wait network io cuda nccl nccl_ras nccl_dumps infiniband kmsg nvml dcgm "
          "job_mapping").split()
REST_PATH = "/slurm/v0.0.42"


class Cluster:
    """The jobs of each moment. A job is (id, state, submitted, started, ended)."""

    def __init__(self, jobs):
        self.share, self.next = max(1, jobs // 100), 100_000 + jobs
        now = int(time.time())
        self.jobs = [[100_000 + n, ("RUNNING", "PENDING", "TIMEOUT")[0 if n % 10 < 6 else 1 if n % 10 < 9 else 2],
                      now - 7200 - n, now - 3600 - n, now - 60 - n % 50] for n in range(jobs)]

    def go_on(self):
        now = int(time.time())
        gone = [n for n, job in enumerate(self.jobs) if job[1] == "TIMEOUT"][:self.share]
        for job in [job for job in self.jobs if job[1] == "RUNNING"][:self.share]:
            job[1], job[4] = "TIMEOUT", now
        for job in [job for job in self.jobs if job[1] == "PENDING"][:self.share]:
            job[1], job[3] = "RUNNING", now
        for n in gone:
            self.jobs[n] = [self.next, "PENDING", now, 0, 0]
            self.next += 1


class Text:
    def __init__(self):
        records = [line + "\n" for line in (FIXTURES / "jobs.txt").read_text().splitlines()]
        self.templates = {re.search(r"JobState=(\w+)", record)[1]: record for record in records if "ArrayJobId" not in record}
        self.node = (FIXTURES / "nodes.txt").read_text().splitlines()[0] + "\n"
        self.diagnostics = (FIXTURES / "diag.txt").read_text()

    def jobs(self, jobs):
        out = []
        for number, state, submitted, started, ended in jobs:
            text = self.templates[state]
            for name, value in (("JobId", number), ("SubmitTime", submitted), ("StartTime", started or "Unknown"),
                                ("EndTime", ended if state == "TIMEOUT" else "Unknown"), ("Restarts", 0)):
                text = re.sub(rf"\b{name}=\S+", f"{name}={value}", text, count=1)
            out.append(text)
        return "".join(out)

    def nodes(self):
        return "".join(re.sub(r"NodeName=\S+", f"NodeName=n{number}", self.node) for number in range(NODES))


class Json:
    def __init__(self):
        self.document = json.loads((FIXTURES / "jobs.json").read_text())
        self.templates = {job["job_state"][0]: job for job in self.document["jobs"]}
        self.node_document = json.loads((FIXTURES / "nodes.json").read_text())
        self.diagnostics = (FIXTURES / "diag.json").read_text()

    def jobs(self, jobs):
        out = []
        for number, state, submitted, started, ended in jobs:
            job = copy.copy(self.templates[state])
            job.update(job_id=number, restart_cnt=0)
            for name, value in (("submit_time", submitted), ("start_time", started), ("end_time", ended)):
                job[name] = {"set": value > 0, "infinite": False, "number": value}
            out.append(job)
        return json.dumps({**self.document, "jobs": out})

    def nodes(self):
        template = self.node_document["nodes"][0]
        return json.dumps({**self.node_document, "nodes": [{**template, "name": f"n{number}"} for number in range(NODES)]})


class Place:
    """Where a daemon finds its Slurm: a folder whose files are told. `told` is how often its jobs were."""

    def __init__(self, folder, shape, cluster):
        self.folder, self.shape, self.cluster = folder, shape, cluster
        self.told = 0
        (folder / "nodes").write_text(shape.nodes())
        (folder / "diagnostics").write_text(shape.diagnostics)
        self.prepare()

    def prepare(self):
        (self.folder / "jobs.next").write_text(self.shape.jobs(self.cluster.jobs))
        (self.folder / "jobs.next").rename(self.folder / "jobs")

    def enter(self, libc):
        """Between fork and exec of the daemon: the programs stand where Slurm's are looked for."""
        if libc.unshare(CLONE_NEWNS) != 0:
            os._exit(1)
        os.system("mount --make-rprivate /; mount -t tmpfs none /opt; mkdir -p /opt/slurm/bin;"
                  f"cp {self.folder}/bin/* /opt/slurm/bin;"
                  + "".join(f"test ! -e {there}/{command} || mount --bind {self.folder}/bin/{command} {there}/{command};"
                            for there in ("/usr/bin", "/usr/local/bin") for command in COMMANDS))

    def programs(self):
        (self.folder / "bin").mkdir()
        for name, script in (("scontrol", f'case "$*" in *node*) exec cat {self.folder}/nodes ;; *) echo >>{self.folder}/told;'
                                          f' exec cat {self.folder}/jobs ;; esac'),
                             ("sdiag", f"exec cat {self.folder}/diagnostics"), ("sacct", "echo 'JobIDRaw|JobID|State'")):
            (self.folder / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
            (self.folder / "bin" / name).chmod(0o755)

    def times_told(self):
        path = self.folder / "told"
        return self.told + (path.stat().st_size if path.exists() else 0)

    def serve(self):
        """slurmrestd's answers; the URL."""
        place = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                names = {"/jobs": "jobs", "/nodes": "nodes", "/diag": "diagnostics"}
                name = names.get(self.path.removeprefix(REST_PATH))
                body = (place.folder / name).read_bytes() if name else b'{"jobs": []}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                place.told += name == "jobs"

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}{REST_PATH}"


def earlier_events(path):
    """A file as full as the daemon lets it become, of jobs that ended yesterday."""
    path.parent.mkdir(parents=True)
    with open(path, "w", encoding="ascii") as file:
        for number in range(1, EVENTS + 1):
            at = int(time.time()) - 100_000 + number
            file.write(json.dumps({"number": number, "wall_ns": at * 10**9, "job_id": str(number), "kind": "completed", "reason": "",
                                   "old": "RUNNING", "new": "COMPLETED", "source": "scontrol",
                                   "facts": {"name": "train 7b", "user": "alice", "partition": "gpu", "nodes": "n[1-2]",
                                             "submit_line": "sbatch " + "-" * 80, "work_dir": "/home/alice/run"}}) + "\n")


def cpu_ms(pid):
    """All its threads', those that have ended included."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e6


def children_ms(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) * 1000 / os.sysconf("SC_CLK_TCK")


def sleep_until(moment):
    time.sleep(max(0.0, moment - time.monotonic()))


def measure(binary, name, shape, polls, jobs, delay, results):
    time.sleep(delay)
    libc = ctypes.CDLL(None, use_errno=True)
    with tempfile.TemporaryDirectory(prefix="rankscope_poll_") as where:
        folder = Path(where)
        place = Place(folder, shape, Cluster(jobs))
        place.programs()
        url = place.serve() if name == "JSON" else ""
        earlier_events(folder / "state" / "slurm-events.jsonl")
        (folder / "config.yaml").write_text(
            "sources: {" + ", ".join(f"{other}: {{enabled: false}}" for other in OTHERS) + "}\n"
            f'slurm: {{role: controller, restd_url: "{url}"}}\nebpf: {{mode: "off"}}\n')
        port = free_port()
        with open(folder / "log", "wb") as log:
            daemon = subprocess.Popen(
                [binary, "serve", "--config.file", folder / "config.yaml", "--web.listen-address", f"127.0.0.1:{port}",
                 "--state.dir", folder / "state", "--run.socket", folder / "run.sock"], stderr=log, stdout=log,
                preexec_fn=lambda: place.enter(libc))
        try:
            wait_until_ready(port, daemon)
            pid, found = daemon.pid, {"poll": [], "programs": [], "idle": [], "mib": []}
            while place.times_told() == 0:
                time.sleep(0.01)
            told_at = time.monotonic()
            sleep_until(told_at + 10)
            found["first"] = cpu_ms(pid)
            for poll in range(1, polls + 1):
                found["mib"].append(resident_mib(pid))
                place.cluster.go_on()
                place.prepare()
                between = cpu_ms(pid)
                sleep_until(told_at + INTERVAL_S - 3)
                before, programs = cpu_ms(pid), children_ms(pid)
                found["idle"].append((before - between) / (INTERVAL_S - 13))
                while place.times_told() == poll:
                    time.sleep(0.01)
                told_at = time.monotonic()
                sleep_until(told_at + 10)
                found["poll"].append(cpu_ms(pid) - before)
                found["programs"].append(children_ms(pid) - programs)
            found["mib"].append(resident_mib(pid))
            results[name] = found
        finally:
            daemon.terminate()
            daemon.wait()


def main():
    binary = os.path.abspath(sys.argv[1])
    polls = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else 5000
    results = {}
    threads = [threading.Thread(target=measure, args=(binary, name, shape, polls, jobs, delay, results))
               for name, shape, delay in (("text", Text(), 0), ("JSON", Json(), INTERVAL_S / 2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{'':6} {'first':>7} {'median':>7} {'worst':>7} {'programs':>9} {'idle/s':>7} ms {'first':>7} {'last':>7} MiB")
    for name, found in results.items():
        print(f"{name:6} {found['first']:7.0f} {statistics.median(found['poll']):7.1f} {max(found['poll']):7.1f} "
              f"{statistics.median(found['programs']):9.0f} {statistics.median(found['idle']):7.2f}    "
              f"{found['mib'][0]:7.1f} {found['mib'][-1]:7.1f}")
    sys.exit(len(results) < 2 or any(max(found["poll"]) > LIMIT_MS for found in results.values()))


if __name__ == "__main__":
    main()
