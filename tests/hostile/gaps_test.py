# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What is believed of a run that ended while the daemon was away, and of the time in which nobody listened."""
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from hostile_case import ATTACKER, PATIENCE, VICTIM, HostileTest, run_tests
from serve_test import BINARY, wait_for

PYTHON = "/usr/bin/python3"
CARD_FELL_OFF = "print('NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.', flush=True)"


class LeftRuns:
    """What the tests of folders share; it has none itself."""

    def begin(self, daemon, job, uid, end="raise"):
        """A run of this user's that waits at step 20, heard up to there."""
        run = self.train_as(uid, daemon, job, end)
        wait_for("its lines", lambda: daemon.lines(job) >= 20)
        self.wait_for_ticks(daemon, 1)
        return run

    def away(self, daemon, run):
        """The daemon is killed, and the run ends; only then is a daemon there again."""
        daemon.kill()
        self.let_go()
        run.wait(PATIENCE)

    def notes(self, verdict):
        return "\n".join(verdict["data_quality"]["notes"])

    def foreign_recording(self, uid, job, text):
        """The folder of a run of that user's, under any job's name, that no daemon has heard of."""
        folder = self.home(uid) / f"foreign-{job}"
        self.run_as(uid, self.program, "run", "--socket", str(Path(self.folder) / "nobody.sock"), "--job-id", job, "--dir", folder, "--",
                    PYTHON, "-c", text)
        return folder


class Gaps(HostileTest, LeftRuns):
    def test_the_end_that_nobody_saw_is_in_the_runs_own_folder(self):
        """No attack: a run that ended while the daemon was down is judged from its own directory, and the verdict says so."""
        daemon = self.daemon()
        self.away(daemon, self.begin(daemon, "1001", VICTIM))
        verdict = self.daemon().verdict("1001")
        self.assertEqual((verdict["code"], verdict["exception_type"], verdict["exit_code"]), ("X1", "KeyError", 1))
        self.assertIs(verdict["data_quality"]["exact"], False)
        self.assertIn("from the recording in the run's own folder", self.notes(verdict))

    def test_a_recording_of_another_user_is_not_read(self):
        """The directory of the attacker's run is a symbolic link to the victim's recording of the same name: nothing of it is read."""
        secret = self.foreign_recording(VICTIM, "1002", "print('the victims swordfish', flush=True); raise KeyError('swordfish')")
        daemon = self.daemon()
        run = self.begin(daemon, "1002", ATTACKER)
        self.away(daemon, run)
        mine = self.home(ATTACKER) / "1002"
        shutil.rmtree(mine / "recording")
        os.symlink(secret / "recording", mine / "recording")
        daemon = self.daemon()
        verdict = daemon.verdict("1002")
        self.assertEqual(verdict["code"], "U0")
        self.assertNotIn("swordfish", self.everything_served(daemon))

    def test_a_folder_that_is_another_users_is_not_read(self):
        """The attacker moves the victim's recording to where his own was: it is not read, because it is not his."""
        secret = self.foreign_recording(VICTIM, "1003", "print('the victims swordfish', flush=True); raise KeyError('swordfish')")
        daemon = self.daemon()
        run = self.begin(daemon, "1003", ATTACKER)
        self.away(daemon, run)
        mine = self.home(ATTACKER) / "1003"
        shutil.rmtree(mine / "recording")
        shutil.copytree(secret / "recording", mine / "recording")
        for path in (mine / "recording", *(mine / "recording").iterdir()):
            os.chown(path, VICTIM, VICTIM)
            path.chmod(0o755)
        daemon = self.daemon()
        self.assertEqual(daemon.verdict("1003")["code"], "U0")
        self.assertNotIn("swordfish", self.everything_served(daemon))


class Folders(HostileTest, LeftRuns):
    def test_a_recording_speaks_of_no_other_job(self):
        """The attacker puts a recording about the victim's job into his own run's directory: the victim's verdict does not change."""
        daemon = self.daemon()
        victims = self.wrapped_as(VICTIM, daemon, "1004", "/usr/bin/sleep", "600")
        wait_for("the victim's job", lambda: "1004" in daemon.verdicts())
        run = self.begin(daemon, "1005", ATTACKER)
        self.away(daemon, run)
        forged = self.foreign_recording(ATTACKER, "1004", "raise MemoryError('forged')")
        mine = self.home(ATTACKER) / "1005"
        shutil.rmtree(mine / "recording")
        shutil.move(forged / "recording", mine / "recording")
        daemon = self.daemon()
        self.assertEqual(daemon.verdict("1005")["code"], "U0")
        self.assertEqual(daemon.verdicts()["1004"]["state"], "live")
        self.assertNotIn("forged", self.everything_served(daemon))
        self.assertIsNone(victims.poll())

    def test_a_recording_accuses_no_card(self):
        """The attacker replaces the recording of his own run by one that blames a GPU: it counts no more than text."""
        daemon = self.daemon()
        run = self.begin(daemon, "1006", ATTACKER)
        self.away(daemon, run)
        forged = self.foreign_recording(ATTACKER, "1006", "\n".join(["print('x')"] * 60 + [CARD_FELL_OFF, "raise SystemExit(1)"]))
        mine = self.home(ATTACKER) / "1006"
        shutil.rmtree(mine / "recording")
        shutil.move(forged / "recording", mine / "recording")
        verdict = self.daemon().verdict("1006")
        self.assertIn(verdict["ground"], ("heuristic", "even_odds", "lookalike", "one_source"))
        self.assertNotEqual(verdict["tier"], "P")

    def test_a_folder_that_hangs_or_is_none_holds_nobody_up(self):
        """A pipe, a loop of symbolic links or nothing replaces a recording: ticks continue, and the end of the run is reported as not
        observed."""
        daemon = self.daemon()
        run = self.begin(daemon, "1007", ATTACKER)
        self.away(daemon, run)
        recording = self.home(ATTACKER) / "1007" / "recording"
        for path in recording.iterdir():
            path.unlink()
        os.mkfifo(recording / "bulk-00000001.rec")
        os.symlink("facts.rec", recording / "facts.rec")
        os.chown(recording / "bulk-00000001.rec", ATTACKER, ATTACKER)
        daemon = self.daemon()
        self.wait_for_ticks(daemon, 3)
        verdict = daemon.verdict("1007")
        self.assertEqual(verdict["code"], "U0")
        self.assertIn("how the command ended is not known", self.notes(verdict))

    def test_a_crash_in_a_gap_is_never_healthy(self):
        """The attacker's run trains, is killed while the daemon is down, and its directory is removed: the run is not called healthy."""
        daemon = self.daemon()
        run = self.begin(daemon, "1008", ATTACKER)
        daemon.kill()
        for child in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        run.kill()
        run.wait(PATIENCE)
        shutil.rmtree(self.home(ATTACKER) / "1008")
        verdict = self.daemon().verdict("1008")
        self.assertEqual(verdict["code"], "U0")
        self.assertIs(verdict["data_quality"]["exact"], False)


class Stopped(HostileTest):
    def test_a_daemon_that_was_stopped_accuses_nobody(self):
        """The daemon is stopped for some time and continues: no job is called hung or paused, and the gap is reported."""
        daemon = self.daemon()
        run = self.train_as(VICTIM, daemon, "1010", "end")
        wait_for("its lines", lambda: daemon.lines("1010") >= 20)
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            wait_for("the stop", lambda: Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
            stopped = time.monotonic()
            wait_for("some seconds", lambda: time.monotonic() - stopped > 11)
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        self.wait_for_ticks(daemon, 3)
        live = daemon.verdicts()["1010"]
        self.assertNotIn(live["code"], ("C1", "C2", "C3", "X14"))
        self.assertTrue(any("rankscope was stopped" in note for note in live["data_quality"]["notes"]), live["data_quality"])
        self.let_go()
        self.assertEqual(run.wait(PATIENCE), 0)
        verdict = daemon.verdict("1010")
        self.assertEqual(verdict["code"], "G1")
        self.assertIs(verdict["data_quality"]["exact"], False)

    def test_a_replay_tells_the_same_gaps(self):
        """No attack: the replay of a recording with a gap gives the same verdict and reports the same gap."""
        daemon = self.daemon()
        run = self.train_as(VICTIM, daemon, "1011", "raise")
        wait_for("its lines", lambda: daemon.lines("1011") >= 20)
        self.wait_for_ticks(daemon, 1)
        daemon.kill()
        daemon = self.daemon()
        self.let_go()
        self.assertEqual(run.wait(PATIENCE), 1)
        live = daemon.verdict("1011")
        daemon.stop()
        replayed = subprocess.run([BINARY, "replay", "--format", "json", Path(self.folder) / "state/jobs/1011"], capture_output=True,
                                  text=True, check=False, timeout=PATIENCE)
        self.assertEqual(live["code"], "X1", live)
        for note in live["data_quality"]["notes"]:
            self.assertIn(note.replace('"', '\\"'), replayed.stdout)
        self.assertIn('"exact":false', replayed.stdout)


if __name__ == "__main__":
    run_tests()
