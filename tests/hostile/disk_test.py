# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The disk of state.dir is slow, hangs or is full while a user's many runs end on it. It costs the files, for as long as it lasts, and
neither ticks nor other users' verdicts."""
import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from hostile_case import ATTACKER, PATIENCE, VICTIM, HostileTest, run_tests, wait_for

SLOW_DISK = Path(__file__).resolve().parent / "slow_disk.py"


class Ticks:
    """Looks at the daemon's ticks until stopped, and keeps the longest time between two."""

    def __init__(self, daemon):
        self.daemon, self.longest, self.count = daemon, 0.0, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        last = None
        while not self.over.is_set():
            tick = self.daemon.metric("rankscope_last_tick_timestamp_seconds")
            if tick and last and tick > last:
                self.longest = max(self.longest, tick - last)
                self.count += 1
            last = tick or last
            time.sleep(0.05)

    def stop(self):
        self.over.set()
        self.thread.join()
        return self.longest


class DiskTest:
    def mount(self, *options):
        """A file system of its own for the state, gone with the test."""
        state = Path(self.folder) / "state"
        state.mkdir(mode=0o700)
        subprocess.run(["mount", *options, str(state)], check=True)
        self.addCleanup(lambda: subprocess.run(["umount", "-l", str(state)], check=False))
        os.chmod(state, 0o700)
        return state

    def failing_runs(self, uid, daemon, count, first=0):
        runs = [self.start_as(uid, self.program, "run", "--socket", daemon.socket, "--dir", self.home(uid) / f"r{first + i}", "--",
                              "/bin/sh", "-c", f"echo step {i}; exit 3") for i in range(count)]
        for run in runs:
            run.wait(PATIENCE)

    def finals(self, daemon):
        return {job: verdict["code"] for job, verdict in self.runs(daemon).items() if verdict["state"] == "final"}

    def wait_for_finals(self, daemon, count):
        return wait_for(f"{count} final verdicts", lambda: len(found := self.finals(daemon)) >= count and found)

    def waiting(self, daemon):
        return daemon.metric("rankscope_documents_waiting")


class SlowDisk(HostileTest, DiskTest):
    def setUp(self):
        super().setUp()
        # Debian's package is for Debian's Python, which may not be the one that runs this.
        python = next((python for python in (sys.executable, "/usr/bin/python3") if subprocess.run(
            [python, "-c", "import fusepy"], capture_output=True, check=False).returncode == 0), None)
        if python is None or not Path("/dev/fuse").exists():
            self.skipTest("a disk that can be slowed down: needs python3-fusepy and /dev/fuse")
        self.state = Path(self.folder) / "state"
        self.control = Path(self.folder) / "control"
        backing = Path(self.folder) / "backing"
        self.state.mkdir(mode=0o700)
        backing.mkdir(mode=0o700)
        disk = subprocess.Popen([python, str(SLOW_DISK), str(backing), str(self.state), str(self.control)])
        self.addCleanup(lambda: (subprocess.run(["umount", "-l", str(self.state)], check=False), disk.kill(), disk.wait()))
        self.addCleanup(self.answer)
        wait_for("the slow disk", lambda: os.path.ismount(self.state))

    def slow(self, seconds):
        self.control.write_text(str(seconds))

    def hang(self):
        (Path(str(self.control) + ".hang")).touch()

    def answer(self):
        self.control.unlink(missing_ok=True)
        Path(str(self.control) + ".hang").unlink(missing_ok=True)

    def test_24_runs_that_end_at_once_on_a_slow_disk_stop_no_tick(self):
        """The attacker ends 24 runs at once while each write and sync takes 200 ms: ticks continue, and the victim is judged."""
        daemon = self.daemon(state=str(self.state))
        victim = self.train_as(VICTIM, daemon, None)
        (job,) = wait_for("the victim's job", lambda: self.runs(daemon))
        self.slow(0.2)
        ticks = Ticks(daemon)
        self.failing_runs(ATTACKER, daemon, 24)
        self.let_go()
        self.assertEqual(victim.wait(PATIENCE), 1)
        self.assertEqual(daemon.verdict(job)["code"], "X1")
        self.wait_for_finals(daemon, 25)
        longest = ticks.stop()
        print(f"longest time between two ticks: {longest:.2f} s", file=sys.stderr)
        self.assertLess(longest, 6)  # two on a machine that is not busy
        self.answer()
        wait_for("all verdicts on the disk", lambda: self.waiting(daemon) == 0)
        told = self.finals(daemon)
        daemon.kill()
        self.assertEqual(self.finals(self.daemon(state=str(self.state))), told)

    def test_a_disk_that_hangs_stops_no_tick_and_is_said(self):
        """The disk stops responding while the attacker's runs end: ticks continue, the victim is judged, and SIGTERM ends the daemon."""
        daemon = self.daemon(state=str(self.state))
        victim = self.train_as(VICTIM, daemon, None)
        (job,) = wait_for("the victim's job", lambda: self.runs(daemon))
        self.hang()
        ticks = Ticks(daemon)
        self.failing_runs(ATTACKER, daemon, 4)
        wait_for("the gauge", lambda: (daemon.metric("rankscope_disk_behind_seconds") or 0) > 2)
        notes = wait_for("the note", lambda: daemon.verdicts()[job]["data_quality"].get("notes"))
        self.assertTrue(any("does not respond" in note for note in notes), notes)
        self.let_go()
        self.assertEqual(victim.wait(PATIENCE), 1)
        self.assertEqual(daemon.verdict(job)["code"], "X1")
        self.assertGreater(self.waiting(daemon), 0)
        self.assertLess(ticks.stop(), 6)
        begin = time.monotonic()
        daemon.process.terminate()
        # The kernel keeps the thread that waits for the disk, and with it the process; all others are gone.
        wait_for("the end of all but one thread", lambda: daemon.process.poll() is not None or self.is_gone_but_for_the_disk(daemon))
        took = time.monotonic() - begin
        print(f"SIGTERM with a disk that hangs: {took:.2f} s", file=sys.stderr)
        self.assertLess(took, 5)  # one second on a machine that is not busy
        self.answer()
        self.assertEqual(daemon.process.wait(PATIENCE), 0)

    def is_gone_but_for_the_disk(self, daemon):
        return Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


class FullDisk(HostileTest, DiskTest):
    def test_verdicts_missed_on_a_full_disk_are_written_when_there_is_room(self):
        """The disk of state.dir fills up while runs end: their verdicts are served, and stored as soon as there is space."""
        state = self.mount("-t", "tmpfs", "-o", "size=8m", "none")
        daemon = self.daemon(state=str(state))
        ballast = state / "ballast"
        file = os.open(ballast, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            while os.write(file, bytes(4096)):
                pass
        except OSError as full:
            self.assertEqual(full.errno, errno.ENOSPC)
        os.close(file)
        self.failing_runs(VICTIM, daemon, 12)
        told = self.wait_for_finals(daemon, 12)
        wait_for("the gauge", lambda: (self.waiting(daemon) or 0) >= 12)
        wait_for("the note", lambda: all(any("not on the disk yet" in note for note in verdict["data_quality"].get("notes", []))
                                         for verdict in self.runs(daemon).values()))
        ballast.unlink()
        wait_for("all verdicts on the disk", lambda: self.waiting(daemon) == 0)
        self.wait_for_ticks(daemon)
        self.assertFalse(any("not on the disk yet" in note for verdict in self.runs(daemon).values()
                             for note in verdict["data_quality"].get("notes", [])))
        daemon.kill()
        self.assertEqual(self.finals(self.daemon(state=str(state))), told)

    def test_one_users_recordings_do_not_push_out_anothers(self):
        """The attacker fills the budget of recordings of the node: his own are removed, and the victim's older one stays."""
        state = Path(self.folder) / "state"
        config = Path(self.folder) / "config.yaml"
        config.write_text("state: {job_bytes: 1MiB, total_bytes: 1MiB}\n")
        daemon = self.daemon("--config.file", str(config), state=str(state))
        self.failing_runs(VICTIM, daemon, 1)
        (job,) = self.wait_for_finals(daemon, 1)
        chatter = "yes 'a line that takes room in a recording and says nothing of any step or loss' | head -n 20000; exit 3"
        for i in range(12):
            self.start_as(ATTACKER, self.program, "run", "--socket", daemon.socket, "--dir", self.home(ATTACKER) / f"full{i}", "--",
                          "/bin/sh", "-c", chatter).wait(PATIENCE)
        wait_for("the attacker's oldest to go", lambda: re.search("recording removed", daemon.text()))
        self.assertTrue((state / "jobs" / job).exists(), daemon.text())


class KilledDaemon(HostileTest, DiskTest):
    def test_what_was_said_is_found_again_after_kill_9(self):
        """The daemon is killed at the moment at which a verdict is served: the restarted daemon serves the same verdict."""
        daemon = self.daemon()
        for i in range(3):
            self.failing_runs(VICTIM, daemon, 4, first=4 * i)
            told = self.wait_for_finals(daemon, 4 * (i + 1))
            daemon.kill()
            daemon = self.daemon()
            found = self.wait_for_finals(daemon, len(told))
            self.assertEqual({job: found.get(job) for job in told}, told)

    def test_a_verdict_that_the_disk_has_changed_is_not_served(self):
        """One byte of a stored verdict changes on the disk, and another verdict is truncated: both are reported and counted, and no
        wrong verdict is served."""
        daemon = self.daemon()
        self.failing_runs(VICTIM, daemon, 3)
        told = self.wait_for_finals(daemon, 3)
        wait_for("all verdicts on the disk", lambda: self.waiting(daemon) == 0)
        self.assertEqual(daemon.stop(), 0)
        flipped, cut, whole = sorted((Path(daemon.state) / "verdicts").glob("run-*.pb"))
        data = bytearray(flipped.read_bytes())
        at = data.index(told[flipped.stem].encode())
        data[at] ^= 1  # another family's code
        flipped.write_bytes(data)
        cut.write_bytes(cut.read_bytes()[:-40])
        daemon = self.daemon()
        self.assertEqual(set(self.finals(daemon)), {whole.stem})
        self.assertEqual(daemon.metric("rankscope_documents_damaged_total"), 2)
        self.assertRegex(daemon.text(), re.escape("damaged verdicts"))


class Ending(HostileTest, DiskTest):
    def test_sigterm_ends_it_amid_sessions_and_clients_that_stall(self):
        """The attacker holds 24 sessions and 100 HTTP connections open and sends nothing: SIGTERM still ends the daemon."""
        daemon = self.daemon()
        runs = [self.start_as(ATTACKER, self.program, "run", "--socket", daemon.socket, "--dir", self.home(ATTACKER) / f"e{i}", "--",
                              "/bin/sh", "-c", "sleep 600") for i in range(24)]
        host, port = daemon.address.rsplit(":", 1)
        clients = self.python_as(ATTACKER, "import socket, sys, time\n"
                                 f"held = [socket.create_connection(('{host}', {port})) for _ in range(100)]\n"
                                 "for one in held: one.send(b'GET /metrics HT')\n"
                                 "print('held', flush=True)\ntime.sleep(600)", stdout=subprocess.PIPE)
        self.assertEqual(clients.stdout.readline(), b"held\n")
        self.addCleanup(clients.stdout.close)
        wait_for("24 jobs", lambda: len(self.runs(daemon)) >= 24)
        begin = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.process.wait(PATIENCE), 0)
        took = time.monotonic() - begin
        print(f"SIGTERM amid 24 sessions and 100 clients that stall: {took:.2f} s", file=sys.stderr)
        self.assertLess(took, 5)  # one second on a machine that is not busy
        for run in runs:
            run.kill()


if __name__ == "__main__":
    run_tests()
