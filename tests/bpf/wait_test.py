# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Why a rank does not move: real PyTorch ranks over gloo beside `rankscope serve`, one of which is stopped, starved of CPU,
waits for its data loader or a file lock, sleeps, or collects garbage; the verdict names it and says so. Text and threads are
seen in the kernel; with --ebpf=off the text comes through the wrapper and the threads from /proc."""
import contextlib
import fcntl
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bpf_test import BINARY, BpfTest, wait_for  # noqa: E402
import unittest  # noqa: E402

PYTHON = "/usr/bin/python3"  # Debian's, whose python3-torch is meant
TRAINER = Path(__file__).resolve().parent.parent / "support" / "waiting_trainer.py"
FIRST_JOB = 8_000_000 + os.getpid() % 100_000 * 10  # other tests' ranks are seen too, and are others' jobs
FLOOR = 25  # seconds of silence that count as a hang; the product waits for 60
# The floor, a record of 25 steps, ticks, and a machine that does other things as well.
LIMIT = FLOOR + 25


def torch_is_missing():
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0


class WaitTest(BpfTest):
    STEP = 200

    def setUp(self):
        super().setUp()
        if importlib.util.find_spec("torch") is None and torch_is_missing():
            self.skipTest("needs python3-torch")
        self.file = str(Path(self.folder) / "file")

    def watched(self, *flags):
        config = Path(self.folder) / "config.yaml"
        config.write_text(f"families: {{collective_hang: {{hang_floor: {FLOOR}s}}}}\n")
        return self.daemon("--config.file", str(config), *flags)

    def train(self, daemon, how, job, before=None, wrapped=False, lines=5, starter=()):
        """The pids of its ranks, once they train. Wrapped: where nothing else hears them."""
        command = [*starter, PYTHON, str(TRAINER), how, str(self.STEP), self.file, f"{self.folder}/{job}.pids"]
        if wrapped:
            command = [BINARY, "run", "--socket", daemon.socket, "--job-id", job, "--dir", f"{self.folder}/{job}", "--", *command]
        with open(f"{self.folder}/{job}.log", "wb") as log:
            launcher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                                        env={**self.environment, "SLURM_JOB_ID": job}, preexec_fn=before)
            self.addCleanup(launcher.stdin.close)
            self.launcher = launcher
        self.addCleanup(self.end, job, launcher)
        pids = wait_for("both ranks", lambda: self.pids(job))
        # Training, and for so long that silence means something.
        wait_for("training", lambda: daemon.lines(job) >= lines)
        return pids

    def pids(self, job):
        with contextlib.suppress(OSError, ValueError):
            found = [int(pid) for pid in Path(f"{self.folder}/{job}.pids").read_text().split()]
            return found if len(found) == 2 else None

    def end(self, job, launcher):
        with contextlib.suppress(OSError):
            for pid in self.pids(job) or []:
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()

    def awaited(self, daemon, job, code, since, sub=None, limit=LIMIT):
        """The job's first verdict of this code, and of this form of it if one is given."""
        verdict = None
        while time.monotonic() - since < limit:
            verdict = daemon.verdicts().get(job)
            if verdict and verdict["code"] == code and sub in (None, verdict["sub"]):
                print(f"{job}: {code} {verdict['sub']} after {time.monotonic() - since:.1f} s", file=sys.stderr)
                return verdict
            time.sleep(0.2)
        self.fail(f"no {code} {sub or ''} of {job} in {limit} s; the last verdict: {verdict}")

    def named(self, verdict, sub, rank):
        self.assertEqual((verdict["sub"], verdict["ranks"]), (sub, [rank]), verdict["shows"])
        self.assertNotIn("why the missing rank", self.questions(verdict))
        self.assertNotIn("which rank did not", self.questions(verdict))


class StoppedTest(WaitTest):
    def stop_one(self, *flags):
        daemon = self.watched(*flags)
        job = str(FIRST_JOB)
        pids = self.train(daemon, "sleep0", job, wrapped="--ebpf=off" in flags)
        begin = time.monotonic()
        os.kill(pids[1], signal.SIGSTOP)
        verdict = self.awaited(daemon, job, "C2", begin)
        self.named(verdict, "stopped", 1)
        self.assertEqual(verdict["tier"], "C")
        self.assertEqual("not counted in the kernel" in daemon.get("/verdict")[1], "--ebpf=off" in flags, "who looked")
        self.shown(verdict, f"rank 1 (pid {pids[1]}) has been stopped for")
        self.assertIn(f"kill -CONT {pids[1]}", " ".join(verdict["resolution"]["immediate"]))
        os.kill(pids[1], signal.SIGCONT)
        wait_for("the verdict to fall", lambda: daemon.verdicts()[job]["code"] != "C2")


class Stopped(StoppedTest):
    def test_counted_in_the_kernel(self):
        self.stop_one()


class StoppedOtherwise(StoppedTest):
    def test_seen_in_proc(self):
        self.stop_one("--ebpf=off")

    def test_all_at_once_is_a_suspended_job(self):
        daemon = self.watched()
        job = str(FIRST_JOB)
        pids = self.train(daemon, "sleep0", job)
        begin = time.monotonic()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        def warned():
            return {warning["kind"]: warning for warning in daemon.verdicts()[job]["warnings"]}

        wait_for("the word that it is suspended", lambda: "suspended" in warned())
        self.assertIn("processes on this node", warned()["suspended"]["text"])
        time.sleep(max(0, FLOOR + 10 - (time.monotonic() - begin)))
        self.assertNotIn(daemon.verdicts()[job]["code"], ("C2", "C3"), "a suspended job hangs nowhere")
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        wait_for("the word that it was", lambda: "was_suspended" in warned() and "suspended" not in warned())


class Starved(WaitTest):
    # Hogs of CPU 0, one for each line it is told, in the session of the ranks: where the kernel shares CPUs among sessions
    # (sched_autogroup_enabled), priorities say who goes first within one only.
    STARTER = '"$@" & while read -r; do taskset -c 0 bash -c "while :; do :; done" & done; wait'

    def test_a_rank_without_a_cpu_is_named(self):
        if os.cpu_count() < 2:
            self.skipTest("needs two CPUs")

        def favoured():
            os.nice(-20)  # whatever else the machine does is not what starves rank 0
            with contextlib.suppress(OSError):
                Path("/proc/self/autogroup").write_text("-20")

        daemon = self.watched()
        pids = self.train(daemon, "none", str(FIRST_JOB), before=favoured, starter=("bash", "-c", self.STARTER, "bash"))
        for pid, cpu in zip(pids, (1, 0)):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {cpu})
        begin = time.monotonic()
        self.launcher.stdin.write(b"\n\n")
        self.launcher.stdin.flush()
        verdict = self.awaited(daemon, str(FIRST_JOB), "D3", begin, limit=90)
        self.assertEqual((verdict["sub"], verdict["ranks"]), ("starved", [1]), verdict["shows"])
        self.shown(verdict, f"the main thread of rank 1 (pid {pids[1]}) waited for a CPU for")


class Storage(WaitTest):
    """Ranks whose samples lie in files, those of rank 1 on a server that is slow: a real file system."""

    def mount(self, slow_ms):
        """The name that rank numbers go behind; rank 1's reads take this long."""
        at = self.odd_files()
        name = Path(self.folder) / f"samples{slow_ms}-"
        for rank, delay in enumerate((0, slow_ms)):
            os.symlink(at / f"shard-{delay}", f"{name}{rank}")
        return str(name)

    def test_a_slow_shard_is_named(self):
        daemon = self.watched()
        begin = time.monotonic()
        jobs = {}
        for number, how in enumerate(("shard", "loaded", "busy")):
            self.file = self.mount(20 + number)
            jobs[how] = str(FIRST_JOB + number), self.train(daemon, how, str(FIRST_JOB + number), lines=2)
        for how, whose in (("shard", "the main thread of rank 1"), ("loaded", "a child process of rank 1")):
            job, pids = jobs[how]
            verdict = self.awaited(daemon, job, "D3", begin, sub="slow_storage", limit=120)
            self.assertEqual(verdict["ranks"], [1])
            self.shown(verdict, f"{whose} (pid {pids[1]})")
            self.shown(verdict, "waited for a network file system")
        # Its loader reads nearly all the time as well, and is in time.
        time.sleep(max(0, 60 - (time.monotonic() - begin)))
        self.assertNotIn(daemon.verdicts()[jobs["busy"][0]]["code"], ("C2", "C3", "D3", "X14"))


class Strays(WaitTest):
    """Jobs whose rank 1 does something else for ever, each in its way; and one whose rank 0 saves for longer than the floor."""
    STEP = 500
    SAVES = "save"

    def test_each_is_named_with_what_it_does(self):
        daemon = self.watched()
        own_name = Path("/proc/self/comm").read_text().strip()
        ways = {"dataloader": "dataloader", "filelock": "file_lock", "collect": "busy", "sleep": "sleep"}
        with open(self.file, "a", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            for number, how in enumerate([*ways, self.SAVES]):
                self.train(daemon, how, str(FIRST_JOB + number))
            begin = time.monotonic()
            for number, (how, sub) in enumerate(ways.items()):
                verdict = self.awaited(daemon, str(FIRST_JOB + number), "C2", begin, sub=sub, limit=LIMIT + 20)
                self.named(verdict, sub, 1)
                if sub == "file_lock":
                    self.shown(verdict, f"the lock is held by {own_name} (pid {os.getpid()})")
            saves = str(FIRST_JOB + len(ways))
            while time.monotonic() - begin < 55:
                self.assertNotIn(daemon.verdicts()[saves]["code"], ("C2", "C3", "D3", "X14"))
                time.sleep(0.5)


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
