# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a real Slurm go away and come back under the real daemon, and users give their jobs bad names.

One cluster for each part that goes, side by side: the role `controller` asks twice a minute, whoever waits for it. Each has its
story told once, before the first test; each test then looks at what came of it.
"""
import collections
import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import cases
from cluster import Cluster, die_with_parent, why_not

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/serve"), str(ROOT / "tests/replay")]
from serve_test import Daemon

PATIENCE = 75  # seconds: two rounds of the controller role, and a call that waits for an answer
SLOWEST_PAGE = 2.0  # seconds, on a machine that is busy with three clusters
# The page of a role that only asks Slurm: what runs on this machine is the other clusters' as well.
ONLY_SLURM = "sources: {" + ", ".join(f"{name}: {{enabled: false}}" for name in (
    "procfs", "proc_connector", "process", "stdio", "stdout_tail", "wait", "network", "io", "cuda", "nccl",
    "nccl_ras", "nccl_dumps", "infiniband", "kmsg", "nvml", "dcgm", "job_mapping")) + "}\n"
# These the controller counts, from its own start.
SLURMS_OWN = ("rankscope_slurm_job_changes_total", "rankscope_slurm_rpc_")
NAMES = {"two records": cases.NAME.encode(), "newline": b"a\nJobId=99 JobState=FAILED WorkDir=/x", "signs": b"a=b|c JobState=FAILED,d", "bytes": b"bad\xff\xfe name"}


class Watched:
    """A daemon and what its pages said all the time: how long they took, and whether a counter fell."""

    def __init__(self, cluster, name, settings, only_slurm=True):
        folder = cluster.folder / name
        folder.mkdir()
        (folder / "config.yaml").write_text(
            f'slurm: {{conf: "{cluster.folder}/slurm.conf", {settings}}}\n{ONLY_SLURM if only_slurm else ""}')
        self.daemon = Daemon(folder, "--config.file", str(folder / "config.yaml"), preexec=die_with_parent)
        unittest.addModuleCleanup(self.daemon.stop)
        self.slowest, self.fallen, self.known, self.pages = 0.0, [], {}, 0
        self.over = threading.Event()
        unittest.addModuleCleanup(self.over.set)
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while not self.over.wait(0.5):
            began = time.monotonic()
            status, page = self.daemon.get("/metrics")
            if status != 200:
                self.fallen.append(f"/metrics: status {status}")
                continue
            self.pages += 1
            self.slowest = max(self.slowest, time.monotonic() - began)
            for name, value in re.findall(r"(?m)^(rankscope_(?:slurm|source|http)_\w*total(?:\{.*\})?) (\S+)$", page):
                if float(value) < self.known.get(name, 0) and not name.startswith(SLURMS_OWN):
                    self.fallen.append(f"{name}: {self.known[name]} and then {value}")
                self.known[name] = float(value)

    def up(self):
        return self.daemon.metric('rankscope_source_up{source="slurm"}')

    def told(self):
        """What the log says of the source, in its order: ("up in part", why)."""
        lines = [line for line in self.daemon.text().splitlines() if "source=slurm" in line]
        return [re.search(r'msg="?source is ([^"]*?)"? ', line)[1] + " " + line for line in lines if "source is" in line]

    def events(self, job):
        status, page = self.daemon.get(f"/events?job_id={job}")
        return json.loads(page)["events"] if status == 200 else []

    def kinds(self, job):
        return [event["kind"] for event in self.events(job) if event.get("job_id") == job and event["kind"][:5] != "step_"]

    def steps(self, job):
        return [(event["kind"], event["facts"]["step_id"], event["new"], event["facts"].get("exit")) for event in self.events(job)
                if event.get("job_id") == job and event["kind"][:5] == "step_"]

    def count(self, name):
        return sum(value for key, value in self.known.items() if key.startswith(name))


def wait_for(what, condition):
    limit = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > limit:
            raise AssertionError(f"waited {PATIENCE} s for {what}")
        time.sleep(0.2)
    return value


def training(cluster):
    script = cluster.folder / "train.py"
    script.write_text(cases.TRAINER)
    return lambda steps, end="exit": f"srun /usr/bin/python3 {script} {steps} 0.05 {end}"


def until_running(cluster, *jobs):
    for job in jobs:
        wait_for(f"job {job} to run", lambda: cluster.job(job).get("JobState") == "RUNNING")


class Story(unittest.TestCase):
    """What befalls one cluster, in a thread beside the others'."""
    abstract = True
    accounting = True

    @classmethod
    def begin(cls):
        cls.failure, cls.told = None, threading.Event()
        threading.Thread(target=cls.run_all, daemon=True).start()

    @classmethod
    def run_all(cls):
        try:
            cls.began = time.monotonic()
            cls.cluster = Cluster(accounting=cls.accounting)
            unittest.addModuleCleanup(cls.cluster.stop)
            cls.tell()
        except BaseException as error:  # its tests tell it
            cls.failure = error
        cls.told.set()
        over.wait()  # the daemons end with the thread that started them

    @classmethod
    def setUpClass(cls):
        if cls is Story:
            raise unittest.SkipTest("no story of its own")
        cls.told.wait()
        print(f"{cls.__name__}: {time.monotonic() - cls.began:.1f} s", flush=True)

    def setUp(self):
        if self.failure:
            raise self.failure

    def check_pages(self, *watched):
        for one in watched:
            self.assertGreater(one.pages, 20)
            self.assertEqual(one.fallen, [])
            self.assertLess(one.slowest, SLOWEST_PAGE)


class ControllerAway(Story):
    """slurmctld is stopped and begun anew. A job ends meanwhile, another goes on; a node sees a job it has to ask about."""

    @classmethod
    def tell(cls):
        cluster, train = cls.cluster, training(cls.cluster)
        going = cluster.folder / "going"
        going.touch()
        cls.ends = cluster.submit(f"while [ -e {going} ]; do sleep 0.1; done", "--mem=100")
        cls.stays = cluster.submit(train(6000), "--mem=200")
        cluster.submit("sleep 600", "--mem=100", "--hold", "--array=1-3,7%2")
        script = cluster.folder / "named.sh"
        script.write_text("#!/bin/sh\nsleep 1\n")
        cls.named = {}
        for what, name in NAMES.items():
            done = subprocess.run([b"timeout", b"30", b"sbatch", b"--parsable", b"--mem=100", b"--job-name=" + name, os.fsencode(script)],
                                  env=cluster.environment, cwd=cluster.folder, capture_output=True, check=True)
            cls.named[what] = done.stdout.decode().strip()
        until_running(cluster, cls.ends, cls.stays)
        cls.controller = Watched(cluster, "controller", "role: controller")
        wait_for("the start of the job", lambda: "started" in cls.controller.kinds(cls.ends))
        cluster.tell("stop", "slurmctld")
        going.unlink()
        cls.node = Watched(cluster, "node", "role: node", only_slurm=False)
        wait_for("the node to find nobody", lambda: cls.node.up() == 0)
        wait_for("the controller role to find nobody", lambda: cls.controller.up() == 0)
        cluster.tell("start", "slurmctld")
        wait_for("the node to find it", lambda: cls.node.up() == 1)
        wait_for("the controller role to find it", lambda: cls.controller.up() == 1)
        wait_for("the end of the job", lambda: "completed" in cls.controller.kinds(cls.ends))
        wait_for("the end of its script", lambda: "step_ended" in str(cls.controller.steps(cls.ends)))

    def test_steps_begin_and_end_once(self):
        self.assertEqual(self.controller.steps(self.ends), [("step_started", "batch", "RUNNING", None),
                                                            ("step_ended", "batch", "COMPLETED", "0:0")])
        self.assertEqual(self.controller.steps(self.stays), [("step_started", "batch", "RUNNING", None),
                                                             ("step_started", "0", "RUNNING", None)])
        page = self.controller.daemon.get("/metrics")[1]
        self.assertRegex(page, rf'(?m)^rankscope_slurm_step_info\{{job_id="{self.ends}",step_id="batch",[^}}]*state="COMPLETED",exit="0:0"\}} 1$')

    def test_it_is_down_with_its_reason_and_up_again(self):
        for watched in (self.controller, self.node):
            told = watched.told()
            self.assertEqual([line.split()[0] for line in told], ["up", "not", "up"], told)
            self.assertIn("Unable to contact slurm controller", told[1])

    def test_nothing_is_lost_and_nothing_told_twice(self):
        self.assertEqual(self.controller.kinds(self.ends), ["submitted", "started", "completed"])
        self.assertEqual(self.controller.kinds(self.stays), ["submitted", "started"])
        numbers = [event["number"] for event in json.loads(self.controller.daemon.get("/events")[1])["events"]]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))

    def test_the_node_knows_of_the_job_what_the_controller_said_later(self):
        verdict = self.node.daemon.verdict(self.stays, "live")
        self.assertEqual((verdict["code"], verdict["job_id"]), ("G1", self.stays))
        self.assertGreater(self.node.count('rankscope_slurm_calls_total{call="scontrol show job of one"}'), 0)

    def test_the_queue_and_the_nodes_are_what_slurms_commands_say(self):
        def told():
            page = self.controller.daemon.get("/metrics")[1]
            rows = re.findall(r"(?m)^rankscope_slurm_(jobs|user_jobs|pending_jobs|nodes|partition_[a-z_]+)\{(.*)\} (\S+)$", page)
            return {(name, *re.findall(r'"([^"]*)"', labels)): float(value) for name, labels, value in rows if float(value)}

        def expected():
            found = collections.Counter()
            for line in self.cluster.run("squeue", "-h", "-r", "-o", "%P|%T|%u|%a|%r").splitlines():
                partition, state, user, account, reason = line.split("|")
                found["jobs", partition, state.lower()] += 1
                found["user_jobs", user, account, "pending" if state == "PENDING" else "running"] += 1
                if state == "PENDING":
                    found["pending_jobs", reason] += 1
            for line in self.cluster.run("sinfo", "-h", "-N", "-p", "gpu", "-o", "%T").splitlines():
                found["nodes", line] += 1
            for line in self.cluster.run("sinfo", "-h", "-o", "%R|%C").splitlines():
                partition, cpus = line.split("|")
                allocated, idle, _, total = map(int, cpus.split("/"))
                for state, count in (("allocated", allocated), ("idle", idle), ("total", total)):
                    found["partition_cpus", partition, state] += count
                for state in ("idle", "total"):
                    found["partition_gpus", partition, state] = 4
            return {key: value for key, value in found.items() if value}

        def agree():
            page = told()
            return page if expected() == {key: value for key, value in page.items() if key[0] != "partition_memory_bytes"} else None
        page = wait_for("the page and the commands to agree", agree)
        self.assertEqual(page["pending_jobs", "JobHeldUser"], 4, "each task of an array that waits")
        self.assertEqual(page["partition_memory_bytes", "gpu", "total"], 2 * 6000 * 2**20)

    def test_its_pages_come_at_once_and_its_counters_rise(self):
        self.check_pages(self.controller, self.node)

    def test_bad_names_are_their_owners_only(self):
        self.assertEqual(self.controller.kinds("99"), [], "a job of a name's own making")
        facts = {what: {fact: value for event in self.controller.events(job) if event["kind"][:5] != "step_"
                        for fact, value in event.get("facts", {}).items()} for what, job in self.named.items()}
        self.assertEqual(facts["bytes"].get("name"), "bad\ufffd\ufffd name")
        self.assertEqual(facts["two records"].get("user"), "root")
        for what in ("two records", "newline", "signs"):
            self.assertEqual(facts[what].get("name"), NAMES[what].decode(), what)
            self.assertEqual(set(self.controller.kinds(self.named[what])) - {"submitted", "started", "completed", "blocked"}, set())
        for daemon in (self.controller.daemon, self.node.daemon):
            for line in daemon.get("/metrics")[1].splitlines():
                self.assertRegex(line, r'^(#.*|\w+(\{(\w+="([^"\\\n]|\\[\\n"])*",?)*\})? \S+)$')


class AccountingAway(Story):
    """slurmdbd is stopped; a job is preempted, which accounting alone says; slurmdbd comes back."""

    @classmethod
    def tell(cls):
        cluster, train = cls.cluster, training(cls.cluster)
        where = ("--mem=200", "-w", cluster.nodes[0], "--gres=gpu:2")
        cls.victim = cluster.submit(train(6000), "--requeue", *where)
        until_running(cluster, cls.victim)
        cls.controller = Watched(cluster, "controller", "role: controller")
        wait_for("the start of the job", lambda: "started" in cls.controller.kinds(cls.victim))
        cluster.tell("stop", "slurmdbd")
        cls.winner = cluster.submit(train(20), "--partition=high", *where)
        wait_for("the word that accounting is away", lambda: "sacct" in "".join(cls.controller.told()))
        wait_for("the job that was begun anew", lambda: "requeued" in cls.controller.kinds(cls.victim))
        cls.up_meanwhile = cls.controller.up()
        cls.kinds_meanwhile = cls.controller.kinds(cls.victim), cls.controller.kinds(cls.winner)
        cluster.tell("start", "slurmdbd")
        wait_for("accounting's word", lambda: "preempted" in cls.controller.kinds(cls.victim))

    def test_it_is_up_in_part_with_its_reason_and_the_rest_goes_on(self):
        told = self.controller.told()
        self.assertEqual(len(told), 3, told)
        self.assertIn("partly up", told[1])
        self.assertNotIn("partly", told[2])
        self.assertEqual(self.up_meanwhile, 1)
        self.assertIn("requeued", self.kinds_meanwhile[0])
        self.assertIn("started", self.kinds_meanwhile[1])

    def test_what_accounting_knows_is_told_once_when_it_is_back(self):
        kinds = self.controller.kinds(self.victim)
        self.assertEqual([kinds.count(kind) for kind in ("submitted", "requeued", "preempted")], [1, 1, 1], kinds)

    def test_its_pages_come_at_once_and_its_counters_rise(self):
        self.check_pages(self.controller)


class NoAccounting(Story):
    """accounting_storage/none: of an end the controller is asked instead."""
    accounting = False

    @classmethod
    def tell(cls):
        cluster, train = cls.cluster, training(cls.cluster)
        cls.node = Watched(cluster, "node", "role: node", only_slurm=False)
        cls.failed = cluster.submit(train(40, end="3"), "--mem=200")
        wait_for("its end", lambda: cluster.job(cls.failed).get("JobState") == "FAILED")
        cls.controller = Watched(cluster, "controller", "role: controller")
        wait_for("the events", lambda: "failed" in cls.controller.kinds(cls.failed))
        call = 'rankscope_slurm_calls_total{call="scontrol show job of one"}'
        wait_for("the question about the end", lambda: cls.node.count(call) >= 2)
        cls.verdict = cls.node.daemon.verdict(cls.failed)

    def test_the_controller_is_asked_of_the_end(self):
        self.assertGreater(self.node.count('rankscope_slurm_call_errors_total{call="sacct"'), 0)
        self.assertEqual(self.node.up(), 1)
        # An exit status and no word why: more is not to be had, with accounting or without.
        self.assertEqual(self.verdict["code"], "U0", self.verdict)

    def test_the_controller_role_tells_what_happens(self):
        self.assertEqual(self.controller.kinds(self.failed), ["submitted", "started", "failed"])
        self.assertEqual(self.controller.up(), 1)

    def test_its_pages_come_at_once_and_its_counters_rise(self):
        self.assertEqual(self.controller.fallen + self.node.fallen, [])


over = threading.Event()
STORIES = (ControllerAway, AccountingAway, NoAccounting)


def setUpModule():
    reason = why_not()
    if reason:
        raise unittest.SkipTest(reason)
    unittest.addModuleCleanup(over.set)
    for story in STORIES:
        story.begin()


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and outcome.testsRun == 0 else 0)
