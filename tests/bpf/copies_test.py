# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Output that is copied: inside the kernel, where it cannot be read and counts as lost, and by launchers, where it is heard
already. Real programs under `rankscope serve`; the recording is compared with the file that they wrote."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(ROOT / "tests/replay"))

import recording  # noqa: E402
from real_runs import family_of  # noqa: E402
from stdio_test import PATIENCE, PYTHON, StdioTest, wait_for  # noqa: E402


class Spliced(StdioTest):
    """What goes from file to file inside the kernel cannot be read, so it is counted as lost, whoever copies it and
    however soon he is gone."""

    SIZE = 300_000

    def setUp(self):
        super().setUp()
        (Path(self.folder) / "data").write_bytes(b"a line that nobody can hear\n".ljust(self.SIZE, b"."))

    def check(self, *command):
        """Runs it with its output in a file: heard and lost are the file's size. Returns the lost bytes."""
        daemon = self.daemon()
        path = Path(self.folder) / "job.out"
        with open(path, "wb") as out:
            _, verdict = self.run_rank(daemon, *command, stdout=out, stderr=subprocess.STDOUT)
        self.compare(daemon, verdict, path.stat().st_size)
        return daemon.metric('rankscope_source_lost_total{source="stdio"}')

    def compare(self, daemon, verdict, size):
        lines = recording.lines(self.recorded(daemon, verdict))
        heard = sum(len(line.text) + (line.end == 1) for line in lines)
        gaps = sum(line.lost_before for line in lines)
        self.assertEqual(heard + gaps, size, f"{heard} bytes heard, {gaps} lost")
        self.assertEqual(daemon.metric('rankscope_source_lost_total{source="stdio"}'), gaps)
        self.assertEqual(verdict["data_quality"]["lost_bytes"], gaps)

    def busybox(self):
        return shutil.which("busybox") or self.skipTest("no busybox")

    def test_the_copier_is_all_that_the_rank_does(self):
        lost = self.check("/bin/bash", "-c", f"{self.busybox()} cat data; :")
        self.assertEqual(lost, self.SIZE)

    def test_the_rank_becomes_the_copier(self):
        lost = self.check("/bin/bash", "-c", f"exec {self.busybox()} cat data")
        self.assertEqual(lost, self.SIZE)

    def test_many_copiers_between_lines(self):
        copies = 40
        lost = self.check("/bin/bash", "-c",
                          f"for i in {{1..{copies}}}; do echo line $i; {self.busybox()} cat data; echo; done")
        self.assertEqual(lost, copies * self.SIZE)

    def test_every_way_of_copying(self):
        lost = self.check(PYTHON, "-c", r"""
import os
print("before", flush=True)
if os.fork() == 0:
    data, (front, back) = os.open("data", os.O_RDONLY), os.pipe()
    assert os.sendfile(1, data, 0, 10_000) == 10_000
    assert os.copy_file_range(data, 1, 10_000, 0) == 10_000
    os.write(back, bytes(5_000))
    assert os.splice(front, 1, 5_000) == 5_000
    os._exit(0)
os.wait()
print("after")
""")
        self.assertEqual(lost, 25_000)

    def test_it_is_counted_while_the_rank_goes_on(self):
        daemon = self.daemon()
        path = Path(self.folder) / "job.out"
        with open(path, "wb") as out:
            rank = self.launch("/bin/bash", "-c", f"{self.busybox()} cat data; while [ ! -e go ]; do sleep 0.1; done",
                               stdout=out)
        wait_for("the loss", lambda: daemon.metric('rankscope_source_lost_total{source="stdio"}') == self.SIZE)
        (Path(self.folder) / "go").touch()
        rank.communicate(timeout=PATIENCE)
        self.compare(daemon, self.the_verdict(daemon, rank), path.stat().st_size)

    def test_another_file_is_nobodys_loss(self):
        lost = self.check("/bin/bash", "-c", f"echo line; {self.busybox()} cat data >copy; {self.busybox()} cat data | wc -c")
        self.assertEqual(lost, 0)

    def test_a_copiers_words_when_all_are_gone(self):
        """Text of a child is heard though its rank has said nothing and ended at once."""
        lost = self.check("/bin/bash", "-c", "/bin/echo a child speaks; :")
        self.assertEqual(lost, 0)


class Copies(StdioTest):
    """Launchers print again what their ranks have said: each line is heard once, and the launcher's own as well."""

    RANK = r"""
import os, sys, time
rank = os.environ["RANK"]
while not os.path.exists("go"):
    time.sleep(0.01)
for step in range(100):
    print("step", step, "loss", 4.0 / (step + 1), "of rank", rank, flush=True)
print("warning of rank", rank, file=sys.stderr)
"""

    # Reads its ranks' pipes and writes their lines to its own output, each with a prefix, like `torchrun --tee`.
    LAUNCHER = r"""
import os, subprocess, sys, threading
def pass_on(pipe, prefix):
    for line in pipe:
        print(prefix + line.decode(), end="", flush=True)
print("the launcher begins", flush=True)
threads = []
for rank in "01":
    child = subprocess.Popen(["/usr/bin/python3", "rank.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env={**os.environ, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2"})
    threads.append(threading.Thread(target=pass_on, args=(child.stdout, f"[default{rank}]:")))
    threads[-1].start()
for thread in threads:
    thread.join()
print("the launcher ends", flush=True)
"""

    def run_launcher(self, *command, **environment):
        """Its own output, and the lines that were heard."""
        daemon = self.daemon()
        (Path(self.folder) / "rank.py").write_text(self.RANK)
        path = Path(self.folder) / "job.out"
        with open(path, "wb") as out:
            launcher = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=self.folder,
                                        env={**self.environment, **environment})
        self.addCleanup(self.kill_family, launcher)
        ranks = wait_for("two ranks", lambda: self.ranks_of(launcher.pid))
        job = environment.get("SLURM_JOB_ID") or self.job_of(daemon, ranks[0])
        (Path(self.folder) / "go").touch()
        self.assertEqual(launcher.wait(PATIENCE), 0, path.read_text())
        verdict = daemon.verdict(job)
        self.nothing_lost(daemon)
        return path.read_bytes(), recording.lines(self.recorded(daemon, verdict))

    def kill_family(self, launcher):
        if launcher.poll() is None:
            for pid in family_of(launcher.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            launcher.wait()

    def ranks_of(self, launcher):
        """Those of its family that run the ranks' script, once there are two."""
        def runs_rank(pid):
            with contextlib.suppress(OSError):
                return b"rank.py" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        found = [pid for pid in family_of(launcher)[1:] if runs_rank(pid)]
        return found if len(found) == 2 else None

    def each_once(self, copied, heard):
        said = [line.text for line in heard]
        # torchrun may end before it has read their last lines.
        self.assertGreater(copied.count(b" loss "), 100, "the launcher has copied them")
        for rank in b"01":
            for step in range(100):
                line = b"step %d loss %s of rank %c" % (step, repr(4.0 / (step + 1)).encode(), rank)
                by = [(other.name, other.rank, other.text) for other in heard if line in other.text]
                self.assertEqual(len(by), 1, by)
            self.assertEqual(sum(b"warning of rank %c" % rank in other for other in said), 1)

    def test_a_launcher_that_reads_pipes(self):
        copied, heard = self.run_launcher(PYTHON, "-c", self.LAUNCHER, SLURM_JOB_ID="4712")
        self.each_once(copied, heard)
        launchers = [line.text for line in heard if not line.name.startswith("rank ") and line.text]
        self.assertEqual(launchers, [b"the launcher begins", b"the launcher ends"])

    def test_torchrun(self):
        if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("no torch")
        shim = ROOT / "tests/support/real_runs/torchrun_shim.py"
        copied, heard = self.run_launcher(PYTHON, str(shim), "--nproc_per_node", "2", "--tee", "3", "rank.py")
        self.each_once(copied, heard)


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
