# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What the attacks share: a daemon of root, a victim with a job, and an attacker with another uid.

A test is one attack, and its docstring is its row of the table: who does what, and what must not come of it. The victim is
uid 61001, the attacker uid 61002; neither has a name, a group or a right. Nothing sleeps for a fixed time: what must happen is
waited for, and what must not happen is looked for after something that comes later in the daemon's own order, mostly a tick.
"""
import functools
import inspect
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "serve"))
from serve_test import BINARY, PATIENCE, ServeTest, wait_for  # noqa: E402

VICTIM, ATTACKER = 61001, 61002


def become(uid):
    """For preexec_fn: gives up everything of root's."""
    def change():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    return change


class HostileTest(ServeTest):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("another user's processes: needs root")
        super().setUp()
        os.chmod(self.folder, 0o755)
        os.chmod(Path(self.folder) / "train.py", 0o644)
        # The checkout may lie where only root may go.
        self.program = Path(self.folder) / "rankscope"
        shutil.copy(BINARY, self.program)
        self.homes = {}
        for uid in (VICTIM, ATTACKER):
            home = Path(self.folder) / f"home-{uid}"
            home.mkdir(mode=0o700)
            os.chown(home, uid, uid)
            self.homes[uid] = home

    def home(self, uid):
        return self.homes[uid]

    def start_as(self, uid, *command, environment=None, **options):
        """A process of this user's, in his home; it is killed when the test ends."""
        options.setdefault("stdout", subprocess.DEVNULL)
        options.setdefault("stderr", subprocess.DEVNULL)
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen([str(part) for part in command], cwd=self.home(uid), preexec_fn=become(uid),
                                   env={**self.environment, "HOME": str(self.home(uid)), **(environment or {})}, **options)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def run_as(self, uid, *command, **options):
        """Waits for the end of it; returns the process."""
        process = self.start_as(uid, *command, **options)
        process.wait(PATIENCE)
        return process

    def python_as(self, uid, script, *arguments, **options):
        """`script` is the text of a Python program."""
        return self.start_as(uid, "/usr/bin/python3", "-c", script, *arguments, **options)

    def wrapped_as(self, uid, daemon, job, *command, environment=None, **options):
        """`rankscope run` by this user; `job` None: an id that `run` makes itself."""
        flags = ["--job-id", job] if job else []
        return self.start_as(uid, self.program, "run", "--socket", daemon.socket, *flags, "--dir", self.home(uid) / (job or "run"), "--",
                             *command, environment=environment, **options)

    def train_as(self, uid, daemon, job, end="raise"):
        """A run that prints 20 steps, waits for let_go(), prints 20 more, and ends as told."""
        return self.wrapped_as(uid, daemon, job, "/usr/bin/python3", Path(self.folder) / "train.py", self.go, end)

    def runs(self, daemon):
        """Verdicts of wrapped runs, which this daemon alone was told of: it sees other jobs of the machine as well."""
        return {job: verdict for job, verdict in daemon.verdicts().items() if job.startswith("run-")}

    def wait_for_ticks(self, daemon, count=2, step=None):
        """Until the daemon has judged so many times from now on: what came before was taken in by then."""
        def last():
            return daemon.metric("rankscope_last_tick_timestamp_seconds")
        for _ in range(count):
            before = wait_for("a page of metrics", last)
            wait_for("the next tick", lambda before=before: (last() or before) > before)
            if step:
                step()

    def secret_file(self, path, text, uid=0, mode=0o600):
        path = Path(path)
        path.write_text(text)
        os.chown(path, uid, uid)
        os.chmod(path, mode)
        return path

    def everything_served(self, daemon):
        """All that an unprivileged client can read of the daemon, as one text."""
        texts = [daemon.get(target)[1] for target in ("/metrics", "/verdict", "/events", "/")]
        for job in daemon.verdicts():
            texts += [daemon.get(f"/{page}?job_id={job}")[1] for page in ("verdict", "evidence", "events")]
        return "\n".join(texts)


def together(case):
    """For attacks that do not meet: all of a class begin beside one daemon, and each test then looks at what came of its own.

    A test is a generator that yields once, between the two. `self` is the one test case that they share; its begin() is called
    before the first of them, and its settle() when all have begun.
    """
    attacks = {name: function for name, function in vars(case).items() if name.startswith("test") and inspect.isgeneratorfunction(function)}
    set_up = case.setUp
    begun = {}

    def set_up_class(cls):
        shared = cls(next(iter(attacks)))
        cls.addClassCleanup(shared.doCleanups)
        set_up(shared)
        shared.begin()
        for name, function in attacks.items():
            try:
                begun[name] = function(shared)
                next(begun[name])
            except Exception as error:  # told by the test itself
                begun[name] = error
        shared.settle()

    def look(name, function):
        @functools.wraps(function)
        def test(_self):
            if isinstance(begun[name], Exception):
                raise begun[name]
            for _ in begun[name]:
                pass
        return test

    case.setUpClass = classmethod(set_up_class)
    case.setUp = lambda self: None
    for name, function in attacks.items():
        setattr(case, name, look(name, function))
    return case


def run_tests():
    outcome = unittest.main(exit=False, verbosity=2, module="__main__").result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
