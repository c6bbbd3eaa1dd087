# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The run socket: who speaks for which job, and about which processes."""
import json
import os
import subprocess
import sys
from pathlib import Path

from hostile_case import ATTACKER, PATIENCE, VICTIM, HostileTest, become, run_tests, wait_for
from run_case import RunSocket

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "serve"))
from attribution_test import SlurmGroup  # noqa: E402


class RunClaims(HostileTest, RunSocket):
    """Names of jobs."""

    def test_the_victims_live_job_is_not_ended(self):
        """The attacker connects with the victim's job id and reports the end of the job: the victim's job continues, and is judged by
        its own observations."""
        daemon = self.daemon()
        run = self.victim_trains(daemon)
        said = self.attack(daemon, """
recording = Recording("recording")
recording.mark("victim", BEGIN)
recording.line("victim", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
recording.mark("victim", END, status=9)
recording.mark("victim", CLOSED)
client = Client(SOCKET)
client.hello("victim", "recording")
try:
    client.end()
except OSError:
    pass
done("refused" if client.refused() else "heard")
""")
        self.assertEqual(said, "refused")
        wait_for("the count", lambda: self.count(daemon, "denied") == 1)
        self.assertEqual(daemon.verdicts()["victim"]["state"], "live")
        verdict = self.victim_is_judged(daemon, run)
        self.assertNotIn("OutOfMemory", json.dumps(verdict))

    def test_the_victims_ended_job_stays_as_it_was_judged(self):
        """The attacker opens the victim's job again after its end: the verdict does not change."""
        daemon = self.daemon()
        before = self.victim_is_judged(daemon, self.victim_trains(daemon))
        self.assertEqual(self.attack(daemon, """
recording = Recording("recording")
recording.mark("victim", BEGIN)
client = Client(SOCKET)
client.hello("victim", "recording")
done("refused" if client.refused() else "heard")
"""), "refused")
        self.wait_for_ticks(daemon)
        self.assertEqual(daemon.verdict("victim")["shows"], before["shows"])

    def test_a_name_that_run_makes_is_its_makers(self):
        """The attacker connects with a job id that the victim's `run` could have generated: he is refused; the victim is not."""
        daemon = self.daemon()
        script = """
Recording("recording").mark(sys.argv[2], BEGIN)
client = Client(SOCKET)
client.hello(sys.argv[2], "recording")
try:
    client.wake()
    client.send(bytes([67, 0]))
except OSError:
    pass  # refused already
done("refused" if client.refused() else "heard")
"""
        self.assertEqual(self.attack(daemon, script, f"run-{VICTIM}-deadbeef"), "refused")
        self.assertEqual(self.attack(daemon, script, f"run-{ATTACKER}-deadbeef"), "heard")
        self.assertEqual(self.attack(daemon, script, f"run-{VICTIM}-deadbee0", uid=VICTIM), "heard")

    def test_the_owner_is_not_locked_out_of_a_name_that_run_has_made(self):
        """No attack: a run without a job id gets one that contains its user id, and is observed."""
        daemon = self.daemon()
        run = self.train_as(VICTIM, daemon, None)
        self.let_go()
        self.assertEqual(run.wait(PATIENCE), 1)
        (job,) = wait_for("the job", lambda: self.runs(daemon))
        self.assertRegex(job, rf"^run-{VICTIM}-[0-9a-f]{{8}}$")
        self.assertEqual(daemon.verdict(job)["code"], "X1")

    def test_after_a_restart_the_job_is_still_the_victims(self):
        """The attacker connects with the victim's job id after a restart of the daemon, before the victim's wrapper reconnects: he is
        refused."""
        daemon = self.daemon()
        run = self.victim_trains(daemon)
        self.wait_for_ticks(daemon)
        os.kill(run.pid, 19)  # it cannot come back before the stranger
        daemon.kill()
        daemon = self.daemon()
        said = self.attack(daemon, """
Recording("recording").mark("victim", BEGIN)
client = Client(SOCKET)
client.hello("victim", "recording")
done("refused" if client.refused() else "heard")
""")
        os.kill(run.pid, 18)
        self.assertEqual(said, "refused")
        self.victim_is_judged(daemon, run)

    def test_a_name_by_hand_belongs_to_who_has_opened_it(self):
        """No attack: two runs of one user have the same job id, as tasks of srun do: both are observed, and the last one ends the job."""
        daemon = self.daemon()
        first = self.wrapped_as(VICTIM, daemon, "shared", "sh", "-c", f"echo one; while [ ! -e {self.go} ]; do sleep 0.05; done")
        wait_for("the first", lambda: daemon.lines("shared") == 1)
        second = self.wrapped_as(VICTIM, daemon, "shared", "sh", "-c", "echo two; exit 3")
        self.assertEqual(second.wait(PATIENCE), 3)
        wait_for("the second's text", lambda: daemon.lines("shared") == 2)
        self.wait_for_ticks(daemon)
        self.assertEqual(daemon.verdicts()["shared"]["state"], "live")
        self.let_go()
        self.assertEqual(first.wait(PATIENCE), 0)
        self.assertEqual(daemon.verdict("shared")["exit_code"], 3)


class RunSquatters(HostileTest, RunSocket):
    """Jobs of Slurm's, whose owner shows himself later."""
    JOB = "884107"

    def setUp(self):
        super().setUp()
        try:
            self.group = SlurmGroup(self.JOB, VICTIM)
        except OSError as error:
            self.skipTest(f"cannot make a cgroup: {error}")
        self.addCleanup(lambda: wait_for("the cgroup to be empty", self.group.remove))

    SQUAT = """
recording = Recording("recording")
recording.mark(sys.argv[2], BEGIN)
recording.line(sys.argv[2], "RuntimeError: squatted")
client = Client(SOCKET)
client.hello(sys.argv[2], "recording", own_key())
try:
    client.wake()
    client.send(bytes([67, 0]))
except OSError:
    pass  # refused already
done("refused" if client.refused() else "heard")
"""

    def in_the_job(self, *command, environment=None):
        def before():
            self.group.enter()
            become(VICTIM)()
        process = subprocess.Popen([str(word) for word in command], preexec_fn=before, cwd=self.home(VICTIM), env={
            **self.environment, "HOME": str(self.home(VICTIM)), **(environment or {})},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def train_in_the_job(self, daemon):
        return self.in_the_job(self.program, "run", "--socket", daemon.socket, "--dir", self.home(VICTIM) / "run", "--",
                               "/usr/bin/python3", Path(self.folder) / "train.py", self.go, "raise",
                               environment={"SLURM_JOB_ID": self.JOB})

    def test_the_owner_in_the_jobs_cgroup_evicts_a_squatter(self):
        """The attacker has opened the victim's Slurm job before it began: the victim's wrapper, in the job's cgroup, takes it over."""
        daemon = self.daemon()
        self.assertEqual(self.attack(daemon, self.SQUAT, self.JOB), "heard")
        wait_for("the squatter's text", lambda: daemon.lines(self.JOB) == 1)
        run = self.train_in_the_job(daemon)
        verdict = self.victim_is_judged(daemon, run, self.JOB)
        self.assertNotIn("squatted", json.dumps(verdict))
        wait_for("the count", lambda: self.count(daemon, "evicted") == 1)

    def test_a_process_of_the_jobs_evicts_a_squatter(self):
        """The attacker has opened the victim's Slurm job, which runs without a wrapper: its first process in the job's cgroup ends his
        session."""
        daemon = self.daemon()
        self.assertEqual(self.attack(daemon, self.SQUAT, self.JOB), "heard")
        wait_for("the squatter's text", lambda: daemon.lines(self.JOB) == 1)
        rank = self.in_the_job("sleep", "600", environment={"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": self.JOB})
        wait_for("the eviction", lambda: self.count(daemon, "evicted") == 1)
        text = wait_for("the rank", lambda: self.JOB in daemon.get(f"/explain?pid={rank.pid}")[1])
        self.assertTrue(text)
        self.wait_for_ticks(daemon)
        self.assertNotIn("squatted", json.dumps(daemon.verdicts()[self.JOB]))
        self.assertEqual(daemon.lines(self.JOB), 0)

    def test_a_stranger_comes_too_late(self):
        """The attacker connects with the id of a Slurm job whose processes are known: he is refused, also with the job's environment."""
        daemon = self.daemon()
        rank = self.in_the_job("sleep", "600", environment={"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": self.JOB})
        wait_for("the rank", lambda: self.JOB in daemon.get(f"/explain?pid={rank.pid}")[1])
        said = self.attack(daemon, self.SQUAT, self.JOB, environment={"SLURM_JOB_ID": self.JOB, "SLURM_JOB_UID": str(VICTIM)})
        self.assertEqual(said, "refused")

    def test_the_owner_outside_of_the_jobs_cgroup(self):
        """No attack: the victim's wrapper names its own job in its environment, from outside the job's cgroup: it is observed."""
        daemon = self.daemon()
        rank = self.in_the_job("sleep", "600", environment={"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": self.JOB})
        wait_for("the rank", lambda: self.JOB in daemon.get(f"/explain?pid={rank.pid}")[1])
        run = self.start_as(VICTIM, self.program, "run", "--socket", daemon.socket, "--dir", self.home(VICTIM) / "r", "--", "echo", "hi",
                            environment={"SLURM_JOB_ID": self.JOB})
        self.assertEqual(run.wait(PATIENCE), 0)
        wait_for("its text", lambda: daemon.lines(self.JOB) > 0)


class RunProcesses(HostileTest, RunSocket):
    """Processes that a wrapper names."""

    CLAIM = """
root = own_key(sys.argv[2])
root = (root[0], root[1] + int(sys.argv[3]))
recording = Recording("recording")
recording.mark("evil", BEGIN, root=root)
recording.start("evil", root, cgroup="0::/forged/job_77")
recording.line("evil", "mine")
client = Client(SOCKET)
client.hello("evil", "recording", root)
client.wake()
done("sent")
"""

    def job_of(self, daemon, pid):
        wait_for("the attacker's text", lambda: daemon.lines("evil") == 1)
        self.wait_for_ticks(daemon)
        return daemon.get(f"/explain?pid={pid}")[1]

    def test_the_victims_launcher_is_not_anothers_command(self):
        """The attacker names the victim's launcher as the root of his own job: it remains the victim's."""
        daemon = self.daemon()
        run = self.victim_trains(daemon)
        launcher = int(Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()[0])
        self.attack(daemon, self.CLAIM, launcher, 0)
        text = self.job_of(daemon, launcher)
        self.assertIn("job victim", text)
        self.assertNotIn("evil", text)
        self.victim_is_judged(daemon, run)

    def test_process_1_is_nobodys_command(self):
        """The attacker names process 1 as the root of his job: its descendants are not attributed to him."""
        daemon = self.daemon()
        run = self.victim_trains(daemon)
        self.attack(daemon, self.CLAIM, 1, 0)
        self.assertNotIn("evil", self.job_of(daemon, 1))
        self.assertNotIn("evil", self.job_of(daemon, run.pid))
        self.victim_is_judged(daemon, run)

    def test_a_process_that_it_has_not_forked_is_not_its_command(self):
        """A wrapper names another process of its own user as the root of its job: the claim is ignored."""
        daemon = self.daemon()
        other = self.start_as(ATTACKER, "sleep", "600")
        self.attack(daemon, self.CLAIM, other.pid, 0)
        self.assertNotIn("evil", self.job_of(daemon, other.pid))

    def test_a_pid_that_was_used_again_is_not_its_command(self):
        """A wrapper names a process with a wrong start time: the claim is ignored."""
        daemon = self.daemon()
        self.attack(daemon, "import subprocess\nsys.argv[2:] = [str(subprocess.Popen(['sleep', '600']).pid), '1']" + self.CLAIM)
        self.assertNotIn("evil", self.job_of(daemon, self.attacker.pid))
        self.assertEqual(daemon.verdicts()["evil"]["ranks"], [])

    def test_what_it_says_of_others_is_dropped_and_counted(self):
        """A recording contains records of another job, the victim's exit and the death of a whole job: all are dropped and counted."""
        daemon = self.daemon()
        run = self.victim_trains(daemon)
        launcher = int(Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()[0])
        self.attack(daemon, """
victim = own_key(sys.argv[2])
recording = Recording("recording")
recording.mark("evil", BEGIN, uid=0)
recording.mark("victim", END, victim, status=9, uid=61001)
recording.mark("victim", DISOWNED)
recording.line("victim", "torch.cuda.OutOfMemoryError: CUDA out of memory.")
recording.exit(victim, 9)
recording.start("victim", victim)
recording.line("evil", "mine")
client = Client(SOCKET)
client.hello("evil", "recording")
client.wake()
done("sent")
""", launcher)
        wait_for("the attacker's text", lambda: daemon.lines("evil") == 1)
        wait_for("the count", lambda: self.count(daemon, "foreign") == 5)
        verdict = self.victim_is_judged(daemon, run)
        self.assertNotIn("OutOfMemory", json.dumps(verdict))

    def test_a_wrappers_own_command_is_known_in_a_pid_namespace(self):
        """No attack: the victim runs in a container with its own pid namespace: its command is found, by the host's pids."""
        daemon = self.daemon()
        run = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--mount-proc", "setpriv", "--reuid", str(VICTIM), "--regid", str(VICTIM), "--clear-groups",
             str(self.program), "run", "--socket", daemon.socket, "--job-id", "inside", "--dir", str(self.home(VICTIM) / "inside"), "--",
             "sleep", "601"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait)

        def command():
            """Its number on the machine: below unshare is the wrapper, and below that the command."""
            pid = run.pid
            for _ in range(2):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                pid = int(children[0]) if children else pid
            return pid if Path(f"/proc/{pid}/comm").read_text().strip() == "sleep" else None
        pid = wait_for("the command", command)
        self.addCleanup(lambda: subprocess.run(["kill", "-9", str(pid)], check=False))
        wait_for("its job", lambda: "inside" in daemon.get(f"/explain?pid={pid}")[1])


class RunCrowd(HostileTest, RunSocket):
    """Many of one user."""

    def test_silent_connections_take_nobodys_place(self):
        """The attacker connects 200 times and sends nothing: the victim's run is observed."""
        daemon = self.daemon()
        self.attack(daemon, """
clients = []
for _ in range(200):
    clients.append(Client(SOCKET))
done("connected")
""")
        wait_for("refusals", lambda: self.count(daemon, "refused") >= 184)
        self.victim_is_judged(daemon, self.victim_trains(daemon))

    def test_one_users_runs_leave_room(self):
        """The attacker opens 300 runs: the victim's run is observed."""
        daemon = self.daemon()
        self.attack(daemon, """
Recording("recording")
clients = []
for i in range(300):
    clients.append(Client(SOCKET))
    try:
        clients[-1].hello(f"run-{os.getuid()}-{i:08x}", "recording")
    except OSError:
        pass
done("connected")
""")
        wait_for("refusals", lambda: self.count(daemon, "refused") >= 172)
        self.victim_is_judged(daemon, self.victim_trains(daemon))

    def test_malformed_packets_are_counted_and_shown_out(self):
        """The attacker sends packets that are too long or too short, of an unknown type or version, or with too many descriptors: they
        are refused."""
        daemon = self.daemon()
        self.attack(daemon, """
Recording("recording")
def closed(*arguments):
    client = Client(SOCKET)
    client.send(*arguments)
    assert client.refused(), arguments
closed(b"x")
closed(b"x" * 4000)
closed(b"H" * 152)
closed(b"E")
null = os.open("/dev/null", os.O_RDWR)
closed(b"H" * 152, [null] * 5)
closed(b"H" * 152, [null] * 200)
for job in ("", "..", "a/b", "a b"):
    client = Client(SOCKET)
    client.hello(job, "recording")
    assert client.refused(), job
client = Client(SOCKET)
client.hello("evil", "recording", version=2)
assert client.refused()
done("sent")
""")
        wait_for("the count", lambda: self.count(daemon, "malformed") >= 9)
        self.victim_is_judged(daemon, self.victim_trains(daemon))

    def test_large_recordings_do_not_stop_ticks(self):
        """The attacker hands over 24 recordings of 30 MB at once: ticks continue, and the victim's failure is named meanwhile."""
        daemon = self.daemon()
        run = self.victim_trains(daemon)
        self.attack(daemon, """
recording = Recording("recording")
block = b"".join(recording.line_of("evil", f"step {i} loss 0.5 " + "x" * 200, i * 220) for i in range(1000))
for _ in range(30 * 1024 * 1024 // len(block)):
    recording.write(block)
clients = []
for i in range(24):
    clients.append(Client(SOCKET))
    clients[-1].hello("evil", "recording")
done("sent")
""")
        wait_for("the flood", lambda: daemon.lines("evil") > 0)
        self.ticks_stay_close(daemon, 5)
        self.victim_is_judged(daemon, run)


if __name__ == "__main__":
    run_tests()
