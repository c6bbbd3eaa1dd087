# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""`rankscope watch` of real jobs of a real Slurm, with no daemon anywhere.

    watch_test.py Daily                     one poll of the queue and the next
    watch_test.py Outage Accounting         what takes minutes: a controller that is away, a time limit, jobs that have been forgotten
"""
import contextlib
import json
import os
import pwd
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

import cases
from cluster import Cluster, die_with_parent, why_not

BINARY = os.environ["RANKSCOPE_BINARY"]
PATIENCE = 240  # seconds; a time limit of one minute is looked at every half minute
NOBODY = pwd.getpwnam("nobody")


def wait_for(what, condition):
    limit = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > limit:
            raise AssertionError(f"waited {PATIENCE} s for {what}")
        time.sleep(0.1)
    return value


class Watch:
    """One that runs; its lines as they come."""

    def __init__(self, cluster, *arguments, form="json", **how):
        self.process = subprocess.Popen([BINARY, "watch", "--format", form, *arguments], env={**cluster.environment, "TZ": "UTC"}, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=die_with_parent, **how)
        self.json, self.lines = form == "json", []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line) if self.json else line.rstrip("\n"))

    def events(self, event, job=None):
        return [line for line in list(self.lines) if line["event"] == event and job in (None, line.get("job"), line.get("job_id"))]

    def first(self, event, job=None):
        found = wait_for(f"{event} of {job}", lambda: self.events(event, job) or (self.process.poll() is not None and ["ended"]))
        if found == ["ended"]:
            self.reader.join()
            found = self.events(event, job) or [AssertionError(f"no {event} of {job} in {self.lines}")]
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    def end(self):
        """Its exit status, and what it said on standard error."""
        with contextlib.closing(self.process.stderr), contextlib.closing(self.process.stdout):
            status = self.process.wait(PATIENCE)
            self.reader.join()
            return status, self.process.stderr.read()


class Story(unittest.TestCase):
    """A cluster, and what befalls it, once; its tests look at what came of it."""
    accounting = False

    @classmethod
    def setUpClass(cls):
        if cls is Story:
            raise unittest.SkipTest("no story of its own")
        began = time.monotonic()
        cls.cluster = Cluster(accounting=cls.accounting)
        cls.addClassCleanup(cls.cluster.stop)
        script = cls.cluster.folder / "train.py"
        script.write_text(cases.TRAINER)
        cls.train = staticmethod(lambda steps=60, pause=0.05, end="exit": f"/usr/bin/python3 {script} {steps} {pause} {end}")
        cls.tell()
        print(f"{cls.__name__}: {time.monotonic() - began:.1f} s", flush=True)

    @classmethod
    def submit(cls, script, *options):
        return cls.cluster.submit(script, "--mem=100", *options)

    @classmethod
    def until(cls, job, *states):
        wait_for(f"job {job} to be {states}", lambda: cls.cluster.job(job).get("JobState") in states)


class Daily(Story):
    """No accounting, no daemon: what slurmctld and the output files tell."""

    @classmethod
    def tell(cls):
        cluster = cls.cluster
        cls.good = cls.submit("srun " + cls.train())
        cls.raises = cls.submit("srun " + cls.train(end="raise"), f"--error={cluster.folder}/%x.%j.err", "--job-name=train")
        cls.killed = cls.submit("kill -9 $$")
        cls.array = cls.submit(cls.train(60, 0.05, "$((SLURM_ARRAY_TASK_ID % 2 * 3))"), "--array=1-3", f"--output={cluster.folder}/%A_%a.out")
        cls.cancelled = cls.submit(cls.train(6000), f"--job-name={cases.NAME}")
        cls.held = cls.submit("true", "--hold")
        cls.hidden = cls.submit(cls.train(6000))
        cls.until(cls.raises, "FAILED")
        wait_for("the first step", lambda: cluster.output(cls.hidden))
        (cluster.folder / f"{cls.hidden}.out").unlink()
        cls.calls = cls.count_calls()
        cls.all = Watch(cluster, cls.good, cls.raises, cls.killed, cls.array, cls.cancelled)
        cls.waits = Watch(cluster, cls.held, form="text")
        cls.others = Watch(cluster, "99", cls.good)
        cls.alone = {job: Watch(cluster, job, form="text") for job in (cls.good, cls.raises, cls.killed)}
        cls.as_another = Watch(cluster, cls.cancelled, user=NOBODY.pw_uid, group=NOBODY.pw_gid, extra_groups=[])
        cls.elsewhere = Watch(cluster, cls.hidden)
        (cluster.folder / f"{cls.cancelled}.out").chmod(0o600)
        cls.all.first("verdict", cls.cancelled)
        cluster.run("scancel", cls.cancelled, cls.hidden)
        cls.ended = {name: getattr(cls, name).end() for name in ("all", "others", "as_another", "elsewhere")}
        cls.ended_alone = {job: watch.end() for job, watch in cls.alone.items()}
        cls.waits.process.send_signal(signal.SIGINT)
        cls.ended["waits"] = cls.waits.end()

    @classmethod
    def count_calls(cls):
        text = cls.cluster.run("sdiag")
        return sum(int(count) for count in re.findall(r"REQUEST_JOB_INFO(?:_SINGLE)? .*?count:(\d+)", text))

    def verdict(self, job):
        verdict = self.all.first("ended", job)["verdict"]
        return " ".join(filter(None, (verdict["code"], verdict["sub"])))

    def test_the_verdict_and_the_status_of_each(self):
        for job, verdict, status in ((self.good, "G1 healthy", 0), (self.raises, "X1 key_or_index", 1), (self.killed, "A2 sigkill", 137),
                                     (f"{self.array}_1", "U0 abnormal_exit", 3), (f"{self.array}_2", "G1 healthy", 0),
                                     (f"{self.array}_3", "U0 abnormal_exit", 3), (self.cancelled, "X20 cancelled", 143)):
            with self.subTest(job=job):
                ended = self.all.first("ended", job)
                self.assertEqual((self.verdict(job), ended["status"]), (verdict, status), ended)
                self.assertEqual(ended["verdict"]["state"], "final")

    def test_its_own_status_is_the_worst(self):
        self.assertEqual(self.ended["all"], (143, ""))
        done = self.all.first("done")
        self.assertEqual((done["jobs"], done["completed"], done["not_completed"], done["status"]), (7, 2, 5, 143))

    def test_one_job_gives_its_status_and_its_verdict(self):
        for job, status, headline in ((self.good, 0, "G1 healthy"), (self.raises, 1, "X1 runtime_exception"), (self.killed, 137, "A2 signal_kill")):
            self.assertEqual(self.ended_alone[job], (status, ""), job)
            text = "\n".join(self.alone[job].lines)
            self.assertRegex(text, rf"(?m)^\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d  {job}  (completed|failed).*; {headline}")
            self.assertRegex(text, rf"(?ms)^job {job}  {headline}[^:]* final$")
        self.assertIn("KeyError: 'missing_column'", "\n".join(self.alone[self.raises].lines))

    def test_the_course_of_a_job(self):
        kinds = [line["event"] for line in self.all.lines if line.get("job") == self.cancelled]
        self.assertEqual([kinds[0], kinds[-1]], ["state", "ended"])
        self.assertEqual(self.all.first("state", self.cancelled)["state"], "RUNNING")
        self.assertEqual(self.all.first("output", self.cancelled)["paths"], [f"{self.cluster.folder}/{self.cancelled}.out"])
        self.assertEqual(self.all.first("verdict", self.cancelled)["code"], "G1")
        self.assertEqual(kinds.count("ended"), 1)

    def test_both_streams_are_read(self):
        self.assertEqual(self.all.first("output", self.raises)["paths"],
                         [f"{self.cluster.folder}/{self.raises}.out", f"{self.cluster.folder}/train.{self.raises}.err"])

    def test_a_name_is_its_owners_only(self):
        for line in self.all.lines:
            self.assertNotIn(line.get("job_id"), ("99",))
            self.assertNotIn("elsewhere", line.get("nodes") or "")

    def test_a_job_that_is_not_there(self):
        self.assertEqual(self.ended["others"], (125, ""))
        self.assertIn("there is no accounting to ask", self.others.first("unknown", "99")["error"])
        self.assertEqual(self.others.first("ended", self.good)["status"], 0)

    def test_a_file_that_may_not_be_read_and_one_that_is_not_there(self):
        self.assertEqual(self.ended["as_another"][0], 143)
        self.assertIn("Permission denied", self.as_another.first("output")["error"])
        self.assertEqual(self.as_another.first("ended")["verdict"]["code"], "X20")
        output = self.elsewhere.first("output")
        self.assertEqual(output["paths"], [f"{self.cluster.folder}/{self.hidden}.out"])
        self.assertIn("No such file or directory", output["error"])
        self.assertEqual(self.elsewhere.first("ended")["verdict"]["code"], "X20")

    def test_ctrl_c_says_what_stands(self):
        self.assertEqual(self.ended["waits"], (130, ""))
        self.assertRegex(self.waits.lines[0], rf"  {self.held}  waits: JobHeldUser$")
        self.assertRegex(self.waits.lines[-1], rf"  {self.held}  still waits: JobHeldUser$")

    def test_wrong_usage(self):
        for arguments in (["8841.0"], ["--interval", "10s", "1"], ["--interval", "x", "1"], []):
            done = subprocess.run([BINARY, "watch", *arguments], env=self.cluster.environment, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertTrue(done.stderr)

    def test_few_calls_for_many_jobs(self):
        """One at the start and one for each half minute, of each watch."""
        watches = 5 + len(self.alone)
        self.assertLessEqual(self.count_calls() - self.calls, 3 * watches)


class Outage(Story):
    """slurmctld is away for a while, a time limit is reached, a job is put back into the queue, and one has two parts."""

    @classmethod
    def tell(cls):
        cluster = cls.cluster
        cls.limit = cls.submit(cls.train(6000), "--time=1")
        going = cluster.folder / "going"
        going.touch()
        cls.ends = cls.submit(f"{cls.train()}; while [ -e {going} ]; do sleep 0.1; done")
        cls.requeued = cls.submit(cls.train(6000), "--requeue")
        cls.parts = cls.submit(f"srun --het-group=0,1 true; {cls.train()}", "-n1", ":", "--mem=100", "-n1")
        cls.until(cls.requeued, "RUNNING")
        wait_for("a step", lambda: "step 60 " in cluster.output(cls.requeued))
        cls.all = Watch(cluster, cls.limit, cls.ends, cls.requeued, cls.parts)
        cls.all.first("output", cls.requeued)
        cluster.run("scontrol", "requeue", cls.requeued)
        cluster.tell("stop", "slurmctld")
        going.unlink()  # it ends while nobody hears of it
        cls.all.first("slurm")
        cluster.tell("start", "slurmctld")
        cls.ended = cls.all.end()

    def verdict(self, job):
        verdict = self.all.first("ended", job)["verdict"]
        return " ".join(filter(None, (verdict["code"], verdict["sub"])))

    def test_it_waits_for_the_controller(self):
        told = self.all.events("slurm")
        self.assertEqual([line["answers"] for line in told], [False, True])
        self.assertIn("Unable to contact slurm controller", told[0]["error"])

    def test_the_verdicts(self):
        self.assertEqual(self.verdict(self.limit).split()[0], "F3")
        self.assertEqual(self.verdict(self.ends), "G1 healthy")
        self.assertEqual(self.verdict(f"{self.parts}+0"), "G1 healthy")
        self.assertEqual(self.all.first("ended", f"{self.parts}+1")["status"], 0)

    def test_a_job_that_is_put_back(self):
        self.assertEqual(self.all.first("put_back", self.requeued)["verdict"]["code"], "F2")
        ended = self.all.first("ended", self.requeued)
        self.assertEqual((ended["status"], ended["verdict"]["code"]), (0, "G1"))
        self.assertEqual([attempt["code"] for attempt in ended["verdict"]["attempts"]], ["F2"])

    def test_progress_is_reported_with_each_poll(self):
        steps = [line["step"] for line in self.all.events("progress", self.limit)]
        self.assertGreater(len(steps), 1)
        self.assertEqual(steps, sorted(steps))

    def test_its_status(self):
        self.assertEqual(self.ended[0], self.all.first("ended", self.limit)["status"])


class Accounting(Story):
    """slurmctld forgets jobs within seconds; accounting knows them, is away for a while, and says who cancelled one."""
    accounting = True

    @classmethod
    def tell(cls):
        cluster = cls.cluster
        conf = cluster.folder / "slurm.conf"
        conf.write_text(conf.read_text().replace("MinJobAge=600", "MinJobAge=2"))
        cluster.run("scontrol", "reconfigure")
        cls.gone = cls.submit(cls.train(end="raise"))
        cls.cancelled = cls.submit(cls.train(6000))
        cls.short = cls.submit(f"{cls.train()}; sleep 3")
        cls.until(cls.cancelled, "RUNNING")
        cls.all = Watch(cluster, cls.cancelled, cls.short)
        cls.all.first("output", cls.cancelled)
        cluster.tell("stop", "slurmdbd")
        cluster.run("scancel", cls.cancelled)
        wait_for("slurmctld to forget", lambda: not cluster.job(cls.short) and not cluster.job(cls.cancelled))
        cls.all.first("note", cls.cancelled)
        cluster.tell("start", "slurmdbd")
        cls.ended = cls.all.end()
        cls.late = Watch(cluster, cls.gone)
        cls.late_ended = cls.late.end()

    def test_who_is_forgotten_is_told_by_accounting(self):
        self.assertEqual(self.all.first("ended", self.short)["verdict"]["code"], "G1")
        ended = self.all.first("ended", self.cancelled)
        self.assertEqual((ended["state"], ended["verdict"]["code"], ended["verdict"]["disposition"]["by"]), ("CANCELLED", "X20", "root"))
        self.assertNotEqual(self.ended[0], 0)

    def test_a_job_of_long_ago(self):
        ended = self.late.first("ended", self.gone)
        self.assertEqual((self.late_ended[0], ended["state"]), (1, "FAILED"))
        self.assertIn("classify", self.late.first("output")["error"])


def setUpModule():
    reason = why_not()
    if reason:
        raise unittest.SkipTest(reason)


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and outcome.testsRun == 0 else 0)
