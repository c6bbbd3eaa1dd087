# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A real run breaks under a real daemon, and a real Prometheus sees its verdict flip.

Usage: daemon_test.py RANKSCOPE SAMPLE_TRAINER
"""
import contextlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from support import Prometheus, fetch, need, wait_for

JOB = "flip-1"
INFO = f'rankscope_verdict_info{{job_id="{JOB}"}}'
VERDICT = f'rankscope_verdict{{job_id="{JOB}"}}'


class Daemon:
    """`rankscope serve` on a free port, with state and socket below `folder`."""

    def __init__(self, binary, folder, *arguments):
        self.socket = f"{folder}/run.sock"
        self._log = Path(folder) / "serve.log"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [binary, "serve", "--web.listen-address", "127.0.0.1:0", "--state.dir", f"{folder}/state",
                 "--run.socket", self.socket, *arguments], stdout=log, stderr=log)
        self.address = wait_for("the daemon's address", self._find_address)
        self.url = f"http://{self.address}"

    def _find_address(self):
        found = re.search(r"msg=listening address=(\S+)", self._log.read_text())
        return found and found[1]

    def verdict(self):
        for verdict in json.loads(fetch(self.url + "/verdict"))["verdicts"]:
            if verdict["job_id"] == JOB:
                return verdict
        return None

    def close(self):
        self._process.terminate()
        self._process.wait(20)


def agreed(daemon, prometheus):
    """The family that Prometheus and /verdict both name, read around the same published tick; None while they differ."""
    before = daemon.verdict()
    named = [(labels["family"], labels["state"]) for labels, _ in prometheus.query(INFO)]
    after = daemon.verdict()
    if not before or before["revision"] != after["revision"] or named != [(after["family"], after["state"])]:
        return None
    [(family, state)] = named
    confidence = prometheus.value(f'rankscope_verdict_confidence_ratio{{job_id="{JOB}",family="{family}"}}')
    ones = [labels["family"] for labels, value in prometheus.query(VERDICT) if value == "1"]
    # A scrape between the queries may have brought another family.
    if confidence is None or float(confidence) != after["confidence"] or ones != ([] if state == "final" else [family]):
        return None
    return family


def main():
    binary, trainer = sys.argv[1:3]
    need("prometheus")
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Daemon(binary, folder)) as daemon, \
            contextlib.closing(Prometheus(folder, daemon.address)) as prometheus:
        wait_for("the first scrape", lambda: prometheus.value('up{job="rankscope"}') == "1")
        assert prometheus.query(INFO) == [] == prometheus.query(VERDICT)
        # The daemon's own count says which format Prometheus chose.
        served = 'rankscope_http_scrapes_total{format="%s"}'
        wait_for("scrapes by OpenMetrics", lambda: int(prometheus.value(served % "openmetrics") or 0) > 3)
        assert prometheus.value(served % "text") == "0" == prometheus.value(served % "protobuf")
        run = subprocess.Popen(
            [binary, "run", "--socket", daemon.socket, "--dir", f"{folder}/runs", "--job-id", JOB, "--", trainer,
             "--ranks", "2", "--steps", "200", "--step-ms", "50", "--fault", "kill:rank=1,step=120"],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen = wait_for("a verdict of the living run", lambda: agreed(daemon, prometheus))
        assert seen in ("undetermined", "healthy"), seen
        assert not [labels for labels, value in prometheus.query(VERDICT) if labels["family"] == "signal_kill" and value != "0"]
        # The numbers of the run are there while it lives.
        wait_for("the loss", lambda: prometheus.value(f'rankscope_training_loss{{job_id="{JOB}"}}'))
        wait_for("both ranks", lambda: len(prometheus.query(f'rankscope_rank_alive{{job_id="{JOB}"}} == 1')) == 2)

        assert run.wait(60) == 1
        wait_for("the flip", lambda: agreed(daemon, prometheus) == "signal_kill")
        verdict = daemon.verdict()
        assert verdict["code"] == "A2" and verdict["signal"] == "SIGKILL" and verdict["ranks"] == [1], verdict
        wait_for("the final state", lambda: daemon.verdict()["state"] == "final" and agreed(daemon, prometheus))
    print("ok")


if __name__ == "__main__":
    main()
