# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The daemon is away, or stopped, over fifty jobs that go on: no verdict of theirs changes, and nothing of theirs is alerted."""
import os
import re
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from serve_test import ServeTest, wait_for

JOBS = 50
OUTAGE = 15  # seconds, at least: from here on gaps of the daemon's own used to become faults of jobs
AFTER = 20  # lines of each job that the new daemon is watched for

# Prints steps, a hundred at once and then one each INTERVAL, until it is told to end.
TRAINER = r"""
import os, time
step, end = 0, os.environ["END"]
while not os.path.exists(end):
    step += 1
    print(f"step {step} loss {0.5 + 3.0 / (1 + 0.05 * step) + 0.01 * ((step * 7919) % 13 - 6):.4f} lr 0.05", flush=True)
    if step > 100:
        time.sleep(float(os.environ["INTERVAL"]))
"""


class RestartOverJobs(ServeTest):
    def setUp(self):
        super().setUp()
        self.end = str(Path(self.folder) / "end")
        self.first = 770000 + os.getpid() % 100000 * 100
        self.jobs = [str(self.first + number) for number in range(JOBS)]
        for number, job in enumerate(self.jobs):
            with open(self.out(job), "wb") as out:
                process = subprocess.Popen(
                    [sys.executable, "-S", "-E", "-c", TRAINER], stdout=out, stderr=subprocess.STDOUT, cwd=self.folder,
                    env={**self.environment, "SLURM_JOB_ID": job, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "END": self.end,
                         "INTERVAL": str(0.3 + 0.02 * number)})
            self.addCleanup(lambda process=process: process.poll() is None and (process.kill(), process.wait()))

    def out(self, job):
        return Path(self.folder) / f"{job}.out"

    def printed(self):
        return {job: self.out(job).read_bytes().count(b"\n") for job in self.jobs}

    def seen(self, daemon):
        found = daemon.verdicts()
        return {job: found[job] for job in self.jobs if job in found}

    def codes(self, daemon):
        return {job: verdict["code"] for job, verdict in self.seen(daemon).items()}

    def alerted(self, daemon):
        """What the rules of alerts/ would be called for, of these jobs; and warnings."""
        lines = [line for line in daemon.get("/metrics")[1].splitlines() if re.match(
            r'rankscope_(verdict_info\{.*severity="(critical|warning)"|warning_active\{).*\} 1$', line)]
        return [line for line in lines if any(f'job_id="{job}"' in line for job in self.jobs)]

    def stay_well(self, daemon, since):
        """Every job is called healthy at each look, until the daemon has seen AFTER lines of each that came after `since`."""
        while True:
            codes = self.codes(daemon)
            self.assertEqual({job: code for job, code in codes.items() if code != "G1"}, {})
            self.assertEqual(self.alerted(daemon), [])
            now = self.printed()
            if all(now[job] >= since[job] + AFTER and daemon.lines(job) >= since[job] + AFTER for job in self.jobs):
                self.assertEqual(len(codes), JOBS)
                return
            time.sleep(0.5)

    def unchanged(self, daemon, before):
        after = self.seen(daemon)
        for job in self.jobs:
            self.assertEqual(after[job].get("history", []), before[job].get("history", []), job)
            self.assertEqual((after[job]["code"], after[job]["sub"], after[job]["ranks"], after[job]["attempt"]),
                             (before[job]["code"], before[job]["sub"], before[job]["ranks"], before[job]["attempt"]), job)
            notes = " ".join(after[job]["data_quality"]["notes"])
            self.assertRegex(notes, r"rankscope was (not running|stopped)|not observed", job)

    def well(self, daemon):
        wait_for("health of all", lambda: list(self.codes(daemon).values()).count("G1") == JOBS)
        return self.seen(daemon)

    def until_gap_is_long(self, began):
        before = self.printed()
        wait_for("the jobs to go on meanwhile", lambda: time.monotonic() - began >= OUTAGE and all(
            lines > before[job] for job, lines in self.printed().items()))

    def test_a_daemon_that_was_away_and_one_that_was_stopped(self):
        daemon = self.daemon()
        before = self.well(daemon)
        with self.subTest("killed"):
            daemon.kill()
            self.until_gap_is_long(time.monotonic())
            since = self.printed()
            daemon = self.daemon()
            self.stay_well(daemon, since)
            self.unchanged(daemon, before)
        with self.subTest("stopped"):
            daemon.process.send_signal(signal.SIGSTOP)
            self.until_gap_is_long(time.monotonic())
            daemon.process.send_signal(signal.SIGCONT)
            self.stay_well(daemon, self.printed())
            self.unchanged(daemon, before)
        Path(self.end).touch()


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    sys.exit(0 if outcome.wasSuccessful() else 1)
