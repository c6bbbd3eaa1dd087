# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The query of a citation returns the number that is quoted: evaluated by a real Prometheus at the end of the evidence, within
5 % or one scrape interval.

Jobs on cards of the stand-in for the driver's library: one whose rank enters no more collectives, one with a slow rank, one that
is refused memory and goes on, one that is stopped.

Usage: citations_test.py RANKSCOPE STUB_TRAINER STUB_LIBRARIES FAKE_NVML
"""
import contextlib
import datetime
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import time

from board_node import Cards, pids_of, running
from daemon_test import Daemon
from support import Prometheus, fetch, need, wait_for

INTERVAL = 2  # seconds between scrapes; the daemon's own numbers are a second old at most
BASE = "ranks 2\nsteps 1000000\nstep_ms 50\nprint 10\nwatchdog 1\n"
JOBS = {
    "leaves-1": BASE + "rank 1 leave at 200\n",
    "late-1": BASE + "rank 1 sleep 25\n",
    "refused-1": BASE + "rank 0 allocate 100000000000 at 50 caught\n",
    "stopped-1": BASE,
}
# What must have been compared, with the source that it needs: a test of nothing proves nothing.
WANTED = {
    "rankscope_nccl_last_enqueue_timestamp_seconds": "nccl",
    "rankscope_nccl_last_advance_timestamp_seconds": "nccl",
    "rankscope_rank_oldest_collective_seconds": "nccl",
    "rankscope_cuda_last_launch_timestamp_seconds": "cuda",
    "rankscope_cuda_sync_seconds_total": "cuda",
    "rankscope_job_suspended_seconds_total": "procfs",
    "rankscope_gpu_engine_active_ratio": "nvml",
}
ENOUGH = 150  # seconds until all of them are cited


def seconds_of(stamp):
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


class Citations:
    """Citations of the daemon's verdicts, compared with what Prometheus says; each query once in a state of the verdict."""

    def __init__(self, daemon, prometheus):
        self._daemon, self._prometheus = daemon, prometheus
        self.failures, self.compared = {}, {}

    def look(self):
        verdicts = json.loads(fetch(self._daemon.url + "/verdict"))["verdicts"]
        time.sleep(INTERVAL + 1)  # the scrape behind the newest evidence
        for verdict in verdicts:
            if verdict["job_id"] not in JOBS:  # of a test beside this one
                continue
            for shown in verdict["shows"]:
                query = shown.get("cite", {}).get("promql")
                if query and shown.get("observed") is not None:
                    self._compare(verdict, shown, query)

    def _compare(self, verdict, shown, query):
        key = (verdict["job_id"], re.sub(r"\b\d[\d.]*(s\b)?", "N", query))
        where = f"{verdict['job_id']} {verdict['code']}: {shown['text']}\n    {query}\n    at {shown['end']}"
        try:
            found = self._prometheus.query(query, at=seconds_of(shown["end"]))
            known = f'rankscope_job_running{{job_id="{verdict["job_id"]}"}}'
            if not found and not self._prometheus.query(known, at=seconds_of(shown["end"])):
                return  # Prometheus had not scraped the job yet
            if not found:  # its first number was scraped after that
                found = self._prometheus.query(query, at=seconds_of(shown["end"]) + INTERVAL + 1)
        except OSError as error:
            self.failures[key] = f"{where}: {error}: {getattr(error, 'read', lambda: b'')().decode()}"
            return
        if len(found) != 1:
            self.failures[key] = f"{where} returns {len(found)} series, not one number"
            return
        value, observed = float(found[0][1]), shown["observed"]
        if abs(value - observed) <= tolerance(shown):
            self.compared[key] = query
            self.failures.pop(key, None)
        elif key not in self.compared:
            self.failures[key] = f"{where} returns {value}, and {observed} {shown.get('unit', '')} is quoted"

    def names(self):
        return {name for query in self.compared.values() for name in re.findall(r"rankscope_\w+", query)}


def tolerance(shown):
    observed = abs(shown["observed"])
    if shown.get("unit") == "s":
        return max(0.05 * observed, INTERVAL + 1)
    span = seconds_of(shown["end"]) - seconds_of(shown["begin"])
    share = INTERVAL / span if span > INTERVAL else 0
    return max(0.05 * observed, share if shown.get("unit") != "By" else 0, 1e-9)


def main():
    binary, stub_trainer, stubs, fake_nvml = sys.argv[1:5]
    need("prometheus")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        cards = Cards(folder)
        os.environ.update({"LD_LIBRARY_PATH": fake_nvml, "FAKE_NVML_SCRIPT": str(cards.path)})
        daemon = stack.enter_context(contextlib.closing(Daemon(binary, folder, "--ebpf.budget=50%", "--metrics.max-series", "16000")))
        prometheus = stack.enter_context(contextlib.closing(Prometheus(folder, daemon.address, interval=f"{INTERVAL}s")))
        plain = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
        wrappers = {}
        for job, text in JOBS.items():
            script = pathlib.Path(folder) / job
            script.write_text(text, encoding="utf-8")
            wrappers[job] = stack.enter_context(running(
                [binary, "run", "--socket", daemon.socket, "--dir", f"{folder}/runs", "--job-id", job, "--", stub_trainer, str(script)],
                {**plain, "STUB_GPU_LIBRARIES": stubs}))
        cards.say(wait_for("all ranks", lambda: pids_of(daemon, "leaves-1")))
        wait_for("its ranks", lambda: pids_of(daemon, "stopped-1"))
        wait_for("a scrape", lambda: prometheus.value("up") == "1")
        up = {source for source in set(WANTED.values()) if prometheus.value(f'rankscope_source_up{{source="{source}"}}') == "1"}
        wanted = {name for name, source in WANTED.items() if source in up}
        stopped = below(wrappers["stopped-1"].pid)
        stack.callback(send, stopped, signal.SIGCONT)
        send(stopped, signal.SIGSTOP)
        citations = Citations(daemon, prometheus)
        end = time.monotonic() + ENOUGH
        while time.monotonic() < end and not wanted <= citations.names():
            citations.look()
        for key, query in sorted(citations.compared.items()):
            print("the same:", key[0], query)
        assert not citations.failures, "\n" + "\n".join(citations.failures.values())
        missing = wanted - citations.names()
        assert not missing, f"nothing cites {missing}"
    print("ok")


def below(pid):
    """The processes that `pid` has started, and theirs."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                found += [child, *below(child)]
    return found


def send(processes, what):
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)


if __name__ == "__main__":
    main()
