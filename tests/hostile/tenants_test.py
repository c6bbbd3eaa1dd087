# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""One user takes all that there is: places for jobs, series, processes, memory. The victim's job is watched and judged meanwhile."""
import json
import os
import re
import signal
import subprocess
from pathlib import Path

from hostile_case import ATTACKER, PATIENCE, VICTIM, HostileTest, run_tests
from serve_test import wait_for

# Starts programs with a rank's environment, each as a job of its own, for as long as it lives.
JOBS_WITHOUT_END = r"""
import itertools, os
for number in itertools.count():
    os.posix_spawn("/bin/true", ["/bin/true"], {"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": str(100000 + number)})
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
"""
SLEEPERS = r"""
import os, sys, time
count, own_jobs, first_job = int(sys.argv[1]), sys.argv[2] == "jobs", int(sys.argv[3]) if len(sys.argv) > 3 else 200000
for number in range(count):
    named = {"SLURM_JOB_ID": str(first_job + number)} if own_jobs else {}
    os.posix_spawn("/bin/sleep", ["/bin/sleep", "600"], {"RANK": str(0 if own_jobs else number), "WORLD_SIZE": str(1 if own_jobs else count), **named})
print("all", flush=True)
time.sleep(600)
"""


def verdict_of(daemon, job):
    status, body = daemon.get(f"/verdict?job_id={job}")
    return json.loads(body) if status == 200 else {}


def wait_for_state(daemon, job, state="final"):
    return wait_for(f"the {state} verdict of {job}; {daemon.text()[-2000:]}",
                    lambda: (verdict := verdict_of(daemon, job)).get("state") == state and verdict)


def all_verdicts(daemon):
    return {verdict["job_id"]: verdict for verdict in json.loads(daemon.get("/verdict?limit=1000")[1])["verdicts"]}


class Tenants(HostileTest):
    def start_rank(self, job):
        """A rank of the victim's that no wrapper speaks for."""
        return self.start_as(VICTIM, "/bin/sleep", "600", environment={"SLURM_JOB_ID": job, "RANK": "0", "WORLD_SIZE": "1"})

    def attack(self, script, *arguments):
        process = self.python_as(ATTACKER, script, *arguments, start_new_session=True)
        self.addCleanup(lambda: self.end_all(process))
        return process

    def end_all(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def kill_and_judge(self, daemon, attack, job="4711"):
        """The victim's rank is killed while the attack goes on, and that is what is said of it."""
        rank = self.start_rank(job)
        wait_for_state(daemon, job, "live")
        self.assertNotIn("not watched", daemon.get(f"/verdict?job_id={job}")[1])
        rank.kill()
        rank.wait()
        self.assertEqual(wait_for_state(daemon, job)["code"], "A2")
        self.assertIsNone(attack.poll(), "the attack was over before")

    def not_watched(self, daemon):
        return {job: verdict["data_quality"]["notes"][0] for job, verdict in all_verdicts(daemon).items()
                if any("watched" in note for note in verdict.get("data_quality", {}).get("notes", []))}

    def test_jobs_without_end(self):
        """The attacker starts thousands of programs, each of another job by its environment: the victim's job is watched, and the disk
        is not filled."""
        daemon = self.daemon("--state.max-jobs", "32")
        attack = self.attack(JOBS_WITHOUT_END)
        wait_for("more jobs than there are places", lambda: (daemon.metric("rankscope_jobs_dropped_total") or 0) > 500)
        self.kill_and_judge(daemon, attack)
        folders = len(os.listdir(Path(daemon.state) / "jobs"))
        self.assertLess(folders, 1000, "a folder on disk for each of thousands")

    def test_seventy_wrapped_runs(self):
        """The attacker starts 70 runs under the wrapper, more than the limit: the victim's runs, with and without a wrapper, are judged."""
        daemon = self.daemon("--state.max-jobs", "48")
        runs = [self.wrapped_as(ATTACKER, daemon, f"mine-{number}", "/bin/sleep", "600", start_new_session=True) for number in range(70)]
        for run in runs:
            self.addCleanup(self.end_all, run)
        wait_for("the attacker's runs", lambda: sum(job.startswith("mine-") for job in all_verdicts(daemon)) >= 40)
        self.kill_and_judge(daemon, runs[0])
        run = self.train_as(VICTIM, daemon, "victim")
        wait_for_state(daemon, "victim", "live")
        self.let_go()
        self.assertEqual(run.wait(PATIENCE), 1)
        self.assertEqual(wait_for_state(daemon, "victim")["code"], "X1")
        self.assertIsNone(runs[0].poll())

    def test_whose_job_gives_up_its_place_is_told(self):
        """The attacker's jobs reach the limit: his newest job is dropped to watch the victim's, and its verdict says so."""
        daemon = self.daemon("--state.max-jobs", "8")
        attack = self.attack(SLEEPERS, "12", "jobs")
        refused = rf"^not watched: user {ATTACKER} has [4-8] of the 8 places"
        wait_for("jobs that are not watched", lambda: sum(bool(re.search(refused, why)) for why in self.not_watched(daemon).values()) >= 4)
        self.kill_and_judge(daemon, attack)
        # Of whatever else runs on this machine, another may have needed a place before.
        made_room = rf"^no longer watched: its place was needed for a job of user {VICTIM}; user {ATTACKER} had [4-8] of the 8 places"
        self.assertEqual(sum(bool(re.search(made_room, why)) for why in self.not_watched(daemon).values()), 1)

    def test_three_hundred_ranks(self):
        """The attacker fills /metrics with 300 ranks: every series of the victim's job is still there."""
        daemon = self.daemon("--metrics.max-series", "1000")
        rank = self.start_rank("4711")
        wait_for_state(daemon, "4711", "live")

        def series(job):
            return set(re.findall(rf'^(\w+){{job_id="{job}"[^}}]*}}', daemon.get("/metrics")[1], re.M))

        wait_for("the victim's rank", lambda: "rankscope_rank_alive" in series("4711"))
        before = series("4711")
        self.attack(SLEEPERS, "300", "ranks")
        wait_for("series that are left out", lambda: sum(
            float(value) for value in re.findall(r"^rankscope_series_dropped_total{\S+} (\S+)$", daemon.get("/metrics")[1], re.M)) > 300)
        self.wait_for_ticks(daemon, 3)
        self.assertLessEqual(before, series("4711"))
        rank.kill()
        rank.wait()
        self.assertEqual(wait_for_state(daemon, "4711")["code"], "A2")

    def test_a_user_alone_may_use_what_is_free(self):
        """No attack: one user has 100 jobs and nobody else needs the room: all are watched."""
        daemon = self.daemon()
        self.attack(SLEEPERS, "100", "jobs")
        wait_for("a hundred jobs", lambda: sum(job.startswith("2000") for job in all_verdicts(daemon)) == 100)
        self.wait_for_ticks(daemon)
        self.assertEqual(daemon.metric("rankscope_jobs_dropped_total"), 0)
        self.assertEqual(self.not_watched(daemon), {})


class Memory(HostileTest):
    """In a memory cgroup of its own."""
    LIMIT_MIB = 96

    def setUp(self):
        super().setUp()
        self.cgroup = self.make_cgroup()

    def make_cgroup(self):
        """(folder, name of its file of processes) of a cgroup with the limit; skips where there is none to be had."""
        for parent, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            folder = Path(parent) / f"rankscope-test-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            self.addCleanup(folder.rmdir)
            try:
                (folder / limit).write_text(str(self.LIMIT_MIB << 20))
            except OSError:
                continue
            return folder
        return self.skipTest("no memory cgroup can be made here")

    def kills(self):
        for name in ("memory.oom_control", "memory.events"):
            path = self.cgroup / name
            if path.exists():
                return int(re.search(r"^oom_kill (\d+)$", path.read_text(), re.M)[1])
        return 0

    def test_more_jobs_than_memory_allows(self):
        """The attacker starts jobs until the daemon's memory is short: the daemon is not killed, reports which jobs it no longer
        watches, and judges the victim's."""
        folder = str(self.cgroup)
        daemon = self.daemon(preexec=lambda: Path(folder, "cgroup.procs").write_text(str(os.getpid())))
        self.assertEqual(daemon.metric("rankscope_memory_limit_bytes"), self.LIMIT_MIB << 20)
        rank = self.start_as(VICTIM, "/bin/sleep", "600", environment={"SLURM_JOB_ID": "4711", "RANK": "0", "WORLD_SIZE": "1"})
        wait_for_state(daemon, "4711", "live")
        for hundred in range(5):
            process = self.python_as(ATTACKER, SLEEPERS, "100", "jobs", str(300000 + 1000 * hundred), stdout=subprocess.PIPE, start_new_session=True)
            self.addCleanup(process.stdout.close)
            self.addCleanup(os.killpg, process.pid, signal.SIGKILL)
            process.stdout.readline()
        self.wait_for_ticks(daemon, 5)
        self.assertEqual(self.kills(), 0)
        rank.kill()
        rank.wait()
        self.assertEqual(wait_for_state(daemon, "4711")["code"], "A2")
        self.assertLess(daemon.metric("rankscope_memory_used_bytes"), self.LIMIT_MIB << 20)


if __name__ == "__main__":
    run_tests()
