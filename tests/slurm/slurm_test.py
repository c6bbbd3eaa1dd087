# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Real jobs of a real Slurm, and the real daemon beside them. What is done to the jobs is in cases.py, what is to come of
it in the table below.

One cluster, one daemon: both nodes are this machine, so it sees the processes of both. All cases are run once, before
the first test, at the same time as far as they do not disturb each other; each test then looks at what came of one.
"""
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import cases
from cluster import CGROUPS, Cluster, descendants, die_with_parent, why_not

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/serve"), str(ROOT / "tests/replay")]
import real_runs
from serve_test import BINARY, Daemon

PATIENCE = 150  # seconds; a time limit of one minute is looked at every half minute
STILL = ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED")

# What accounting says of each attempt; what the product is to say of the job once it reads Slurm, too; and what it says
# today, from the processes' environments, their ends, and the lines that slurmstepd writes. The last column is asserted,
# as far as it goes: who reaches more tightens it, nobody loosens it. `F2, G1` are the verdicts of two attempts.
EXPECTED = {
    # case               Slurm                       to be said           said today
    "completed":        ("COMPLETED",               "G1 healthy",         "G1 healthy"),
    "failed":           ("FAILED",                  "X1 key_or_index",    "X1 key_or_index"),
    "failed_at_import": ("FAILED",                  "A1 missing_module",  "A1 missing_module"),
    "killed":           ("FAILED",                  "A2 sigkill",         "A2 sigkill"),
    "cancelled":        ("CANCELLED by 0",          "X20 cancelled",      "X20 cancelled"),
    "time_limit":       ("TIMEOUT",                 "F3",                 "F3"),
    "time_limit_hung":  ("TIMEOUT",                 "F3",                 "F3"),
    "out_of_memory":    ("FAILED",                  "A2 host_oom",        "A2 host_oom"),
    "later_step_fails": ("FAILED",                  "G1 healthy",         "G1 healthy"),
    "training_step_fails": ("COMPLETED",            "X1 key_or_index",    "X1 key_or_index"),
    "step_out_of_memory": ("COMPLETED",             "A2 host_oom",        "A2 host_oom"),
    "hostile_name":     ("COMPLETED",               "G1 healthy",         "G1 healthy"),
    "requeued":         ("REQUEUED, COMPLETED",     "F2 requeue, G1",     "F2 requeue, G1"),
    "preempted":        ("PREEMPTED, COMPLETED",    "F2 preemption, G1",  "F2 preemption, G1"),
    "preempting":       ("COMPLETED",               "G1 healthy",         "G1 healthy"),
    "array, 1":         ("FAILED",                  "U0 abnormal_exit",   "U0"),
    "array, 2":         ("COMPLETED",               "G1 healthy",         "G1 healthy"),
    "array, 3":         ("FAILED",                  "U0 abnormal_exit",   "U0"),
    "array, 4":         ("COMPLETED",               "G1 healthy",         "G1 healthy"),
    "the one waited for": ("FAILED",                "X1 key_or_index",    "X1 key_or_index"),
    "dependent":        ("COMPLETED",               "G1 healthy",         "G1 healthy"),
    "suspended":        ("COMPLETED",               "G1 healthy",         "G1 healthy"),
    "two_nodes":        ("COMPLETED",               "G1 healthy",         "G1 healthy"),
    "node_down":        ("NODE_FAIL",               "F1 node_failure",    "F1 node_failure"),
    "slurmd_killed":    ("NODE_FAIL",               "F1 node_failure",    "F1 node_failure"),
}


class Runner:
    """What a case needs. `jobs` is what was run: the name of a row of the table -> the job's id."""

    def __init__(self, cluster):
        self.cluster, self.folder = cluster, cluster.folder
        self.jobs, self.failures = {}, {}
        (self.folder / "train.py").write_text(cases.TRAINER)
        real_runs.write_data(self.folder)

    def submit(self, script, *options, node=0):
        where = [] if node is None else ["-w", self.cluster.nodes[node]]
        # The last word counts: a case may ask for more memory.
        return self.cluster.submit(script, "--mem=200", *where, *options)

    def wait_for(self, what, condition):
        limit = time.monotonic() + PATIENCE
        while not (value := condition()):
            if time.monotonic() > limit:
                raise AssertionError(f"waited {PATIENCE} s for {what}")
            time.sleep(0.2)
        return value

    def verdict_that_warns(self, job, kind):
        verdict = daemon.verdicts().get(job, {"warnings": []})
        return verdict if any(warning["kind"] == kind for warning in verdict["warnings"]) else None

    def wait_for_end(self, job):
        self.wait_for(f"the end of job {job}", lambda: self.cluster.job(job).get("JobState") not in STILL)

    def accounted(self, job):
        """A row for each attempt, and for each element of an array."""
        text = self.cluster.run("sacct", "-X", "-P", "-D", "-j", job, "--format=JobIDRaw,JobID,State,Comment,AdminComment")
        rows = [line.split("|") for line in text.splitlines()]
        return [dict(zip(rows[0], row)) for row in rows[1:]]

    def states(self, job):
        return ", ".join(row["State"] for row in self.accounted(job) if row["JobIDRaw"] == job)

    def run(self, case):
        try:
            job = case(self)
            if job:
                self.jobs[case.__name__] = job
        except Exception as error:  # that case's test tells it
            self.failures[case.__name__] = repr(error)

    def run_all(self):
        threads = [threading.Thread(target=self.run, args=(case,)) for case in cases.TOGETHER]
        for thread in threads:
            thread.start()
        for name in cases.ON_THE_SECOND_NODE:
            self.wait_for(name, lambda: name in self.jobs or self.failures)
            self.wait_for_end(self.jobs[name])
        for case in cases.THEN:
            self.run(case)
        for thread in threads:
            thread.join()
        for job in self.jobs.values():
            self.wait_for_end(job)


def setUpModule(**names):
    """names: of the cluster's nodes and jobs, see Cluster."""
    global cluster, daemon, runner, folder
    reason = why_not()
    if reason:
        raise unittest.SkipTest(reason)
    began = time.monotonic()
    cluster = Cluster(**names)
    unittest.addModuleCleanup(cluster.stop)
    print(f"a cluster: {time.monotonic() - began:.1f} s", flush=True)
    folder = cluster.folder / "test"
    folder.mkdir(mode=0o711)
    (folder / "config.yaml").write_text(f'slurm: {{conf: "{cluster.folder}/slurm.conf"}}\n')
    daemon = Daemon(folder, "--config", str(folder / "config.yaml"), preexec=die_with_parent)
    unittest.addModuleCleanup(daemon.stop)
    runner = Runner(cluster)
    runner.run_all()
    print(f"all cases have ended: {time.monotonic() - began:.1f} s", flush=True)


def said(verdict):
    """Of a job with one attempt `code sub`, of one with more what each was."""
    whole = " ".join(filter(None, (verdict["code"], verdict["sub"])))
    before = [" ".join(filter(None, (attempt["code"], attempt["sub"]))) for attempt in verdict["attempts"]]
    return ", ".join(before + [whole])


class Cases(unittest.TestCase):
    """A test for each row of the table; they are added below."""

    def settled(self, job, wanted):
        """Final, and once accounting has told what it knows if that makes it another one."""
        limit = time.monotonic() + 20
        while not said(verdict := daemon.verdict(job)).startswith(wanted) and time.monotonic() < limit:
            time.sleep(0.5)
        return verdict

    def look_at(self, name):
        slurm, _, today = EXPECTED[name]
        self.assertNotIn(name, runner.failures)
        job = runner.jobs[name]
        self.assertEqual(runner.states(job), slurm, cluster.output(job))
        verdict = self.settled(job, today)
        # What a reader of a failure would ask next.
        pids = sorted(set(re.findall(r'"pid": (\d+)', json.dumps(verdict["shows"]))))
        shown = "\n".join([json.dumps(verdict)[:4000], *(daemon.get(f"/explain?pid={pid}")[1] for pid in pids)])
        attempts, wanted = said(verdict).split(", "), today.split(", ")
        self.assertGreaterEqual(len(attempts), len(wanted), shown)
        for have, want in zip(attempts, wanted):
            self.assertEqual(have.split()[:len(want.split())], want.split(), shown)


for row in EXPECTED:
    setattr(Cases, "test_" + re.sub(r"\W+", "_", row), lambda self, name=row: self.look_at(name))


class Check(unittest.TestCase):
    def test_slurmctld_answers(self):
        checked = subprocess.run([BINARY, "check", "--format", "json", "--config", str(folder / "config.yaml")], capture_output=True,
                                 text=True, check=True).stdout
        row = next(row for row in json.loads(checked)["checks"] if row["name"] == "slurm")
        self.assertEqual((row["state"], row["wanted"]), ("yes", True), row)
        self.assertIn(" is UP", row["text"])


class MoreThanTheFamily(unittest.TestCase):
    def verdict(self, name):
        return daemon.verdict(runner.jobs[name])

    def test_the_rank_that_fell(self):
        for name in ("failed", "killed", "out_of_memory"):
            self.assertEqual(self.verdict(name)["ranks"], [0], name)

    def test_how_the_rank_ended(self):
        for name, wanted in (("failed", r"rank 0 exited with code 1 \(source: wait status\)"),
                             ("killed", "rank 0 was terminated by SIGKILL, sent by itself"),
                             ("cancelled", r"rank 0 was terminated by SIGTERM, sent by pid \d+ \(slurmstepd\)")):
            shown = [shown["text"] for shown in self.verdict(name)["shows"]]
            self.assertTrue(any(re.match(wanted, text) for text in shown), shown)

    def test_what_a_suspended_job_is_said_to_be(self):
        verdict = runner.while_suspended
        said = [warning["text"] for warning in verdict["warnings"] if warning["kind"] == "suspended"]
        self.assertRegex(said[0], r"^the job has been suspended for \d+ s: the cgroup freezer holds .* on this node$")
        self.assertEqual((verdict["state"], verdict["code"]), ("live", "G1"), verdict)
        kinds = [warning["kind"] for warning in self.verdict("suspended")["warnings"]]
        self.assertIn("was_suspended", kinds)
        self.assertNotIn("suspended", kinds)
        events = json.loads(daemon.get(f"/events?job_id={runner.jobs['suspended']}")[1])
        here = [mark["kind"] for mark in events["lifecycle"] if mark["kind"] in ("began", "suspended", "resumed", "ended")]
        self.assertEqual(here, ["began", "suspended", "resumed", "ended"], events["lifecycle"])

    def test_a_later_step_is_how_the_job_ended(self):
        verdict = self.verdict("later_step_fails")
        self.assertEqual((verdict["disposition"]["kind"], verdict["exit_code"]), ("failed", 1), verdict)
        shown = [shown["text"] for shown in verdict["shows"]]
        self.assertIn("step 1 (evaluate) began after the training had ended, and ended as FAILED with exit code 1 "
                      "(source: scheduler record)", shown)
        events = json.loads(daemon.get(f"/events?job_id={runner.jobs['later_step_fails']}")[1])
        ended = [mark["text"] for mark in events["lifecycle"] if mark["kind"] == "step_ended"]
        self.assertIn("1 (evaluate) FAILED 1:0, says sacct", ended)
        self.assertIn("step_started", [mark["kind"] for mark in events["lifecycle"]])

    def test_a_step_that_ran_out_of_memory(self):
        verdict = self.verdict("step_out_of_memory")
        self.assertGreaterEqual(verdict["confidence"], 0.9, verdict)
        self.assertIn("OUT_OF_MEMORY", json.dumps(verdict["shows"]))
        # Of a job whose script has failed with it, that is the reason.
        self.assertEqual(self.verdict("out_of_memory")["disposition"]["reason"], "OUT_OF_MEMORY")

    def test_the_nodes_are_those_of_the_job(self):
        """By Slurm's names for them, which are not the host's; the daemon has the host's, unless node.name says otherwise."""
        self.assertNotIn(socket.gethostname(), cluster.nodes)
        self.assertEqual({self.verdict(name)["node"] for name in ("completed", "failed", "two_nodes")}, {socket.gethostname()})
        for name, nodes in (("completed", cluster.nodes[:1]), ("failed", cluster.nodes[:1]), ("two_nodes", cluster.nodes)):
            self.assertEqual(self.verdict(name)["nodes"], nodes, name)

    def test_who_cancelled_it_is_a_name(self):
        verdict = self.verdict("cancelled")
        self.assertEqual((verdict["disposition"]["by"], verdict["disposition"]["uid"]), ("root", 0), verdict["disposition"])
        for name in ("cancelled", "time_limit"):
            asked = [open["question"] for open in self.verdict(name)["cannot_decide"]]
            self.assertNotIn("who asked for the end of the run", asked, name)

    def test_nobody_has_asked_yet_is_no_fault_of_slurm(self):
        for family in self.verdict("completed")["undecidable"]:
            if family["needs"] == "scheduler":
                self.assertIn(family["why"], ("absent", "present"), family)

    def test_a_name_is_its_owners_only(self):
        job = runner.jobs["hostile_name"]
        self.assertNotIn("99", daemon.verdicts())
        verdict = json.dumps(self.verdict("hostile_name"))
        self.assertNotIn("elsewhere", verdict)
        shown = [line for line in daemon.get("/metrics")[1].splitlines() if f'job_id="{job}"' in line]
        self.assertTrue(shown)
        for line in shown:
            self.assertNotIn('user="daemon"', line)

    def test_the_limit_that_was_reached_is_the_jobs(self):
        job = runner.jobs["out_of_memory"]
        self.assertIn(f"job_{job}", json.dumps(self.verdict("out_of_memory")["shows"]))


class Attribution(unittest.TestCase):
    """slurmd knows which process is which task of which step: `scontrol listpids` is told by it, not by us."""

    def test_two_jobs_on_a_node_and_one_on_both(self):
        pairs = [runner.submit("srun -n 2 " + cases.train(runner, 150), "-n", "2"),
                 runner.submit("srun -n 2 " + cases.train(runner, 150), "-n", "2"),
                 runner.submit("srun " + cases.train(runner, 150), "-N", "2", "-n", "2", node=None)]
        for job in pairs:
            cases.until_step(runner, job)
        tasks = []
        for job in pairs:
            for node in cluster.nodes:
                for line in cluster.run("scontrol", "listpids", job, node, check=False).splitlines()[1:]:
                    pid, job_id, step, local, rank = line.split()
                    if step == "0" and rank != "-":
                        tasks.append((pid, node, job_id, step, local, rank))
        self.assertEqual(len(tasks), 6)
        for pid, node, *known in tasks:
            explained = daemon.get(f"/explain?pid={pid}")[1]
            told = dict(re.findall(r"(?m)^(job|step|rank|local rank|world size|node|role):? (\S+?)(?:: .*)?$", explained))
            self.assertEqual([told.get(name) for name in ("job", "step", "local rank", "rank")], known, explained)
            self.assertEqual((told.get("world size"), told.get("node"), told.get("role")), ("2", node, "rank"), explained)
        cluster.run("scancel", *pairs)

    def test_a_job_of_somebody_else(self):
        theirs = cluster.folder / "theirs"
        theirs.mkdir()
        theirs.chmod(0o777)
        job = runner.submit("srun " + cases.train(runner, 150, end="raise"), "--uid=nobody", "--gid=nogroup",
                            f"--chdir={theirs}", f"--output={theirs}/%j.out")
        shown = runner.wait_for("the job's series", lambda: [line for line in daemon.get("/metrics")[1].splitlines()
                                                             if f'rankscope_job_info{{job_id="{job}"' in line])
        self.assertRegex(shown[0], r'user="nobody"')
        runner.wait_for_end(job)
        verdict = runner.wait_for("a final verdict", lambda: (v := daemon.verdict(job))["state"] == "final" and v)
        self.assertEqual((verdict["code"], verdict["exception_type"], verdict["exit_code"]), ("X1", "KeyError", 1), verdict)


class Calls(unittest.TestCase):
    # What slurmd and jobs ask by themselves, and what this test does.
    NOT_OURS = {"MESSAGE_NODE_REGISTRATION_STATUS", "MESSAGE_EPILOG_COMPLETE", "REQUEST_STATS_INFO", "REQUEST_JOB_STEP_CREATE",
                "REQUEST_SUBMIT_BATCH_JOB", "REQUEST_STEP_COMPLETE", "REQUEST_COMPLETE_BATCH_SCRIPT",
                "REQUEST_HET_JOB_ALLOC_INFO"}
    WINDOW_SECONDS = 10

    def counts(self):
        kinds, users, found = {}, {}, None
        for line in cluster.run("sdiag").splitlines():
            if "statistics by" in line:
                found = kinds if "message type" in line else users
            row = re.match(r"\s+(\S+)\s+\(\s*\d+\)\s+count:(\d+)\s", line)
            if row and found is not None:
                found[row[1]] = int(row[2])
        return kinds, users

    def calls(self):
        found = re.findall(r"^rankscope_slurm_call(?:s|_errors)_total\{[^}]*\} (\S+)$", daemon.get("/metrics")[1], re.M)
        return sum(map(float, found))

    def settle(self):
        """Until the daemon has asked all that it wants to know of jobs that have ended."""
        limit = time.monotonic() + 120
        known, since = self.calls(), time.monotonic()
        while time.monotonic() < since + 13:
            self.assertLess(time.monotonic(), limit, "it asks on and on")
            time.sleep(0.5)
            if self.calls() != known:
                known, since = self.calls(), time.monotonic()

    def asked_during(self, what):
        """The calls of kinds that nodes and submitters do not make by themselves, and what `what` returns."""
        kinds, users = self.counts()
        value = what()
        later_kinds, later_users = self.counts()
        self.assertIn("REQUEST_SUBMIT_BATCH_JOB", later_kinds, "sdiag was not understood")
        asked = {kind: count - kinds.get(kind, 0) for kind, count in later_kinds.items() if count > kinds.get(kind, 0)}
        self.assertEqual(asked.get("REQUEST_STATS_INFO"), 1, asked)
        # Whoever asks, asks as somebody: no call is missing from the kinds.
        self.assertEqual(sum(later_users.values()) - sum(users.values()), sum(asked.values()))
        return {kind: count for kind, count in asked.items() if kind not in self.NOT_OURS}, value

    def test_a_nodes_daemon_asks_slurmctld_once_of_a_job(self):
        def a_job_that_fails():
            job = runner.submit("srun " + cases.train(runner, 60, end="raise"))
            final = daemon.verdict(job)
            time.sleep(self.WINDOW_SECONDS)  # of its end accounting is asked, which is no controller
            return final
        self.settle()
        asked, verdict = self.asked_during(a_job_that_fails)
        self.assertEqual(verdict["code"], "X1")
        # squeue looks at the partitions, too.
        self.assertEqual(asked, {"REQUEST_JOB_INFO_SINGLE": 1, "REQUEST_PARTITION_INFO": 1})

    def test_a_nodes_daemon_asks_nothing_of_a_job_that_goes_on(self):
        job = runner.submit("srun " + cases.train(runner, 600))
        cases.until_step(runner, job)
        self.assertEqual(daemon.verdict(job, "live")["job_id"], job)
        self.settle()
        asked, _ = self.asked_during(lambda: time.sleep(self.WINDOW_SECONDS))
        cluster.run("scancel", job)
        self.assertEqual(asked, {})


class Hooks(unittest.TestCase):
    """What hooks_test.py does without Slurm, with it. The hooks' processes have the job's SLURM_JOB_ID, and here, where nodes
    and controller are one machine, the daemon sees all of them: they are no part of the job, which would else end
    when epilog_slurmctld has given up to wait for its end.
    """

    @classmethod
    def setUpClass(cls):
        shutil.copytree(ROOT / "deploy" / "slurm", folder / "hooks")
        (folder / "hooks" / "rankscope.conf").write_text(
            f"url=http://%a:{daemon.address.rsplit(':', 1)[1]}\nwait=40\nslurm_conf={cluster.folder}/slurm.conf\n"
            f"job_mapping={folder}/job-mapping\ndump_dir={folder}/dumps-%u/%j\n")
        cluster.use_hooks(folder / "hooks")
        train = "srun " + cases.train(runner, 60)
        cls.first = runner.submit(train, "--comment=first try")
        cls.capitals = runner.submit("srun " + cases.train(runner, 60, end="raise"), "--comment=Capitals stay")
        cls.array = runner.submit(f"srun " + cases.train(runner, 60, end="$((SLURM_ARRAY_TASK_ID % 2))"), "--array=1,2")

    def commented(self, job, index=0, field="Comment"):
        def look():
            rows = sorted(runner.accounted(job), key=lambda row: row["JobID"])
            return len(rows) > index and "[rankscope" in rows[index][field] and rows[index]
        return runner.wait_for(f"the digest of job {job}", look)

    def test_the_verdict_is_in_accounting(self):
        self.assertRegex(self.commented(self.first)["Comment"],
                         r"^first try \[rankscope g1 healthy .* final, completed, slurm exit code 0:0; rs1 job:\d+ .* \. .*\]$")

    def test_a_users_capitals_stay(self):
        row = self.commented(self.capitals, field="AdminComment")
        self.assertRegex(row["AdminComment"], r"^\[rankscope x1 .* final, failed, slurm exit code 1:0; rs1 job:\d+ .* \. .*\]$")
        self.assertEqual(row["Comment"], "Capitals stay")

    def test_each_element_of_an_array_has_its_own(self):
        for index in (0, 1):
            row = self.commented(self.array, index)
            verdict = daemon.verdicts()[row["JobIDRaw"]]
            self.assertIn(f"[rankscope {verdict['code'].lower()} ", row["Comment"])

    def test_what_a_task_gets_and_which_job_has_which_gpu(self):
        going = folder / "going"
        going.touch()
        job = runner.submit(f"srun env; echo that is all; while [ -e {going} ]; do sleep 0.1; done", "--gres=gpu:2",
                            "--export=ALL,RANKSCOPE_TASK_ENV=1,PYTHONUNBUFFERED=mine")
        runner.wait_for("the task", lambda: "that is all" in cluster.output(job))
        environment = dict(line.split("=", 1) for line in cluster.output(job).splitlines() if "=" in line)
        mapped = {name: (folder / "job-mapping" / name).read_text().split() for name in ("0", "1")}
        going.unlink()
        self.assertEqual(environment["PYTHONUNBUFFERED"], "mine")
        self.assertEqual(environment["NCCL_RAS_ADDR"], f"localhost:{20000 + int(job) % 12000}")
        self.assertEqual(environment["TORCH_FR_DUMP_TEMP_FILE"], f"{folder}/dumps-0/{job}/nccl_trace_rank_")
        self.assertEqual(mapped, {"0": [job], "1": [job]})
        runner.wait_for("the epilog", lambda: not [file for file in (folder / "job-mapping").iterdir() if file.name[0] != "."])

    def test_they_drain_no_node(self):
        runner.wait_for_end(self.capitals)
        self.assertEqual(set(cluster.run("sinfo", "-h", "-N", "-o", "%T").split()) - {"idle", "mixed", "allocated"}, set())


class Rest(unittest.TestCase):
    """The controller's role by slurmrestd. The version in its paths is that of this Slurm's plugins."""

    def test_events_and_nodes(self):
        version = max(re.findall(r"v0\.0\.\d+", subprocess.run(
            ["slurmrestd", "-s", "list"], capture_output=True, text=True,
            env={**cluster.environment, "SLURMRESTD_SECURITY": "disable_user_check"}).stderr))
        cluster.tell("start", "slurmrestd")
        self.addCleanup(cluster.tell, "stop", "slurmrestd")
        where = folder / "rest"
        where.mkdir()
        (where / "curl").write_text(f'unix-socket = "{cluster.folder}/slurmrestd.sock"\n')
        (where / "config.yaml").write_text(
            f'slurm: {{role: controller, restd_url: "http://localhost/slurm/{version}", '
            f'restd_curl_config: "{where}/curl"}}\nmetrics: {{profile: full}}\n')
        other = Daemon(where, "--config", str(where / "config.yaml"), preexec=die_with_parent)
        self.addCleanup(other.stop)

        def events(job):
            found = json.loads(other.get(f"/events?job_id={job}")[1])["events"]
            self.assertEqual({event["source"] for event in found} - {"slurmrestd"}, set())
            return [event["kind"] for event in found]
        for name, kind in (("completed", "completed"), ("failed", "failed"), ("time_limit", "timeout")):
            runner.wait_for(f"{name} by slurmrestd", lambda: kind in events(runner.jobs[name]))
        self.assertEqual(other.metric('rankscope_source_up{source="slurm"}'), 1)
        page = other.get("/metrics")[1]
        for node in cluster.nodes:
            self.assertRegex(page, rf'(?m)^rankscope_slurm_node_gpus\{{[^}}]*node="{node}"[^}}]*\}} 2$')
        job = runner.submit("srun " + cases.train(runner, 600))
        self.addCleanup(cluster.run, "scancel", job)
        runner.wait_for("a job that begins", lambda: "started" in events(job))


class CleanUp(unittest.TestCase):
    def test_nothing_is_left_of_a_cluster_whose_test_was_killed(self):
        script = ("import time; from cluster import Cluster; made = Cluster(); made.submit('sleep 600'); "
                  "time.sleep(4); print(made.folder, made.prefix, made.supervisor.pid, flush=True); time.sleep(600)")
        other = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
        with other.stdout:
            where, prefix, supervisor = other.stdout.readline().split()
        processes = descendants(int(supervisor))
        self.assertGreater(len(processes), 8)
        self.assertTrue(list(CGROUPS.glob(f"memory/slurm_{prefix}*")))
        other.send_signal(signal.SIGKILL)
        other.wait()
        runner.wait_for("its folder to go", lambda: not Path(where).exists())
        self.assertEqual(list(CGROUPS.glob(f"*/slurm_{prefix}*")), [])
        self.assertEqual([pid for pid in processes - {int(supervisor)} if Path("/proc", str(pid)).exists()], [])


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and outcome.testsRun == 0 else 0)
