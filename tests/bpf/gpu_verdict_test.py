# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What `rankscope serve` says of ranks that print nothing, by their calls into the stub CUDA runtime and NCCL alone."""
import os
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support" / "stub_gpu"))

import counts as oracle  # noqa: E402
from bpf_test import BpfTest  # noqa: E402
from calls_test import LIBRARIES  # noqa: E402

TRAINER = os.environ.get("STUB_TRAINER", "build/tests/support/stub_gpu/stub_trainer")
LONG = 150  # seconds; a verdict of a minute's silence takes one

TRAINS = "ranks 4\nsteps 1000000\nstep_ms 20\nprint 0\n"


class GpuVerdictTest(BpfTest):
    def setUp(self):
        super().setUp()
        if not (LIBRARIES / "libcuda.so.1").exists():
            self.fail(f"no stub libraries in {LIBRARIES}")

    def train(self, name, script, **variables):
        """Starts a job of its own that runs the script; without a word."""
        folder = Path(self.folder) / name
        folder.mkdir()
        (folder / "script").write_text(script)
        environment = {**self.environment, "STUB_GPU_COUNTS": str(folder), "STUB_GPU_LIBRARIES": str(LIBRARIES), **variables}
        process = subprocess.Popen([TRAINER, str(folder / "script")], cwd=folder, env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: process.poll() is None and (process.terminate(), process.wait()))
        process.counts = lambda: oracle.read(folder)
        return process

    def job(self, daemon, process):
        """By a rank of it: the launcher itself is none."""
        return self.job_of(daemon, min(self.until("a rank", process.counts)))

    def until(self, what, condition):
        limit = time.monotonic() + LONG
        while time.monotonic() < limit:
            if value := condition():
                return value
            time.sleep(0.2)
        self.fail(f"waited {LONG} s for {what}")

    def becomes(self, daemon, process, code):
        job = self.job(daemon, process)
        last = []

        def look():
            verdict = daemon.verdicts().get(job)
            last[:] = [verdict and (verdict["code"], verdict["sub"], verdict["ranks"])]
            return verdict if verdict and verdict["code"] == code else None
        try:
            return self.until(code, look)
        except AssertionError as error:
            raise AssertionError(f"{error}; the last was {last}") from None

    def series(self, daemon, job, name):
        """{rank: value}"""
        found = re.findall(rf'^{name}{{job_id="{job}",rank="(\d+)"}} (\S+)$', daemon.get("/metrics")[1], re.M)
        return {int(rank): float(value) for rank, value in found}


class RunningJobs(GpuVerdictTest):
    """Three jobs at once: each takes a minute to be sure of."""

    def test_each_is_judged_by_its_calls(self):
        daemon = self.daemon("--ebpf.budget=50%")  # all launches, however slow this machine is
        leaves = self.train("leaves", TRAINS + "rank 2 leave at 400\n")
        late = self.train("late", TRAINS + "rank 1 sleep 25\n")
        blocks = self.train("blocks", "ranks 2\nsteps 1000000\nstep_ms 40\nlaunches 40\nkernel_us 1000\n"
                            "synchronize_launches 1\nprint 0\n", CUDA_LAUNCH_BLOCKING="1")

        def stopped():
            enqueued = [rank.get("ncclAllReduce", 0) for rank in leaves.counts().values()]
            return len(enqueued) == 4 and sorted(enqueued)[0] == 800
        self.until("the rank to leave", stopped)
        left = time.monotonic()

        verdict = self.becomes(daemon, leaves, "C2")
        took = time.monotonic() - left
        print(f"a rank that enters no more collectives is named after {took:.1f} s", file=sys.stderr)
        self.assertEqual(verdict["ranks"], [2], verdict)  # the sub is why, where its threads tell
        self.assertGreaterEqual(verdict["confidence"], 0.65)
        self.assertLessEqual(took, 60 + 5, "max(60 s, 10 steps), and the time to look")
        self.shown(verdict, "entered no collective for")
        self.shown(verdict, "in flight for")
        self.assertNotIn("which rank did not enter", self.questions(verdict))
        cited = [shown["cite"].get("promql", "") for shown in verdict["shows"] if "cite" in shown]
        self.assertTrue(any("rankscope_rank_oldest_collective_seconds" in query for query in cited), cited)

        verdict = self.becomes(daemon, late, "D3")
        self.assertEqual((verdict["sub"], verdict["ranks"]), ("host", [1]), verdict)

        verdict = self.becomes(daemon, blocks, "D2")
        self.assertEqual((verdict["sub"], verdict["tier"]), ("launch_blocking", "C"), verdict)
        self.shown(verdict, "the environment of ranks 0, 1 contains CUDA_LAUNCH_BLOCKING=1")


class EndedJobs(GpuVerdictTest):
    def test_a_refused_allocation_ends_a_silent_job(self):
        daemon = self.daemon("--ebpf.budget=50%")
        process = self.train("refused", TRAINS + "rank 1 allocate 96636764160 at 100\n")
        job = self.job(daemon, process)
        self.assertEqual(process.wait(LONG), 1)
        verdict = daemon.verdict(job)
        self.assertEqual((verdict["code"], verdict["sub"], verdict["ranks"]), ("B1", "refused", [1]), verdict)
        self.shown(verdict, "the GPU refused 90 GiB")

    def test_caught_it_is_counted_and_no_more(self):
        daemon = self.daemon("--ebpf.budget=50%")
        process = self.train("caught", TRAINS.replace("1000000", "400") + "rank 1 allocate 96636764160 at 100 caught\n")
        job = self.job(daemon, process)
        self.until("the refusal", lambda: self.series(daemon, job, "rankscope_cuda_alloc_failures_total").get(1) == 1)
        self.assertEqual(self.series(daemon, job, "rankscope_cuda_last_failed_alloc_bytes")[1], 96636764160)
        self.assertEqual(process.wait(LONG), 0)
        verdict = daemon.verdict(job)
        self.assertNotEqual(verdict["code"], "B1", verdict)


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
