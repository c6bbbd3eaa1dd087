# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of `rankscope run` share: a folder, an environment without a daemon, the command line."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BINARY = os.path.abspath(os.environ.get("RANKSCOPE_BINARY", "build/rankscope"))
PATIENCE_S = 60  # a bound for waits, not a delay


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("timed out waiting for " + what)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


# A command that counts the signals it gets, says when it is ready and ends on a file's appearance.
COUNTER = r"""
import os, signal, sys, time
seen = []
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, lambda n, frame: seen.append(n))
print("ready", os.getpid(), flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
print("seen", sorted(seen), flush=True)
"""


class WrapperTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rankscope-run-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("SLURM_", "RANKSCOPE_"))}
        self.environment["RANKSCOPE_SOCKET"] = self.path("no-daemon.sock")
        self.environment["XDG_STATE_HOME"] = self.path("state")

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def argv(self, *command, flags=()):
        return [BINARY, "run", "--dir", self.path("r"), *flags, "--", *command]

    def run_it(self, *command, flags=(), **keywords):
        keywords.setdefault("stdin", subprocess.DEVNULL)
        if "input" in keywords:
            del keywords["stdin"]
        keywords.setdefault("env", self.environment)
        return subprocess.run(self.argv(*command, flags=flags), cwd=self.folder, capture_output=True,
                              timeout=PATIENCE_S * 2, **keywords)

    def start(self, *command, flags=(), **keywords):
        keywords.setdefault("stdin", subprocess.DEVNULL)
        keywords.setdefault("env", self.environment)
        process = subprocess.Popen(self.argv(*command, flags=flags), cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)
        self.addCleanup(self.stop, process)
        return process

    def stop(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def log(self):
        return read(self.path("r", "log"))


def main():
    if not os.access(BINARY, os.X_OK):
        print("skipped: no binary", BINARY)
        sys.exit(77)
    unittest.main(verbosity=2)
