# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Twelve kinds of fault in a random rank at a random step of 2, 4 and 8 real processes, judged live by the daemon.

The ranks train in Python on the stand-ins for CUDA and NCCL (tests/support/injected_trainer.py). INJECTED_SEED draws the same
ranks and steps again; INJECTED_ONLY names kinds, with a comma between them; INJECTED_RANKS the sizes.
"""
import concurrent.futures
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from serve_test import BINARY, ServeTest  # noqa: E402

TRAINER = str(Path(__file__).resolve().parent.parent / "support" / "injected_trainer.py")
STUBS = str(Path(os.environ.get("STUB_GPU_FOLDER", "build/tests/support/stub_gpu/lib")).resolve())
# What a verdict may call it. A hang goes on, and is judged live; what ends the run is judged at its end. Python ends by SIGINT after
# a KeyboardInterrupt, so that its own SIGINT looks like anybody's.
HANGS = {"gpu_sleep": ("C2", "C3"), "lock_gil": ("C2", "C3"), "sigstop": ("C2", "C3")}
ENDS = {"gpu_error": ("X3",), "sigkill": ("A2",), "segfault": ("A2",), "abort": ("A2",), "workload_exception": ("X1",),
        "async_exception": ("X1",), "sigterm": ("A2",), "sigint": ("A2", "X1", "X20"), "handler_exception": ("X1",)}
KINDS = {**HANGS, **ENDS}
# All ranks have entered the collective, and no host sees whose GPU works at what comes before it.
NOT_SEEN = [("gpu_sleep", [])]
SIDE_BY_SIDE = 3
LONG = 400  # seconds: a hang is named a minute after it began, and machines are slow


class InjectedFaults(ServeTest):
    def setUp(self):
        super().setUp()
        seed = int(os.environ.get("INJECTED_SEED", time.time_ns() % 100_000))
        print(f"INJECTED_SEED={seed}", file=sys.stderr)
        self.random = random.Random(seed)
        self.environment = {**self.environment, "STUB_GPU_LIBRARIES": STUBS, "PYTHONDONTWRITEBYTECODE": "1"}

    def judged(self, daemon, kind, ranks, culprit, step):
        """The verdict, and how it differs from the truth; empty where it does not."""
        job = f"{kind}-{ranks}"
        wrapper = subprocess.Popen(
            [BINARY, "run", "--socket", daemon.socket, "--job-id", job, "--dir", str(Path(self.folder) / job), "--", sys.executable,
             TRAINER, str(ranks), "1000000", kind, str(culprit), str(step)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment, start_new_session=True)
        try:
            found, end = None, time.monotonic() + LONG
            while time.monotonic() < end:
                status, text = daemon.get(f"/verdict?job_id={job}")
                found = json.loads(text) if status == 200 else None
                wanted = "live" if kind in HANGS else "final"
                if found and found["state"] == wanted and (wanted == "final" or found["code"] in KINDS[kind]):
                    break
                time.sleep(0.5)
        finally:
            wrapper.poll() is None and (wrapper.terminate(), wrapper.wait())
            # Ranks that hang do not follow a request to stop.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(wrapper.pid, signal.SIGKILL)
        said = found and {key: found[key] for key in ("state", "code", "sub", "signal", "ranks", "confidence")}
        wrong = ""
        if not found or found["code"] not in KINDS[kind]:
            wrong = "family"
        elif found["ranks"] != [culprit] and (kind, found["ranks"]) not in NOT_SEEN:
            wrong = "rank"
        return f"{job}, rank {culprit} at step {step}: {said}", wrong

    def test_each_kind_is_named_with_its_rank(self):
        only = os.environ.get("INJECTED_ONLY", ",".join(KINDS)).split(",")
        sizes = [int(size) for size in os.environ.get("INJECTED_RANKS", "2,4,8").split(",")]
        daemon = self.daemon()
        cases = [(kind, ranks, self.random.randrange(ranks), self.random.randrange(20, 60)) for ranks in sizes for kind in only]
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            answers = list(pool.map(lambda case: self.judged(daemon, *case), cases))
        for line, wrong in answers:
            print(line, f"WRONG {wrong}" if wrong else "", file=sys.stderr)
        self.assertEqual([line for line, wrong in answers if wrong], [])


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
