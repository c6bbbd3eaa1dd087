# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A daemon that comes when a job has run for some time reaches the verdict of one that was there, or says what it cannot know."""
import os
import pty
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bpf_test import BpfTest  # noqa: E402
from serve_test import PATIENCE, Daemon, wait_for  # noqa: E402

PYTHON = "/usr/bin/python3"
WITHIN = 90  # seconds after the late daemon's start

# Prints steps, a hundred at once and then one each 50 ms, until it is told what to do next.
TRAINER = r"""
import os, sys, time
def sign(name):
    return os.path.exists(os.environ["SIGNS"] + "/" + name)
step = 0
while not sign("next"):
    step += 1
    print(f"step {step} loss {0.5 + 3.0 / (1 + 0.05 * step) + 0.01 * ((step * 7919) % 13 - 6):.4f} lr 0.05", flush=True)
    if step > 100:
        time.sleep(0.05)
what = os.environ["THEN"]
if what == "raise":
    table = {}
    table["missing_column"]
if what == "hang":
    print("waiting", file=sys.stderr, flush=True)
    while not sign("end"):
        time.sleep(0.5)
"""


class LateTest(BpfTest):
    CONFIG = ""

    def setUp(self):
        super().setUp()
        self.config = Path(self.folder) / "config.yaml"
        self.config.write_text(self.CONFIG + "families: {collective_hang: {hang_floor: 20s}}\n")

    def there(self, name):
        """A daemon with a memory of its own: two of them watch the same job."""
        folder = Path(self.folder) / name
        folder.mkdir()
        daemon = Daemon(folder, "--config", str(self.config))
        self.addCleanup(daemon.stop)
        return daemon

    def train(self, then, out, err=subprocess.STDOUT, rank="0", world="1"):
        process = subprocess.Popen([PYTHON, "-u", "-c", TRAINER], stdout=out, stderr=err, cwd=self.folder,
                                   env={**self.environment, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "THEN": then,
                                        "SIGNS": self.folder})
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def give(self, sign):
        (Path(self.folder) / sign).touch()

    def output(self, name="out"):
        return self.enterContext(open(Path(self.folder) / name, "wb"))

    def has_run(self, name="out", steps=200):
        wait_for("steps", lambda: (Path(self.folder) / name).read_bytes().count(b"step ") >= steps)

    def answer(self, daemon, job):
        verdict = daemon.verdicts().get(job)
        return verdict and (verdict["code"], verdict["sub"], verdict["exception_type"], verdict["ranks"])

    def agree(self, there, late, job, code, begun):
        """Both say `code`, the late one in time; their verdicts."""
        wait_for(f"{code} of the first: {self.answer(there, job)}", lambda: (self.answer(there, job) or [""])[0] == code)
        wait_for(f"{code} of the late one: {self.answer(late, job)}", lambda: self.answer(late, job) == self.answer(there, job))
        self.assertLess(time.monotonic() - begun, WITHIN)
        return there.verdicts()[job], late.verdicts()[job]

    def notes(self, verdict):
        return "\n".join(verdict["data_quality"]["notes"])


class CasesTest(LateTest):
    """The tests of both sources."""

    def test_a_job_that_trains(self):
        there = self.there("there")
        process = self.train("raise", self.output())
        self.has_run()
        begun = time.monotonic()
        late = self.there("late")
        job = self.job_of(late, process.pid)
        self.agree(there, late, job, "G1", begun)
        wait_for("what was read", lambda: "it was read from its files" in self.notes(late.verdicts()[job]))
        self.assertEqual(late.verdicts()[job]["data_quality"]["lost_bytes"], 0)
        # The log was read at once, and says nothing of how long a step takes; what came since does.
        wait_for("the time of a step", lambda: late.metric(f'rankscope_training_step_seconds{{job_id="{job}"}}') is not None)
        wait_for("more of them", lambda: 0.03 < late.metric(f'rankscope_training_step_seconds{{job_id="{job}"}}') < 2)
        # Each line once, whether it was read or heard.
        self.give("next")
        process.wait(PATIENCE)
        first, second = there.verdict(job), late.verdict(job)
        self.assertEqual((first["code"], first["exception_type"], first["ranks"]), ("X1", "KeyError", [0]))
        self.assertEqual([second[key] for key in ("code", "exception_type", "ranks", "confidence")],
                         [first[key] for key in ("code", "exception_type", "ranks", "confidence")])
        lines = (Path(self.folder) / "out").read_bytes().count(b"\n")
        self.assertEqual((there.lines(job), late.lines(job)), (lines, lines))

    def test_a_hang_that_began_before(self):
        there = self.there("there")
        process = self.train("hang", self.output())
        self.has_run()
        job = self.job_of(there, process.pid)
        wait_for("health", lambda: (self.answer(there, job) or [""])[0] == "G1")
        self.give("next")
        wait_for("the first daemon's doubt", lambda: (self.answer(there, job) or [""])[0] not in ("", "G1"))
        begun = time.monotonic()
        late = self.there("late")
        wait_for("its text", lambda: late.lines(job) > 100)
        wait_for("the same of the late one", lambda: (self.answer(late, job) or [""])[0] == self.answer(there, job)[0])
        self.assertLess(time.monotonic() - begun, WITHIN)
        # A log that was read at once is no burst that a silence follows: nothing is said to be slow or to hang by that.
        self.assertEqual(self.answer(late, job)[0], "U0")
        self.give("end")

    def test_ranks_that_share_a_file(self):
        out = self.output()
        ranks = [self.train("raise", out, rank=str(rank), world="2") for rank in (0, 1)]
        self.has_run(steps=400)
        late = self.there("late")
        job = self.job_of(late, ranks[0].pid)
        wait_for("its text", lambda: late.lines(job) >= 400)
        self.give("next")
        for rank in ranks:
            rank.wait(PATIENCE)
        verdict = late.verdict(job)
        self.assertEqual((verdict["code"], verdict["exception_type"]), ("X1", "KeyError"), verdict)

    def test_what_went_to_a_pipe_is_said_to_be_unknown(self):
        read, write = os.pipe()
        reader = subprocess.Popen(["cat"], stdin=read, stdout=self.output())
        os.close(read)
        process = self.train("raise", write)
        os.close(write)
        self.has_run()
        late = self.there("late")
        job = self.job_of(late, process.pid)
        self.give("next")
        process.wait(PATIENCE)
        reader.wait(PATIENCE)
        verdict = late.verdict(job)
        self.assertIn("nor what was printed", self.notes(verdict))
        self.assertNotIn("read from its files", self.notes(verdict))
        self.assertNotEqual(verdict["code"], "A1", verdict)  # that it had not trained is not known

    def test_a_file_of_an_earlier_attempt_is_not_this_ones(self):
        path = Path(self.folder) / "out"
        path.write_bytes(b"Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\nRuntimeError: of before\n")
        old = time.monotonic() + 14  # made within 10 s of the job's start it would count as made for it
        late = None
        time.sleep(max(0, old - time.monotonic()))
        process = self.train("raise", self.enterContext(open(path, "ab")))
        self.has_run()
        late = self.there("late")
        job = self.job_of(late, process.pid)
        wait_for("the end of its text", lambda: late.lines(job) > 10)
        self.give("next")
        process.wait(PATIENCE)
        verdict = late.verdict(job)
        self.assertEqual((verdict["code"], verdict["exception_type"]), ("X1", "KeyError"), verdict)
        self.assertIn("nor what was printed", self.notes(verdict))


class Heard(CasesTest):
    def there(self, name):
        daemon = super().there(name)
        wait_for("the source", lambda: self.up(daemon, "stdio"))
        return daemon

    def test_a_terminal_cannot_be_read_back(self):
        master, terminal = pty.openpty()
        process = self.train("hang", terminal)
        os.close(terminal)
        os.read(master, 1 << 16)
        late = self.there("late")
        job = self.job_of(late, process.pid)
        wait_for("what is not known", lambda: "nor what was printed" in self.notes(late.verdicts().get(job) or
                                                                                  {"data_quality": {"notes": []}}))
        process.kill()
        os.close(master)


class Tailed(CasesTest):
    """A node whose kernel is not asked reads the files where they lie."""
    CONFIG = "sources: {stdio: {enabled: false}}\n"

    def there(self, name):
        daemon = super().there(name)
        wait_for("the source", lambda: self.up(daemon, "stdout_tail"))
        return daemon


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
