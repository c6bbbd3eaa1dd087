# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What a job writes to a file while the daemon is away: it is read from where hearing stopped, each line once, by its user's rights."""
import os
import subprocess
from pathlib import Path

from hostile_case import ATTACKER, PATIENCE, VICTIM, HostileTest, run_tests
from serve_test import wait_for

SECRET = "hunter2-of-root"

# Says `steps` lines; then, when it is told that nobody listens, as many and an error, and half a line; the rest when it is told so.
PROGRAM = r"""
import os, sys, time, traceback
signs, me, meanwhile = sys.argv[1], sys.argv[2], sys.argv[3]
def wait_for(sign):
    while not os.path.exists(f"{signs}/{sign}"):
        if not os.path.isdir(signs):
            sys.exit(9)  # the test is over
        time.sleep(0.01)
def done(sign):
    open(f"{signs}/{me}-{sign}", "w").close()
def step(i):
    print(f"step {i} loss {4.0 / i + 0.5:.4f} lr 0.05 step_time 0.053s", flush=True)
for i in range(1, 21):
    step(i)
wait_for("away")
exec(meanwhile)
for i in range(21, 41):
    step(i)
try:
    raise KeyError("missing_column")
except KeyError:
    sys.stdout.write(traceback.format_exc())
    sys.stdout.flush()
os.write(1, b"the other rank waits for " + me.encode())
done("away")
wait_for(f"{me}-back")
os.write(1, b" and ends\nshutting down\n")
done("last")
wait_for("end")
sys.exit(1)
"""


class Signs:
    """What the tests share; it has none itself."""

    FLAGS = ()
    SOURCE = "stdio"

    def start(self):
        self.signs = Path(self.folder) / "signs"
        self.signs.mkdir()
        os.chmod(self.signs, 0o1777)
        return self.again()

    def again(self):
        daemon = self.daemon(*self.FLAGS)
        wait_for("the source", lambda: daemon.metric(f'rankscope_source_up{{source="{self.SOURCE}"}}') is not None)
        if daemon.metric(f'rankscope_source_up{{source="{self.SOURCE}"}}') != 1:
            self.skipTest("the kernel does not let output be heard")
        return daemon

    def output_of(self, uid, name="out"):
        path = self.home(uid) / name
        out = open(path, "ab")
        self.addCleanup(out.close)
        os.fchown(out.fileno(), uid, uid)
        os.fchmod(out.fileno(), 0o600)
        return path, out

    def rank(self, uid, job, out, rank="0", world="1", meanwhile="", **options):
        return self.start_as(uid, "/usr/bin/python3", "-c", PROGRAM, self.signs, rank, meanwhile, stdout=out, stderr=out,
                             environment={"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "SLURM_JOB_ID": job}, **options)

    def give(self, sign):
        (self.signs / sign).touch()

    def given(self, sign):
        wait_for(f"{sign}", (self.signs / sign).exists)

    def heard(self, daemon, job, lines):
        wait_for(f"{lines} lines; {daemon.lines(job)}; {daemon.text()[-1500:]}", lambda: daemon.lines(job) == lines)
        self.wait_for_ticks(daemon, 1)

    def away(self, daemon, *ranks):
        """The daemon is killed, and the ranks write."""
        daemon.kill()
        self.give("away")
        for rank in ranks:
            self.given(f"{rank}-away")

    def end(self, daemon, job, *processes):
        self.give("end")
        for process in processes:
            process.wait(PATIENCE)
        return daemon.verdict(job)

    def notes(self, verdict):
        return "\n".join(verdict["data_quality"]["notes"])


class LeftOutput(HostileTest, Signs):
    def test_a_rank_is_read_from_where_hearing_stopped(self):
        """No attack: what a rank wrote to its file while the daemon was down is read from the file, each line once."""
        daemon = self.start()
        path, out = self.output_of(VICTIM)
        process = self.rank(VICTIM, "2001", out)
        self.heard(daemon, "2001", 20)
        self.away(daemon, 0)
        daemon = self.again()
        self.heard(daemon, "2001", path.read_bytes().count(b"\n"))
        self.give("0-back")
        self.given("0-last")
        verdict = self.end(daemon, "2001", process)
        self.assertEqual(daemon.lines("2001"), path.read_bytes().count(b"\n"))
        self.assertEqual((verdict["code"], verdict["exception_type"]), ("X1", "KeyError"), verdict)
        self.assertIn("what the job printed meanwhile was read from its files", self.notes(verdict))
        self.assertEqual(verdict["data_quality"]["lost_bytes"], 0)
        self.assertIs(verdict["data_quality"]["exact"], False)  # its processes were not observed

    def test_a_file_that_ranks_share_is_read_once(self):
        """No attack: two ranks write to one file, also while the daemon is down: no line is reported twice."""
        daemon = self.start()
        path, out = self.output_of(VICTIM)
        processes = [self.rank(VICTIM, "2002", out, str(rank), "2") for rank in (0, 1)]
        self.heard(daemon, "2002", 40)
        self.away(daemon, 0, 1)
        daemon = self.again()
        # The last line is not complete, and the one before it may be of the other rank.
        self.heard(daemon, "2002", path.read_bytes().count(b"\n"))
        daemon.kill()
        daemon = self.again()
        self.heard(daemon, "2002", path.read_bytes().count(b"\n"))
        self.give("0-back")
        self.given("0-last")
        self.give("1-back")
        self.given("1-last")
        verdict = self.end(daemon, "2002", *processes)
        self.assertEqual(daemon.lines("2002"), path.read_bytes().count(b"\n"))
        self.assertEqual((verdict["code"], verdict["exception_type"]), ("X1", "KeyError"), verdict)
        self.assertEqual(verdict["data_quality"]["lost_bytes"], 0)

    def test_what_went_to_a_pipe_is_a_gap(self):
        """No attack: what was written to a pipe while the daemon was down is lost, and reported as unknown."""
        daemon = self.start()
        process = self.rank(VICTIM, "2003", subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.heard(daemon, "2003", 20)
        self.away(daemon, 0)
        daemon = self.again()
        self.give("0-back")
        self.given("0-last")
        verdict = self.end(daemon, "2003", process)
        self.assertIn("how much the job printed meanwhile is not known", self.notes(verdict))
        self.assertIs(verdict["data_quality"]["exact"], False)
        self.assertLess(daemon.lines("2003"), 25)

    def test_what_is_not_his_is_not_read(self):
        """While the daemon is down, the attacker's file becomes root's and gets a secret: it is not read, and the gap is reported."""
        daemon = self.start()
        path, out = self.output_of(ATTACKER)
        process = self.rank(ATTACKER, "2004", out)
        self.heard(daemon, "2004", 20)
        self.away(daemon, 0)
        out.write(f"\npassphrase is {SECRET}\n".encode())
        out.flush()
        os.fchown(out.fileno(), 0, 0)
        daemon = self.again()
        self.give("0-back")
        self.given("0-last")
        verdict = self.end(daemon, "2004", process)
        self.assertNotIn(SECRET, self.everything_served(daemon))
        self.assertIn("how much the job printed meanwhile is not known", self.notes(verdict))

    def test_another_file_in_its_place_is_not_read(self):
        """While the daemon is down, the attacker makes his path lead to a secret of root's, or to another file: neither is read."""
        daemon = self.start()
        path, out = self.output_of(ATTACKER)
        secret = self.secret_file(Path(self.folder) / "secret", f"step 9 loss {SECRET}\n" * 100)
        other = self.home(ATTACKER) / "other"
        meanwhile = (f"other = os.open({str(other)!r}, os.O_RDWR | os.O_CREAT, 0o600)\n"
                     "os.write(other, b'a line that was there before\\n' * 200)\n"
                     "os.dup2(other, 1); os.dup2(other, 2)\n"
                     f"os.unlink({str(path)!r}); os.symlink({str(secret)!r}, {str(path)!r})\n")
        process = self.rank(ATTACKER, "2005", out, meanwhile=meanwhile)
        self.heard(daemon, "2005", 20)
        self.away(daemon, 0)
        daemon = self.again()
        self.give("0-back")
        self.given("0-last")
        verdict = self.end(daemon, "2005", process)
        served = self.everything_served(daemon)
        self.assertNotIn(SECRET, served)
        self.assertLess(daemon.lines("2005"), 25)
        self.assertIn("how much the job printed meanwhile is not known", self.notes(verdict))

    def test_a_file_that_was_cut_short_is_a_gap(self):
        """The attacker truncates his file while the daemon is down: its content counts as another text, and the gap is reported."""
        daemon = self.start()
        _, out = self.output_of(ATTACKER)
        process = self.rank(ATTACKER, "2006", out, meanwhile="os.ftruncate(1, 0)\nsys.stdout.flush()\nstep = lambda i: None\n")
        self.heard(daemon, "2006", 20)
        self.away(daemon, 0)
        daemon = self.again()
        self.give("0-back")
        self.given("0-last")
        verdict = self.end(daemon, "2006", process)
        self.assertIn("how much the job printed meanwhile is not known", self.notes(verdict))


class LeftFiles(HostileTest, Signs):
    SOURCE = "stdout_tail"

    def setUp(self):
        super().setUp()
        config = Path(self.folder) / "config.yaml"
        config.write_text('ebpf: {mode: "off"}\n')
        self.FLAGS = ("--config", str(config))

    def test_files_are_read_on_after_a_restart(self):
        """No attack: when files are read because BPF programs are not available, a restart repeats no line and omits none."""
        daemon = self.start()
        path, out = self.output_of(VICTIM)
        process = self.rank(VICTIM, "2007", out)
        self.heard(daemon, "2007", 20)
        self.away(daemon, 0)
        daemon = self.again()
        self.heard(daemon, "2007", path.read_bytes().count(b"\n"))
        self.give("0-back")
        self.given("0-last")
        self.heard(daemon, "2007", path.read_bytes().count(b"\n"))
        verdict = self.end(daemon, "2007", process)
        self.assertEqual(daemon.lines("2007"), path.read_bytes().count(b"\n"))
        self.assertEqual((verdict["code"], verdict["exception_type"]), ("X1", "KeyError"), verdict)


if __name__ == "__main__":
    run_tests()
