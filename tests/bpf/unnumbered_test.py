# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Programs without a launcher: nothing tells their rank, their launches show which process it is."""
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import recording  # noqa: E402
from calls_test import RANK, SIGNALS, CallsTest  # noqa: E402
from serve_test import BINARY, PATIENCE, wait_for  # noqa: E402

PROGRAM = RANK + "while not os.path.exists('end'):\n    launch(); time.sleep(0.01)\n"


class Unnumbered(CallsTest):
    def wrapped(self, daemon, *command):
        run = subprocess.Popen([BINARY, "run", "--socket", daemon.socket, "--job-id", "single", "--dir", f"{self.folder}/run", "--",
                                *command], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**self.environment, "READY": str(Path(self.folder) / "ready-0")})
        self.addCleanup(lambda: run.poll() is None and (self.say("end"), run.wait()))
        return run

    def launches(self, daemon, rank="0"):
        return daemon.metric(f'rankscope_cuda_kernel_launches_total{{job_id="single",rank="{rank}"}}')

    def test_behind_a_shell_and_beside_a_pipe(self):
        program = Path(self.folder) / "program.py"
        program.write_text(PROGRAM)
        daemon = self.daemon()
        run = self.wrapped(daemon, "bash", "-c", f"{sys.executable} {program} | tee log")
        self.say("load")
        self.say("go")
        wait_for("its launches", lambda: (self.launches(daemon) or 0) > 100)
        self.assertIsNotNone(daemon.metric('rankscope_rank_cpu_seconds_total{job_id="single",rank="0"}'))
        self.say("end")
        self.assertEqual(run.wait(PATIENCE), 0)

    def test_of_two_at_once_neither_is_rank_zero(self):
        program = Path(self.folder) / "program.py"
        program.write_text(PROGRAM)
        daemon = self.daemon()
        run = self.wrapped(daemon, "bash", "-c", f"{sys.executable} {program} & {sys.executable} {program}; wait")
        self.say("load")
        self.say("go")
        wait_for("both to compute", lambda: sum(SIGNALS["kernel_launches"] in samples for samples in recording.samples(
            Path(daemon.state) / "jobs" / "single").values()) == 2)
        wait_for("no rank with launches", lambda: self.launches(daemon) is None)
        self.say("end")
        self.assertEqual(run.wait(PATIENCE), 0)


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
