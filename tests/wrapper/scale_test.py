#!/usr/bin/python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Text by the gigabyte: bounded memory, nobody held up, every lost byte counted. usage: scale_test.py [TEST...]"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from wrapper_case import BINARY, main

PATIENCE_S = 240  # a bound for waits, not a measure
MEMORY_BYTES = 64 << 20

TRACEBACK = (b"Traceback (most recent call last):\n"
             b"  File \"/job/train.py\", line 9, in <module>\n"
             b"    main()\n"
             b"KeyError: 'labels'\n")


class ScaleTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rankscope-scale-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def judge(self, *command, feed=None):
        """Runs it; returns its output, having checked its memory. `feed` writes to its standard input."""
        process = subprocess.Popen([BINARY, *command], cwd=self.folder, stdout=subprocess.PIPE,
                                   stdin=subprocess.PIPE if feed else subprocess.DEVNULL)
        if feed:
            feed(process.stdin)
            process.stdin.close()
        output = process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertLess(usage.ru_maxrss << 10, MEMORY_BYTES)
        return output

    def log_with_a_hole(self):
        """Ten gigabytes, nearly all of them NUL: what a crashed node's file system leaves."""
        with open(self.path("log"), "wb") as log:
            for step in range(100):
                log.write(b"step %d loss %.4f lr 0.001\n" % (step, 3 - step * 0.02))
            log.seek(10 * 1000**3)
            log.write(TRACEBACK)
        return self.path("log")

    def test_ten_gigabytes_with_a_hole(self):
        log = self.log_with_a_hole()
        verdict = json.loads(self.judge("classify", log))
        self.assertEqual((verdict["code"], verdict["exception_type"]), ("X1", "KeyError"))
        cited = next(shown["cite"] for shown in verdict["shows"] if shown["signal"] == "exception")
        with open(log, "rb") as file:
            file.seek(cited["offset"])
            self.assertTrue(file.read().startswith(b"KeyError: 'labels'"))
        self.assertEqual(len(self.judge("progress", log).splitlines()), 101)

    def test_a_line_of_a_gigabyte(self):
        def feed(stdin):
            block = b"\r50%| |" + b"x" * (1 << 20)
            for _ in range(500):
                stdin.write(block)
            for _ in range(500):
                stdin.write(b"y" * (1 << 20))
            stdin.write(b"\n" + TRACEBACK)

        verdict = json.loads(self.judge("classify", "-", feed=feed))
        self.assertEqual(verdict["exception_type"], "KeyError")

    def test_a_flood_through_run(self):
        # Faster than any reader of text: the command is not held up, the log is whole, what was not read is counted,
        # and the end of the run is read all the same.
        gigabyte = 1000**3
        script = (f"import os, sys\n"
                  f"block = b''.join(b'step %d loss %.4f lr 0.001\\n' % (i, 3 - i * 1e-4) for i in range(20000))\n"
                  f"left = {gigabyte}\n"
                  f"while left > 0: left -= os.write(1, block)\n"
                  f"raise KeyError('labels')\n")
        with open(os.devnull, "wb") as null:
            done = subprocess.run([BINARY, "run", "--dir", self.path("r"), "--socket", "", "--verdict", "none", "--",
                                   sys.executable, "-c", script], cwd=self.folder, stdout=null, stderr=null,
                                  timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 1)
        with open(self.path("r", "verdict.json"), encoding="utf-8") as file:
            verdict = json.load(file)
        self.assertEqual(verdict["exception_type"], "KeyError")
        size = os.path.getsize(self.path("r", "log"))
        self.assertGreaterEqual(size, gigabyte)
        lost = verdict["data_quality"]["lost_bytes"]
        self.assertGreaterEqual(lost, 0)
        self.assertLess(lost, size)
        kept = sum(entry.stat().st_size for entry in os.scandir(self.path("r", "recording")))
        self.assertLess(kept, 70 << 20)  # the budget of a job's recording


if __name__ == "__main__":
    main()
