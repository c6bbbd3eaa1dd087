# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A Slurm job of which no process is on this node: whose it is says Slurm's record."""
import ctypes
import json
import os
from pathlib import Path

from hostile_case import PATIENCE, VICTIM, HostileTest, run_tests, wait_for
from run_case import RunSocket

CLONE_NEWNS = 0x20000
FOLDERS = ("/usr/bin", "/usr/local/bin")

# In the place of Slurm's programs: the controller knows one job, accounting another, which is over.
SCONTROL = """#!/bin/sh
for last; do :; done
case $last in
884110) echo "JobId=884110 JobName=a UserId=victim({uid}) JobState=PENDING Reason=Priority Restarts=0 ExitCode=0:0 WorkDir=/" ;;
*) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
esac
"""
SACCT = """#!/bin/bash
for a; do case $a in --delimiter=*) s=${a#*=} ;; esac; done
echo "JobIDRaw${s}JobID${s}State${s}User${s}SubmitLine$s"
case "$*" in *884111*) echo "884111${s}884111${s}COMPLETED${s}daemon${s}sbatch a.sh$s" ;; esac
"""


class RunSlurmRecord(HostileTest, RunSocket):
    SPEAK = """
recording = Recording("recording-" + sys.argv[2])
recording.mark(sys.argv[2], BEGIN)
recording.line(sys.argv[2], "RuntimeError: squatted")
client = Client(SOCKET)
client.hello(sys.argv[2], "recording-" + sys.argv[2], own_key())
try:
    client.wake()
    client.send(bytes([67, 0]))
except OSError:  # he is out already
    pass
done("refused" if client.refused() else "heard")
"""

    def daemon(self, *flags):
        programs = Path(self.folder) / "slurm"
        programs.mkdir(exist_ok=True)
        for name, text in (("scontrol", SCONTROL.format(uid=VICTIM)), ("sacct", SACCT)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        unshare = ctypes.CDLL(None, use_errno=True).unshare

        def enter():
            """Slurm's programs are ours, for the daemon alone."""
            if unshare(CLONE_NEWNS) != 0:
                os._exit(1)
            os.system("mount --make-rprivate /; test -e /usr/bin/scontrol || mount -t tmpfs none /usr/local/bin;"
                      f"test -e /usr/bin/scontrol || cp {programs}/* /usr/local/bin;"
                      + "".join(f"test ! -e {folder}/{name} || mount --bind {programs}/{name} {folder}/{name};"
                                for folder in FOLDERS for name in ("scontrol", "sacct"))
                      # The real one would ask another cluster than these.
                      + "".join(f"test ! -e {folder}/squeue || mount --bind /dev/null {folder}/squeue;" for folder in FOLDERS))
        daemon = super().daemon(*flags, preexec=enter)
        wait_for("Slurm", lambda: daemon.metric('rankscope_source_up{source="slurm"}') == 1)
        return daemon

    def test_slurm_knows_the_owner(self):
        """The attacker names the victim's Slurm job, which is pending or has ended, in his environment: he is refused each time."""
        daemon = self.daemon()
        for count, job in enumerate(("884110", "884111", "884110")):
            said = self.attack(daemon, self.SPEAK, job, environment={"SLURM_JOB_ID": job, "SLURM_JOB_UID": str(VICTIM)})
            self.assertEqual(said, "refused", job)
            wait_for("the count", lambda count=count: self.count(daemon, "denied") == count + 1)
        self.wait_for_ticks(daemon)
        self.assertNotIn("squatted", json.dumps(daemon.verdicts()))

    def test_the_owner_by_slurms_record(self):
        """No attack: the owner's wrapper, outside the job's cgroup, is observed from its first line."""
        daemon = self.daemon()
        run = self.start_as(VICTIM, self.program, "run", "--socket", daemon.socket, "--dir", self.home(VICTIM) / "r", "--",
                            "/usr/bin/python3", Path(self.folder) / "train.py", self.go, "raise", environment={"SLURM_JOB_ID": "884110"})
        wait_for("its text", lambda: daemon.lines("884110") > 0)
        self.assertEqual(self.attack(daemon, self.SPEAK, "884110"), "refused")
        verdict = self.victim_is_judged(daemon, run, "884110")
        self.assertNotIn("squatted", json.dumps(verdict))

    def test_a_number_that_slurm_does_not_know(self):
        """No attack: a run with a number that Slurm does not know is observed, as on a node without Slurm."""
        daemon = self.daemon()
        run = self.start_as(VICTIM, self.program, "run", "--socket", daemon.socket, "--dir", self.home(VICTIM) / "r", "--", "echo", "hi",
                            environment={"SLURM_JOB_ID": "884112"})
        self.assertEqual(run.wait(PATIENCE), 0)
        wait_for("its text", lambda: daemon.lines("884112") > 0)


if __name__ == "__main__":
    run_tests()
