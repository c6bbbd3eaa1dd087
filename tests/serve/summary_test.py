# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A run that goes on from another, on another node: two daemons with names, state directories and Slurm's commands of their
own, and what is left of the first job on its way from one to the other."""
import ctypes
import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

from serve_test import Daemon, ServeTest, wait_for

HOOKS = Path(__file__).resolve().parents[2] / "deploy" / "slurm"
CLONE_NEWNS, CLONE_NEWUTS = 0x00020000, 0x04000000
COMMANDS = ("scontrol", "sacct", "sdiag")

# Only what the wrapper tells: both daemons are on one machine, and each would see the other's processes.
CONFIG = """\
sources: {{procfs: {{enabled: false}}, proc_connector: {{enabled: false}}, process: {{enabled: false}},
  stdio: {{enabled: false}}, stdout_tail: {{enabled: false}}, wait: {{enabled: false}}, network: {{enabled: false}},
  io: {{enabled: false}}, cuda: {{enabled: false}}, nccl: {{enabled: false}}, nccl_ras: {{enabled: false}},
  nccl_dumps: {{enabled: false}}, infiniband: {{enabled: false}}, kmsg: {{enabled: false}}, nvml: {{enabled: false}},
  dcgm: {{enabled: false}}, job_mapping: {{enabled: false}}}}
slurm: {{role: {role}, controller_url: "{url}"}}
"""

TRAINER = """
import os, signal, sys, time
for step in range(1, 61):
    print(f"step {step} loss {0.5 + 3 * 0.97 ** step:.4f} lr 0.05 step_time 0.053s", flush=True)
    time.sleep(0.05)
if sys.argv[1] == "dies":
    print("saved checkpoint /scratch/Run7/step_60.pt", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


class OnAnotherNode(ServeTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("gives each daemon a host name of its own: needs root")
        libc = ctypes.CDLL(None, use_errno=True)
        probe = subprocess.run(["unshare", "--mount", "--uts", "true"], capture_output=True)
        if probe.returncode != 0:
            self.skipTest("no host names and mounts of its own here: " + probe.stderr.decode().strip())
        self.unshare = libc.unshare
        (Path(self.folder) / "train.py").write_text(TRAINER)
        self.comments = Path(self.folder) / "comments"

    def slurm(self, folder, jobs=""):
        """Programs in the place of Slurm's: `comments` is what accounting has, in small letters as sacctmgr writes."""
        folder.mkdir()
        scripts = {
            "scontrol": f"case \"$*\" in *node*) ;; *hostnames*) echo n1 ;; *) echo '{jobs}' ;; esac",
            "sdiag": "true",
            "sacct": "for a; do case $a in --delimiter=*) s=${a#*=} ;; esac; done\n"
                     "case \"$*\" in *,AdminComment*) echo \"JobIDRaw${s}JobID${s}Comment${s}AdminComment$s\"\n"
                     f"  test ! -e {self.comments} || echo \"8840${{s}}8840${{s}}$(cat {self.comments})${{s}}$s\" ;; esac",
            "sacctmgr": f"for last; do :; done\nprintf %s \"${{last#*=}}\" | tr A-Z a-z >{self.comments}.new\n"
                        f"mv {self.comments}.new {self.comments}",
        }
        for name, script in scripts.items():
            (folder / name).write_text(f"#!/bin/bash\n{script}\n")
            (folder / name).chmod(0o755)
        return folder

    def node(self, name, role="node", url="", jobs=""):
        home = Path(self.folder) / name
        home.mkdir()
        (home / "config.yaml").write_text(CONFIG.format(role=role, url=url))
        commands = self.slurm(home / "bin", jobs)

        def enter():
            if self.unshare(CLONE_NEWNS | CLONE_NEWUTS) != 0:
                os._exit(1)
            # What else lies in /opt, this checkout perhaps, stays where it is.
            os.system(f"hostname {name}; mount --make-rprivate /; mkdir {home}/opt; mount --rbind /opt {home}/opt;"
                      f"mount -t tmpfs none /opt; cd {home}/opt; for each in */; do test \"$each\" = slurm/ -o ! -d \"$each\" ||"
                      "{ mkdir \"/opt/$each\"; mount --rbind \"$each\" \"/opt/$each\"; }; done; mkdir -p /opt/slurm/bin;"
                      f"cp {commands}/* /opt/slurm/bin;"
                      + "".join(f"test ! -e {folder}/{command} || mount --bind {commands}/{command} {folder}/{command};"
                                for folder in ("/usr/bin", "/usr/local/bin") for command in COMMANDS)
                      # The real one would ask another cluster than these.
                      + "".join(f"test ! -e {folder}/squeue || mount --bind /dev/null {folder}/squeue;"
                                for folder in ("/usr/bin", "/usr/local/bin")))

        daemon = Daemon(home, "--config.file", str(home / "config.yaml"), preexec=enter)
        self.addCleanup(daemon.stop)
        return daemon

    def job(self, daemon, job, how, **environment):
        self.environment.update(SLURM_JOB_ID=job, SLURM_STEP_ID="0", SLURM_NODEID="0", RANK="0", LOCAL_RANK="0",
                                WORLD_SIZE="1", **environment)
        wrapper = self.run_wrapped(daemon, job, sys.executable, str(Path(self.folder) / "train.py"), how)
        wrapper.wait(60)

    def train_on_n1(self):
        first = self.node("n1")
        self.job(first, "8840", "dies")
        self.assertEqual(first.verdict("8840")["node"], "n1")
        status, text = first.get("/summary?job_id=8840")
        self.assertEqual(status, 200, text)
        left = json.loads(text)
        self.assertEqual((left["node"], left["last_step"], left["program"]), ("n1", 60, "train.py"))
        self.assertEqual(left["checkpoints"][0]["path"], "/scratch/Run7/step_60.pt")
        self.assertLessEqual(len(left["line"]), 1024)
        return first

    def run_hook(self, first):
        """As slurmctld does after the job."""
        hooks = Path(self.folder) / "hooks"
        hooks.mkdir()
        (hooks / "epilog_slurmctld").write_bytes((HOOKS / "epilog_slurmctld").read_bytes())
        (hooks / "epilog_slurmctld").chmod(0o755)
        commands = self.slurm(Path(self.folder) / "controllers")
        (hooks / "rankscope.conf").write_text(f"url=http://{first.address}\nslurm_bin={commands}\n")
        subprocess.run([hooks / "epilog_slurmctld"], env={"SLURM_JOB_ID": "8840", "SLURM_JOB_NODELIST": "n1"}, check=True)
        wait_for("the comment", self.comments.exists)
        self.assertNotRegex(self.comments.read_text(), "[A-Z]")

    def goes_on(self, daemon, origin):
        """The second job begins again where it should have gone on."""
        self.job(daemon, "8841", "ends", SLURM_JOB_DEPENDENCY="afternotok:8840")

        def look():
            found = daemon.verdicts().get("8841")
            return found if found and found["family"] == "silent_resume" else None
        verdict = wait_for(f"the verdict; {daemon.text()} {daemon.get('/verdict?job_id=8841')}", look)
        self.assertEqual((verdict["node"], verdict["sub"]), ("n2", "not_loaded"))
        told = [shown for shown in verdict["shows"] if shown["signal"] == "earlier_job"]
        self.assertEqual(len(told), 1, verdict["shows"])
        self.assertIn("job 8840 on n1 had reached step 60", told[0]["text"])
        self.assertIn("/scratch/Run7/step_60.pt", told[0]["text"])
        self.assertEqual((told[0]["store"], told[0]["cite"]["field"], told[0]["cite"]["origin"]),
                         ("scheduler", "parent_summary", origin))

    def test_by_the_comment_in_accounting(self):
        self.run_hook(self.train_on_n1())
        second = self.node("n2")
        self.assertEqual(second.get("/summary?job_id=8840")[0], 404)
        self.goes_on(second, "accounting")

    def test_by_the_instance_beside_the_controller(self):
        self.run_hook(self.train_on_n1())
        ended = int(time.time()) - 120  # long enough ago for its comment to be there
        controller = self.node("ctl", role="controller", jobs=(
            f"JobId=8840 JobName=a JobState=FAILED Reason=NonZeroExitCode Restarts=0 ExitCode=0:9 SubmitTime={ended - 60} "
            f"StartTime={ended - 50} EndTime={ended} Partition=gpu NodeList=n1 WorkDir=/home/ada"))
        wait_for(f"the controller's summary; {controller.text()}",
                 lambda: controller.get("/summary?job_id=8840")[0] == 200)
        self.comments.unlink()  # accounting forgets
        self.goes_on(self.node("n2", url=f"http://{controller.address}"), "controller")

    def test_it_outlives_the_daemon_that_saw_the_job(self):
        first = self.train_on_n1()
        before = first.get("/summary?job_id=8840")[1]
        kept = Path(first.state) / "summaries" / "8840"  # a thread of its own writes it
        wait_for("the summary on the disk", kept.exists)
        first.kill()
        again = self.daemon(state=first.state)
        self.assertEqual(again.get("/summary?job_id=8840")[1], before)


if __name__ == "__main__":
    outcome = unittest.main(verbosity=2, exit=False).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
