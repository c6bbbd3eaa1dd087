# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""One user's ranks print as much as they can: ticks go on, and every line of the victim's is heard."""
import os
import re
import signal
import subprocess

from hostile_case import ATTACKER, VICTIM, HostileTest, run_tests, wait_for
from run_case import RunSocket

# So many ranks, each of which writes `line` without end into a pipe that somebody empties.
WRITERS = r"""
import os, subprocess, sys
count, line = int(sys.argv[1]), sys.argv[2].encode().decode("unicode_escape").encode()
if "RANK" in os.environ:
    data = (line * (1 + 32768 // len(line)))[:32768]
    while True:
        os.write(1, data)
pipe = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
for number in range(count):
    os.posix_spawn(sys.executable, [sys.executable, "-c", os.environ["SCRIPT"], *sys.argv[1:]],
                   {**os.environ, "RANK": str(number), "WORLD_SIZE": str(count), "SLURM_JOB_ID": "666"},
                   file_actions=[(os.POSIX_SPAWN_DUP2, pipe.stdin.fileno(), 1)])
print("all", flush=True)
pipe.wait()
"""
# Two streams each, with a line of each.
TALKERS = r"""
import os, sys, time
count = int(sys.argv[1])
for number in range(count):
    os.posix_spawn("/bin/sh", ["/bin/sh", "-c", "echo one; echo two >&2; exec sleep 600"],
                   {"RANK": str(number), "WORLD_SIZE": str(count), "SLURM_JOB_ID": "667", "PATH": "/bin"},
                   file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.environ["HOME"] + "/out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                                 (os.POSIX_SPAWN_OPEN, 2, os.environ["HOME"] + "/err", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)])
print("all", flush=True)
time.sleep(600)
"""
# Prints, waits for a line, prints again and fails.
VICTIMS_RANK = r"""
import sys
for step in range(2000):
    print(f"step {step} loss {4 / (step + 1):.4f} lr 0.1", flush=True)
sys.stdin.readline()
for step in range(2000, 4000):
    print(f"step {step} loss {4 / (step + 1):.4f} lr 0.1", flush=True)
raise KeyError("victim")
"""


class Speech(HostileTest, RunSocket):
    def daemon(self, *flags):
        daemon = super().daemon(*flags)
        if not wait_for("a source of output", lambda: self.up(daemon, "stdio") or self.up(daemon, "stdout_tail")) or \
                not self.up(daemon, "stdio"):
            self.skipTest("this kernel does not let output be heard")
        return daemon

    def up(self, daemon, source):
        return daemon.metric(f'rankscope_source_up{{source="{source}"}}') == 1

    def flood(self, script, *arguments):
        process = self.python_as(ATTACKER, script, *map(str, arguments), start_new_session=True, stdout=subprocess.PIPE,
                                 environment={"SCRIPT": script})
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: (os.killpg(process.pid, signal.SIGKILL), process.wait()))
        self.assertEqual(process.stdout.readline(), b"all\n")

    def output(self, daemon, kind):
        return daemon.metric(f'rankscope_output_bytes_total{{kind="{kind}"}}') or 0

    def victims_rank(self, job="4711"):
        rank = self.python_as(VICTIM, VICTIMS_RANK, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              environment={"SLURM_JOB_ID": job, "RANK": "0", "WORLD_SIZE": "1"})
        for stream in (rank.stdin, rank.stdout):
            self.addCleanup(stream.close)
        for _ in range(2000):
            rank.stdout.readline()
        return rank

    def lost_of(self, daemon, job):
        return sum(float(value) for value in re.findall(
            rf'^rankscope_log_dropped_bytes_total{{job_id="{job}",stream="[^"]+"}} (\S+)$', daemon.get("/metrics")[1], re.M))

    def victim_is_heard(self, daemon, job="4711"):
        """All of the 4,000 lines, while ticks go on."""
        rank = self.victims_rank(job)
        wait_for("the victim's first lines", lambda: daemon.lines(job) >= 2000)
        self.ticks_stay_close(daemon, 4)
        rank.stdin.write(b"\n")
        rank.stdin.flush()
        rank.stdout.read()
        rank.wait()
        wait_for("the victim's last lines", lambda: daemon.lines(job) >= 4000)
        self.assertEqual(self.lost_of(daemon, job), 0)
        verdict = daemon.verdict(job)
        self.assertEqual(verdict["code"], "X1", verdict)
        # Events of other sources may be lost beside a thousand processes, which is told.
        self.assertEqual(verdict["data_quality"]["lost_bytes"], 0, verdict["data_quality"])

    def test_short_lines_of_many_ranks(self):
        """Forty ranks of the attacker's print short lines as fast as they can: ticks continue, and only their own lines are lost."""
        daemon = self.daemon()
        self.flood(WRITERS, 40, r"loss nan\n")
        wait_for("more than can be heard", lambda: self.output(daemon, "over_budget") > 0)
        self.victim_is_heard(daemon)
        self.assertGreater(self.output(daemon, "over_share"), 0)
        self.assertEqual(self.output(daemon, "ring_full"), 0)
        wait_for("what was lost to be told",
                 lambda: not daemon.verdict("666", "live")["data_quality"].get("exact"))

    def test_empty_lines(self):
        """Forty ranks of the attacker's print nothing but newlines: ticks continue, and the victim's output is read."""
        daemon = self.daemon()
        self.flood(WRITERS, 40, r"\n")
        wait_for("more than can be heard", lambda: self.output(daemon, "over_budget") > 0)
        self.victim_is_heard(daemon)

    def test_streams_without_end(self):
        """1,200 processes of the attacker's write to two files each, more than can be followed at once: the victim's files are followed."""
        daemon = self.daemon()
        self.flood(TALKERS, 1200)
        wait_for("what is not followed", lambda: daemon.metric('rankscope_source_lost_total{source="stdio"}') > 0)
        self.victim_is_heard(daemon)

    def test_one_user_alone_is_heard(self):
        """No attack: eight ranks print half a megabyte each at once, and all of it is read."""
        daemon = self.daemon()
        line = "step 1 loss 2.5 " + "x" * 1000
        ranks = [self.python_as(VICTIM, f"for _ in range(500): print({line!r})", stdout=subprocess.PIPE,
                                environment={"SLURM_JOB_ID": "4712", "RANK": str(rank), "WORLD_SIZE": "8"}) for rank in range(8)]
        for rank in ranks:
            self.assertEqual(len(rank.stdout.read()), 500 * (len(line) + 1))
            rank.stdout.close()
            rank.wait()
        wait_for("all lines", lambda: daemon.lines("4712") == 8 * 500)
        self.assertEqual(self.lost_of(daemon, "4712"), 0)


if __name__ == "__main__":
    run_tests()
