# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What real programs write, heard in the kernel under `rankscope serve`: the recording is compared with the bytes that
came out at the other end of the pipe or stand in the file."""
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import recording  # noqa: E402
from bpf_test import BpfTest  # noqa: E402
from serve_test import BINARY, PATIENCE, wait_for  # noqa: E402

PYTHON = "/usr/bin/python3"
FLOOD_SECONDS = os.environ.get("RANKSCOPE_TEST_FLOOD_SECONDS", "4")

LOOP = r"""
import sys
for step in range(200):
    print("step", step, "loss", 4.0 / (step + 1), "lr", 0.05)
    if step % 50 == 0:
        print("warning: step", step, file=sys.stderr)
"""


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def digest(data):
    return hashlib.sha256(data).hexdigest()


class StdioTest(BpfTest):
    def daemon(self, *flags):
        daemon = super().daemon(*flags)
        wait_for("the source", lambda: self.up(daemon, "stdio"))
        return daemon

    def launch(self, *command, rank="0", world="1", stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options):
        """A rank; what it writes is read at the other end, by us."""
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr, cwd=self.folder,
                                   env={**self.environment, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world,
                                        **options.pop("env", {})}, **options)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def run_rank(self, daemon, *command, **options):
        """Runs it to its end: what came out (stdout, stderr), and its verdict."""
        process = self.launch(*command, **options)
        out = process.communicate(timeout=PATIENCE)
        return out, self.the_verdict(daemon, process)

    def heard(self, daemon, verdict):
        return recording.streams(self.recorded(daemon, verdict))

    def same(self, heard, name, oracle):
        self.assertIn(name, heard, heard.keys())
        self.assertEqual(digest(heard[name]), digest(oracle),
                         f"{name}: {len(heard[name])} bytes heard, {len(oracle)} written: "
                         f"{heard[name][:300]} {oracle[:300]}")

    def nothing_lost(self, daemon):
        self.assertEqual(daemon.metric('rankscope_source_lost_total{source="stdio"}'), 0)


class Python(StdioTest):
    def check(self, *flags, **environment):
        daemon = self.daemon()
        (out, err), verdict = self.run_rank(daemon, PYTHON, *flags, "-c", LOOP, env=environment)
        heard = self.heard(daemon, verdict)
        self.assertGreater(len(out), 5000)
        self.same(heard, "rank 0 stdout", out)
        self.same(heard, "rank 0 stderr", err)
        self.nothing_lost(daemon)
        lines = [line for line in recording.lines(self.recorded(daemon, verdict)) if line.name == "rank 0 stdout"]
        self.assertEqual([line.text.decode() for line in lines], out.decode().splitlines())
        self.assertEqual({(line.rank, line.local_rank) for line in lines}, {(0, 0)})

    def test_buffered(self):
        self.check(PYTHONUNBUFFERED="")

    def test_unbuffered_one_print_is_many_writes(self):
        self.check("-u")


class Files(StdioTest):
    """A write is output by the file it goes to, not by the number of its descriptor."""

    def python(self, daemon, text, **options):
        return self.run_rank(daemon, PYTHON, "-c", text, **options)

    def test_a_duplicate_is_heard(self):
        daemon = self.daemon()
        (out, err), verdict = self.python(daemon, r"""
import os
copy = os.dup(1)
os.write(copy, b"by a duplicate\n")
os.dup2(2, 77)
os.write(77, b"error by a duplicate\n")
""")
        heard = self.heard(daemon, verdict)
        self.same(heard, "rank 0 stdout", out)
        self.same(heard, "rank 0 stderr", err)

    def test_the_original_is_heard_behind_a_redirection(self):
        daemon = self.daemon()
        (out, _), verdict = self.python(daemon, r"""
import os
original = os.dup(1)
os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
os.write(original, b"to the original\n")
os.dup2(original, 1)
print("and again")
""")
        self.assertEqual(out, b"to the original\nand again\n")
        self.same(self.heard(daemon, verdict), "rank 0 stdout", out)

    def test_a_log_that_replaces_standard_output_is_heard(self):
        daemon = self.daemon()
        _, verdict = self.python(daemon, r"""
import os
log = os.open("rank.log", os.O_WRONLY | os.O_CREAT)
os.dup2(log, 1)
print("into the log")
""")
        self.same(self.heard(daemon, verdict), "rank 0 stdout", (Path(self.folder) / "rank.log").read_bytes())

    def test_another_file_is_not_output(self):
        daemon = self.daemon()
        (out, _), verdict = self.python(daemon, r"""
print("before", flush=True)
with open("data.txt", "w") as data:
    for i in range(1000):
        data.write("step %d loss 0.5\n" % i)
        data.flush()
print("after")
""")
        self.same(self.heard(daemon, verdict), "rank 0 stdout", out)

    def test_a_checkpoint_in_descriptor_1_is_not_output(self):
        daemon = self.daemon()
        (out, _), verdict = self.python(daemon, r"""
import os
print("text", flush=True)
os.close(1)
fd = os.open("model.ckpt", os.O_WRONLY | os.O_CREAT)
assert fd == 1
for _ in range(100):
    os.write(fd, b"PK\x03\x04" + bytes(60000))
""")
        heard = self.heard(daemon, verdict)
        self.same(heard, "rank 0 stdout", out)
        self.nothing_lost(daemon)

    def test_standard_output_in_a_file(self):
        daemon = self.daemon()
        path = Path(self.folder) / "job.out"
        with open(path, "wb") as file:
            _, verdict = self.run_rank(daemon, PYTHON, "-u", "-c", LOOP, stdout=file, stderr=subprocess.STDOUT)
        heard = self.heard(daemon, verdict)
        self.assertEqual(len(path.read_bytes()), sum(len(said) for said in heard.values()))
        both = b"".join(heard.values()).splitlines()
        self.assertEqual(sorted(both), sorted(path.read_bytes().splitlines()))


class Programs(StdioTest):
    """Programs that nobody has written for this test."""

    def shell(self, daemon, text, **options):
        return self.run_rank(daemon, "/bin/bash", "-c", text, **options)

    def test_a_static_binary(self):
        busybox = shutil.which("busybox")
        if not busybox:
            self.skipTest("no busybox")
        daemon = self.daemon()
        (out, _), verdict = self.run_rank(daemon, busybox, "seq", "1", "3000")
        self.same(self.heard(daemon, verdict), "rank 0 stdout", out)

    def test_writev(self):
        daemon = self.daemon()
        (out, _), verdict = self.run_rank(daemon, PYTHON, "-c", r"""
import os
for i in range(100):
    os.writev(1, [b"line ", str(i).encode(), b" of ", b"many", b"\n"])
""")
        self.same(self.heard(daemon, verdict), "rank 0 stdout", out)

    def test_a_child_without_exec_inherits(self):
        daemon = self.daemon()
        (out, _), verdict = self.run_rank(daemon, PYTHON, "-c", r"""
import os
print("parent", flush=True)
pid = os.fork()
if pid == 0:
    os.write(1, b"child\n")
    os._exit(0)
os.waitpid(pid, 0)
os.system("echo grandchild")
""")
        self.assertEqual(out, b"parent\nchild\ngrandchild\n")
        heard = self.heard(daemon, verdict)
        self.assertEqual(sorted(b"".join(heard.values()).splitlines()), [b"child", b"grandchild", b"parent"])

    def test_tee_is_heard_once(self):
        daemon = self.daemon()
        script = "RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 /usr/bin/python3 -u train.py | tee copy.log"
        (Path(self.folder) / "train.py").write_text(LOOP.replace("file=sys.stderr", "file=sys.stdout"))
        process = subprocess.Popen(["/bin/bash", "-c", script], stdout=subprocess.PIPE, cwd=self.folder,
                                   env={**self.environment, "SLURM_JOB_ID": "4731"})
        out, _ = process.communicate(timeout=PATIENCE)
        verdict = daemon.verdict("4731")
        heard = self.heard(daemon, verdict)
        self.same(heard, "rank 0 stdout", out)
        self.assertEqual(list(heard), ["rank 0 stdout"], "tee's copy is not heard again")

    def test_what_a_helper_tells_the_rank_is_no_output(self):
        daemon = self.daemon()
        (out, _), verdict = self.run_rank(daemon, PYTHON, "-c", r"""
import subprocess
text = subprocess.run(["/bin/sh", "-c", "echo ModuleNotFoundError: no ninja; exit 1"], capture_output=True).stdout
print("probed", len(text))
""")
        heard = self.heard(daemon, verdict)
        self.assertEqual(list(heard), ["rank 0 stdout"])
        self.same(heard, "rank 0 stdout", out)


class Budget(StdioTest):
    """200 MB/s of 8 ranks: each byte is heard, or counted as lost."""

    FLOOD = r"""
import os, sys, time
line = ("step 1 of rank %s says nothing that matters at all " % os.environ["RANK"]).encode().ljust(99, b".") + b"\n"
block = line * 41  # one write of 4 kB
rate, seconds = 25e6, float(sys.argv[1])
begin = time.monotonic()
written = 0
while written < rate * seconds:
    written += os.write(1, block)
    ahead = written / rate - (time.monotonic() - begin)
    if ahead > 0.01:
        time.sleep(ahead)
print("Traceback (most recent call last):", file=sys.stderr)
print('  File "train.py", line 3, in <module>', file=sys.stderr)
print("ValueError: the end of rank %s" % os.environ["RANK"], file=sys.stderr)
"""

    def test_every_byte_is_accounted_for(self):
        daemon = self.daemon()
        outs = [self.enterContext(open(Path(self.folder) / f"out-{rank}", "wb")) for rank in range(8)]
        script = Path(self.folder) / "flood.py"
        script.write_text(self.FLOOD)
        before = cpu_seconds(daemon.process.pid)
        begin = time.monotonic()
        ranks = [self.launch(PYTHON, str(script), FLOOD_SECONDS, rank=str(rank), world="8", stdout=outs[rank])
                 for rank in range(8)]
        said = [rank.communicate(timeout=PATIENCE)[1] for rank in ranks]
        seconds = time.monotonic() - begin
        used = cpu_seconds(daemon.process.pid) - before
        verdict = self.the_verdict(daemon, ranks[0])
        lines = recording.lines(self.recorded(daemon, verdict))
        written = heard = 0
        for rank in range(8):
            path = Path(self.folder) / f"out-{rank}"
            mine = [line for line in lines if line.name == f"rank {rank} stdout"]
            last = mine[-1]
            end = last.offset + len(last.text) + (last.end == 1)
            self.assertEqual(end, path.stat().st_size, "heard and lost are all that was written")
            gaps = sum(line.lost_before for line in mine)
            text = sum(len(line.text) + (line.end == 1) for line in mine)
            self.assertEqual(text + gaps, path.stat().st_size)
            content = path.read_bytes()
            for line in mine:
                self.assertEqual(content[line.offset:line.offset + len(line.text)], line.text, "at its offset")
            written += path.stat().st_size
            heard += text
            error = b"".join(line.text + b"\n" for line in lines if line.name == f"rank {rank} stderr")
            self.assertEqual(error, said[rank], "standard error has a budget of its own")
        lost = daemon.metric('rankscope_source_lost_total{source="stdio"}')
        self.assertGreaterEqual(lost, written - heard)  # the daemon loses of other tests' jobs, too
        self.assertEqual(verdict["data_quality"]["lost_bytes"], written - heard)
        print(f"{written / seconds / 1e6:.0f} MB/s written, {heard / 1e6:.1f} of {written / 1e6:.0f} MB heard, the daemon "
              f"used {100 * used / seconds:.1f} % of a core", file=sys.stderr)


class Wrapped(StdioTest):
    def test_what_the_wrapper_hears_is_not_heard_again(self):
        daemon = self.daemon()
        (Path(self.folder) / "train.py").write_text(LOOP)
        log = Path(self.folder) / "job-1"
        wrapper = subprocess.run([BINARY, "run", "--socket", daemon.socket, "--job-id", "job-1", "--dir", str(log), "--",
                                  PYTHON, "-u", "train.py"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder,
                                 env={**self.environment, "RANK": "0", "WORLD_SIZE": "1"}, timeout=PATIENCE)
        self.assertEqual(wrapper.returncode, 0)
        verdict = daemon.verdict("job-1")
        heard = self.heard(daemon, verdict)
        self.assertFalse([name for name in heard if name.startswith("rank")], heard.keys())
        self.assertEqual(sum(map(len, heard.values())), (log / "log").stat().st_size)


class Tail(BpfTest):
    """A node that will not pay for the kernel's programs reads the job's output where it lies."""

    WAITING = LOOP + r"""
import os, time
sys.stdout.flush()
while not os.path.exists("go"):
    time.sleep(0.01)
print("the end", flush=True)
raise ValueError("bad batch")
"""
    # A file that was made within 10 s of the job's start counts as made for it; starts are known to 1.7 s.
    OLD_SECONDS = 14

    def daemon(self, *flags):
        config = Path(self.folder) / "config.yaml"
        config.write_text("sources: {stdio: {enabled: false}}\n")
        daemon = super().daemon("--config", str(config), *flags)
        wait_for("the source", lambda: self.up(daemon, "stdout_tail"))
        self.assertFalse(self.up(daemon, "stdio"))
        return daemon

    def start(self, script, out, err, rank="0", world="1"):
        process = subprocess.Popen([PYTHON, "-u", "-c", script], stdout=out, stderr=err, cwd=self.folder,
                                   env={**self.environment, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world})
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def lines(self, daemon, job):
        return recording.lines(Path(daemon.state) / "jobs" / job)

    def read_all(self, daemon, job, path):
        return path.read_bytes().splitlines()[-1:] == [line.text for line in self.lines(daemon, job)][-1:]

    def end(self, daemon, process):
        job = self.job_of(daemon, process.pid)
        wait_for("what was printed", lambda: daemon.metric(f'rankscope_job_running{{job_id="{job}"}}') == 1)
        (Path(self.folder) / "go").touch()
        process.wait(PATIENCE)
        return daemon.verdict(job)

    def test_the_jobs_file_is_followed(self):
        path = Path(self.folder) / "job.out"
        path.write_bytes(b"of an earlier job\n")
        old = time.monotonic() + self.OLD_SECONDS
        daemon = self.daemon()
        time.sleep(max(0, old - time.monotonic()))
        with open(path, "ab") as out:
            process = self.start(self.WAITING.replace("    time", '    print("waits"); time'), out, subprocess.STDOUT)
            job = self.job_of(daemon, process.pid)
            wait_for("the file to be found", lambda: self.lines(daemon, job))
            verdict = self.end(daemon, process)
        heard = recording.streams(Path(daemon.state) / "jobs" / verdict["job_id"])
        self.assertEqual(list(heard), ["rank 0 stdout file"])
        text = heard["rank 0 stdout file"].lstrip(b"\0")
        self.assertTrue(path.read_bytes().endswith(text), text[:200])
        self.assertIn(b"ValueError: bad batch\n", text)
        self.assertNotIn(b"earlier job", text)
        # What was printed before the file was found is not told from an earlier job's text.
        self.assertIn(verdict["code"], ("A1", "X1"))
        self.assertEqual(verdict["exception_type"], "ValueError")

    def test_a_file_that_is_cut_short_is_read_from_its_start(self):
        daemon = self.daemon()
        path = Path(self.folder) / "job.out"
        with open(path, "ab") as out:
            process = self.start(self.WAITING, out, subprocess.STDOUT)
            job = self.job_of(daemon, process.pid)
            # All of it: a file that has grown again beyond what was read does not look cut short.
            wait_for("the first text", lambda: path.stat().st_size > 5000 and self.read_all(daemon, job, path))
            os.truncate(path, 0)
            verdict = self.end(daemon, process)
        said = [line.text for line in self.lines(daemon, job)]
        self.assertEqual(said.count(b"the end"), 1)
        self.assertEqual(verdict["exception_type"], "ValueError")

    def test_each_rank_has_its_file(self):
        daemon = self.daemon()
        outs = [self.enterContext(open(Path(self.folder) / f"rank{rank}.out", "wb")) for rank in range(2)]
        ranks = [self.start(self.WAITING, outs[rank], subprocess.STDOUT, str(rank), "2") for rank in range(2)]
        verdict = self.end(daemon, ranks[0])
        heard = recording.streams(Path(daemon.state) / "jobs" / verdict["job_id"])
        self.assertEqual(sorted(heard), ["rank 0 stdout file", "rank 1 stdout file"])
        for rank in range(2):
            oracle = (Path(self.folder) / f"rank{rank}.out").read_bytes()
            self.assertEqual(digest(heard[f"rank {rank} stdout file"]), digest(oracle))

    def test_it_rests_while_the_kernel_hears(self):
        daemon = BpfTest.daemon(self)
        wait_for("the source", lambda: self.up(daemon, "stdio"))
        self.assertFalse(self.up(daemon, "stdout_tail"))


# What torchrun does: it starts a rank with variables of its own, waits for it, and has the last word.
LAUNCHER = r"""
import os, subprocess, sys, time
own = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "none"}
rank = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(7)"], stdin=subprocess.PIPE,
                        env={**os.environ, **own})
print(rank.pid, flush=True)
sys.stdin.read()
os.write(2, b" end of a line\n" + b"x" * 5000 + b"\n")  # a full buffer, wherever a line is
rank.stdin.close()
print(f"local_rank: 0 ended with {rank.wait()}", file=sys.stderr)
"""


class Launcher(StdioTest):
    def test_the_one_that_nobody_told_of_is_heard(self):
        daemon = self.daemon()
        launcher = subprocess.Popen([PYTHON, "-c", LAUNCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, env=self.environment)
        self.addCleanup(lambda: launcher.poll() is None and (launcher.kill(), launcher.wait()))
        rank = int(launcher.stdout.readline())
        job = self.job_of(daemon, rank)
        self.assertEqual(self.job_of(daemon, launcher.pid), job, "it belongs to the job of its rank")
        _, said = launcher.communicate(timeout=PATIENCE)
        verdict = daemon.verdict(job)
        told = [line.text for line in recording.lines(self.recorded(daemon, verdict))]
        self.assertIn(said.splitlines()[-1], told, "the last word")
        self.assertFalse(any(b"end of a line" in line for line in told), "the first piece may be the end of a rank's line")
        self.assertEqual(b"".join(told).count(b"x"), 5000)


class Strangers(StdioTest):
    def test_other_programs_are_not_heard(self):
        daemon = self.daemon()
        for _ in range(20):
            subprocess.run(["/bin/echo", "not of a job"], stdout=subprocess.DEVNULL, check=True, env=self.environment)
        self.assertEqual(daemon.metric("rankscope_log_unattributed_lines_total"), 0)
        self.assertNotIn("not of a job", daemon.get("/verdict")[1])  # other tests have jobs on this machine


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
