# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Real processes in real cgroups that look like Slurm's, and whose the daemon says they are."""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from serve_test import ServeTest, wait_for

CGROUPS = Path("/sys/fs/cgroup")
NOBODY = 65534


class SlurmGroup:
    """A job's directories as Slurm makes them: of v1 below the freezer, else of v2."""

    def __init__(self, job, uid=0):
        self.node = f"t{os.getpid()}"
        step = Path(f"uid_{uid}/job_{job}/step_0")
        if (CGROUPS / "cgroup.controllers").exists():
            self.top = CGROUPS / f"{self.node}_slurmstepd.scope"
            self.path = self.top / f"job_{job}/step_0/user/task_0"
        else:
            self.top = CGROUPS / f"freezer/slurm_{self.node}"
            self.path = self.top / step / "task_0"
        self.path.mkdir(parents=True)

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        """True once nobody is in it any more."""
        try:
            for folder, _, _ in sorted(os.walk(self.top), key=lambda entry: -len(entry[0])):
                os.rmdir(folder)
        except OSError:
            return False
        return True


class CgroupAttribution(ServeTest):
    JOB = "884100"

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("makes cgroups: needs root")
        try:
            self.group = SlurmGroup(self.JOB)
        except OSError as error:
            self.skipTest(f"cannot make a cgroup: {error}")
        self.addCleanup(lambda: wait_for("the cgroup to be empty", self.group.remove))

    def start(self, environment, inside=True, uid=None, command=("sleep", "600")):
        def before():
            if inside:
                self.group.enter()
            if uid is not None:
                os.setuid(uid)
        process = subprocess.Popen(command, env={"PATH": os.environ["PATH"], **environment}, preexec_fn=before,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process.pid

    def explained(self, daemon, pid):
        return wait_for(f"process {pid} to be known", lambda: (
            answer[1] if (answer := daemon.get(f"/explain?pid={pid}"))[0] == 200 else None))

    def test_the_cgroup_wins_and_what_contradicts_it_is_said(self):
        daemon = self.daemon()
        pid = self.start({"SLURM_JOB_ID": "99", "SLURM_STEP_ID": "7", "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2",
                          "MASTER_ADDR": "n1", "TORCHELASTIC_RUN_ID": "x"})
        text = self.explained(daemon, pid)
        self.assertIn(f"job {self.JOB}: by its cgroup; SLURM_JOB_ID in its environment says 99\n", text)
        self.assertIn("step 0: by its cgroup; SLURM_STEP_ID in its environment says 7\n", text)
        self.assertIn("rank 1: by RANK\n", text)
        self.assertIn("launcher torchrun: by TORCHELASTIC_RUN_ID in its environment\n", text)
        info = wait_for("its row", lambda: re.search(
            rf'^rankscope_rank_info\{{job_id="{self.JOB}",rank="1",(.*)\}} 1$', daemon.get("/metrics")[1], re.M))
        self.assertIn('step_id="0",local_rank="1"', info[1])
        self.assertIn(f'node="{self.group.node}"', info[1])
        self.assertNotIn("99", {verdict for verdict in daemon.verdicts()})

    def test_a_process_without_any_environment_is_the_jobs_and_no_rank(self):
        daemon = self.daemon()
        text = self.explained(daemon, self.start({}))
        self.assertIn(f"job {self.JOB}: by its cgroup\n", text)
        self.assertIn("role: launcher\n", text)
        self.assertIn("no rank: ", text)

    def test_another_users_environment_names_no_job(self):
        daemon = self.daemon()
        self.explained(daemon, self.start({"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": self.JOB}))
        liar = self.start({"RANK": "1", "WORLD_SIZE": "2", "SLURM_JOB_ID": self.JOB}, inside=False, uid=NOBODY)
        text = self.explained(daemon, liar)
        self.assertRegex(text, r"job proc-[0-9a-f]{8}: ")
        self.assertIn(f"SLURM_JOB_ID in its environment says {self.JOB}, which is another user's", text)

    def test_hostile_environments(self):
        daemon = self.daemon()
        flood = {f"X{i}": "1" for i in range(10_000)}
        large = {f"BIG{i}": "x" * (120 * 1024) for i in range(14)}  # of one variable the kernel takes 128 KiB
        cases = {
            "10,000 variables": {**flood, "RANK": "2", "WORLD_SIZE": "3"},
            "1.7 MB": {**large, "RANK": "2", "WORLD_SIZE": "3"},
            "no text": {"RANK": "2", "WORLD_SIZE": "3", "SLURM_JOB_NAME": "\udcff\udcfe\udc80", "MASTER_ADDR": "\udcff\n"},
        }
        pids = {name: self.start(environment) for name, environment in cases.items()}
        for name, pid in pids.items():
            with self.subTest(name):
                text = self.explained(daemon, pid)
                wait_for("the whole environment", lambda pid=pid: "rank 2: by RANK" in self.explained(daemon, pid))
                self.assertIn(f"job {self.JOB}: by its cgroup\n", text)
        # Its own words about itself, once it runs: a block without a terminator, of no variables at all.
        scrubbed = self.start({"RANK": "0", "WORLD_SIZE": "1"}, command=(
            sys.executable, "-c", "import ctypes, time\n"
            "c = ctypes.CDLL(None, use_errno=True)\n"
            "text = ctypes.create_string_buffer(b'SLURM_JOB_ID=1' + b'A' * 4000)\n"
            "at = ctypes.c_ulong(ctypes.addressof(text))\n"
            "c.prctl(35, 10, at, 0, 0)\nc.prctl(35, 11, ctypes.c_ulong(at.value + 4014), 0, 0)\ntime.sleep(600)"))
        self.assertIn(f"job {self.JOB}: by its cgroup\n", self.explained(daemon, scrubbed))
        self.assertEqual(daemon.get("/-/healthy")[0], 200)
        self.assertEqual(daemon.get("/metrics")[0], 200)


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
