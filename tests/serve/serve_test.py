# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""`rankscope serve` end to end. Nothing sleeps for a fixed time: everything is waited for, with a limit."""
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

BINARY = os.environ.get("RANKSCOPE_BINARY", "build/rankscope")
PATIENCE = int(os.environ.get("RANKSCOPE_TEST_PATIENCE", "60"))  # seconds; reached only when something is broken

# Prints training steps, waits until it may go on, and ends as it is told.
TRAINER = r"""
import os, sys, time
go, end = sys.argv[1], sys.argv[2]
for step in range(1, 41):
    if step == 21:
        while not os.path.exists(go):
            if not os.path.isdir(os.path.dirname(go)):
                sys.exit(9)  # the test is over
            time.sleep(0.01)
    print(f"step {step} loss {4.0 / step + 0.5:.4f} lr 0.05 step_time 0.053s", flush=True)
if end == "raise":
    raise KeyError("missing_column")
"""


def wait_for(what, condition):
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE} s for {what}")


class Daemon:
    def __init__(self, folder, *flags, state=None, preexec=None, environment=None):
        self.log = Path(folder) / f"serve-{time.monotonic_ns()}.log"
        self.socket = str(Path(folder) / "run.sock")
        self.state = state or str(Path(folder) / "state")
        config = os.environ.get("RANKSCOPE_TEST_CONFIG")  # where a machine is too slow for all sources
        if config and "--config" not in flags:
            flags += ("--config", config)
        if not any(str(flag).startswith("--metrics.max-series") for flag in flags):
            flags = ("--metrics.max-series", "16000", *flags)  # jobs of other tests are on this machine, too
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [BINARY, "serve", "--web.listen-address", "127.0.0.1:0", "--state.dir", self.state, "--run.socket",
                 self.socket, *flags], stderr=log, stdout=log, preexec_fn=preexec, env=environment)
        self.address = wait_for("the daemon's address", self.find_address)
        wait_for("readiness", lambda: self.get("/-/ready")[0] == 200)

    def find_address(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon ended with {self.process.returncode}: {self.text()}")
        found = re.search(r"msg=listening address=(\S+)", self.text())
        return found and found[1]

    def text(self):
        return self.log.read_text()

    def get(self, target):
        try:
            with urllib.request.urlopen(f"http://{self.address}{target}", timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def verdicts(self):
        """All of them, page by page: other tests' jobs are on this machine, too."""
        found, target = {}, "/verdict"
        while target:
            page = json.loads(self.get(target)[1])
            found.update((verdict["job_id"], verdict) for verdict in page["verdicts"])
            target = page.get("next")
        return found

    def verdict(self, job, state="final"):
        def look():
            status, text = self.get(f"/verdict?job_id={job}")
            found = json.loads(text) if status == 200 else None
            return found if found and found["state"] == state else None
        return wait_for(f"the {state} verdict of {job}; {self.text()}", look)

    def metric(self, name):
        text = self.get("/metrics")[1]
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
        return float(found[1]) if found else None

    def lines(self, job):
        """Lines of all streams: the wrapper has one where stdout and stderr go to the same place."""
        text = self.get("/metrics")[1]
        return sum(float(value) for value in re.findall(
            rf'^rankscope_log_lines_total{{job_id="{job}",stream="[^"]+"}} (\S+)$', text, re.M))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)
        return self.process.returncode


class ServeTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rankscope_serve_")
        self.addCleanup(directory.cleanup)
        self.folder = directory.name
        (Path(self.folder) / "train.py").write_text(TRAINER)
        self.go = str(Path(self.folder) / "go")
        # A variable of an outer job would make everything here that job's.
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("SLURM_", "RANK", "WORLD_SIZE", "TORCHELASTIC_"))}

    def daemon(self, *flags, **options):
        daemon = Daemon(self.folder, *flags, **options)
        self.addCleanup(daemon.stop)
        return daemon

    def run_wrapped(self, daemon, job, *command):
        wrapper = subprocess.Popen(
            [BINARY, "run", "--socket", daemon.socket, "--job-id", job, "--dir", str(Path(self.folder) / job), "--", *command],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)
        self.addCleanup(lambda: wrapper.poll() is None and (wrapper.kill(), wrapper.wait()))
        return wrapper

    def train(self, daemon, job, end="raise"):
        return self.run_wrapped(daemon, job, sys.executable, str(Path(self.folder) / "train.py"), self.go, end)

    def lines_of_log(self, job):
        return (Path(self.folder) / job / "log").read_bytes().count(b"\n")

    def let_go(self):
        Path(self.go).touch()


class Configuration(ServeTest):
    def test_five_mistakes_are_told_with_their_lines(self):
        config = Path(self.folder) / "c.yaml"
        config.write_text("web:\n  listen: [\"nowhere\"]\n  max_requests: lots\nstate:\n  keep: soon\nmetrics:\n"
                          "  profil: full\nlog:\n  level: loud\n")
        for command in ("serve", "check"):
            result = subprocess.run([BINARY, command, "--config.file", str(config)], capture_output=True, text=True)
            self.assertEqual(result.returncode, 2, result.stderr)
            for line, key in ((2, "web.listen"), (3, "web.max_requests"), (5, "state.keep"), (7, "metrics.profil"),
                              (9, "log.level")):
                self.assertRegex(result.stderr, rf"c\.yaml:{line}: {re.escape(key)}: \S")

    def test_flags_beat_the_file(self):
        config = Path(self.folder) / "c.yaml"
        config.write_text("metrics: {max_series: 300}\nlog: {level: warn}\n")
        printed = subprocess.run([BINARY, "serve", "--config.file", str(config), "--metrics.max-series", "400",
                                  "--print-config"], capture_output=True, text=True, check=True).stdout
        self.assertIn("max_series: 400", printed)
        self.assertIn("level: warn", printed)

    def test_check_says_what_can_be_seen(self):
        result = subprocess.run([BINARY, "check", "--state.dir", self.folder], capture_output=True, text=True, check=True)
        for name in ("procfs", "proc_connector", "memory_cgroup", "gpu", "slurm"):
            self.assertRegex(result.stdout, rf"(?m)^{name}\s+(yes|partly|no|off|n/a)\s+\S")

    def test_check_knows_the_socket_of_a_daemon_that_runs(self):
        path = self.folder + "/run.sock"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            os.chmod(path, 0o666)
            result = subprocess.run([BINARY, "check", "--state.dir", self.folder, "--run.socket", path], capture_output=True,
                                    text=True, check=True)
        self.assertRegex(result.stdout, rf"(?m)^run\s+yes\s+.*{path}, which exists")


class NodeName(ServeTest):
    def named(self):
        self.config = Path(self.folder) / "c.yaml"
        self.config.write_text("node: {name: gpu-7}\n")
        return self.daemon("--config", str(self.config))

    def test_the_name_of_the_configuration_stands_in_all_that_is_said(self):
        daemon = self.named()
        self.assertEqual(json.loads(daemon.get("/verdict")[1])["node"], "gpu-7")
        wrapper = self.train(daemon, "job-1")
        self.let_go()
        wrapper.wait(PATIENCE)
        self.assertEqual(daemon.verdict("job-1")["node"], "gpu-7")
        replayed = subprocess.run([BINARY, "replay", "--format", "json", str(Path(daemon.state) / "jobs" / "job-1")],
                                  capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(json.loads(replayed.stdout)["node"], "gpu-7", replayed.stderr)

    def test_it_is_printed_with_the_configuration(self):
        self.named()
        printed = subprocess.run([BINARY, "serve", "--config", str(self.config), "--print-config"], capture_output=True, text=True)
        self.assertIn("name: gpu-7\n", printed.stdout)


class PortInUse(ServeTest):
    def test_the_error_names_the_address(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            result = subprocess.run([BINARY, "serve", "--web.listen-address", address, "--state.dir", self.folder + "/s",
                                     "--run.socket", self.folder + "/r"], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 1)
        self.assertIn(address, result.stderr)
        self.assertFalse(Path(self.folder + "/s").exists(), "nothing else may have been touched")


class Termination(ServeTest):
    def test_sigterm_ends_it_in_a_second_and_sighup_does_not(self):
        daemon = self.daemon()
        daemon.process.send_signal(signal.SIGHUP)
        self.assertEqual(daemon.get("/-/healthy")[0], 200)
        begin = time.monotonic()
        self.assertEqual(daemon.stop(), 0)
        self.assertLess(time.monotonic() - begin, 5)  # one second on a machine that is not busy
        self.assertFalse(Path(daemon.socket).exists())


class WrappedRun(ServeTest):
    def test_the_verdict_is_served_printed_and_kept(self):
        daemon = self.daemon()
        wrapper = self.train(daemon, "job-1")
        live = daemon.verdict("job-1", "live")
        self.assertEqual(live["triage"]["running"], True)
        self.let_go()
        self.assertEqual(wrapper.wait(PATIENCE), 1)
        verdict = daemon.verdict("job-1")
        self.assertEqual((verdict["code"], verdict["exception_type"]), ("X1", "KeyError"))
        printed = subprocess.run([BINARY, "verdict", "job-1", "--address", daemon.address], capture_output=True, text=True)
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertIn("KeyError", printed.stdout)
        unknown = subprocess.run([BINARY, "verdict", "no-such", "--address", daemon.address], capture_output=True, text=True)
        self.assertEqual(unknown.returncode, 1)
        self.assertIn("no-such", unknown.stderr)
        kept = json.loads(Path(daemon.state, "verdicts", "job-1.json").read_text())
        self.assertEqual(kept["code"], "X1")
        daemon.stop()
        later = self.daemon()
        self.assertEqual(later.verdicts()["job-1"]["code"], "X1")

    def test_what_slurm_has_put_back_goes_on_as_the_same_job(self):
        daemon = self.daemon()
        self.let_go()
        for count, attempt in (("0", 1), ("1", 2)):
            self.environment["SLURM_RESTART_COUNT"] = count
            self.assertEqual(self.train(daemon, "4721").wait(PATIENCE), 1)
            wait_for(f"the verdict of attempt {attempt}",
                     lambda attempt=attempt: daemon.verdict("4721").get("attempt") == attempt)
        # A command begun once more in the same attempt is another job of that name.
        self.assertEqual(self.train(daemon, "4721").wait(PATIENCE), 1)
        wait_for("the verdict of the new job", lambda: daemon.verdict("4721").get("attempt") == 1)

    def test_the_recording_of_the_daemon_replays_to_its_verdict(self):
        daemon = self.daemon()
        wrapper = self.train(daemon, "job-2")
        self.let_go()
        wrapper.wait(PATIENCE)
        live = daemon.verdict("job-2")
        replayed = subprocess.run([BINARY, "replay", "--format", "json", str(Path(daemon.state, "jobs", "job-2"))],
                                  capture_output=True, text=True)
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        verdicts = {verdict["job_id"]: verdict for verdict in json.loads(replayed.stdout)["verdicts"]}
        self.assertEqual(set(verdicts), {"job-2"})
        for key in ("code", "family", "sub", "exception_type", "confidence", "exit_code"):
            self.assertEqual(verdicts["job-2"][key], live[key], key)


class KilledInTheMiddle(ServeTest):
    def test_a_new_daemon_takes_the_run_up(self):
        daemon = self.daemon()
        wrapper = self.train(daemon, "job-3")
        wait_for("20 lines", lambda: daemon.lines("job-3") == 20)
        daemon.kill()
        self.assertIsNone(wrapper.poll(), "the daemon's death touched the run")
        later = self.daemon()
        self.assertEqual(later.verdict("job-3", "live")["job_id"], "job-3")
        self.let_go()
        self.assertEqual(wrapper.wait(PATIENCE), 1)
        verdict = later.verdict("job-3")
        self.assertEqual((verdict["code"], verdict["exception_type"]), ("X1", "KeyError"))
        # Every line once: what was restored is not told again by the wrapper.
        self.assertEqual(later.lines("job-3"), self.lines_of_log("job-3"))

    def test_a_run_that_ended_meanwhile_gets_its_verdict(self):
        daemon = self.daemon()
        wrapper = self.train(daemon, "job-4")
        daemon.verdict("job-4", "live")
        daemon.kill()
        self.let_go()
        self.assertEqual(wrapper.wait(PATIENCE), 1)
        later = self.daemon()
        self.assertEqual(later.verdict("job-4")["state"], "final")

    def test_a_recording_cut_short_does_no_harm(self):
        daemon = self.daemon()
        wrapper = self.train(daemon, "job-5")
        wait_for("20 lines", lambda: daemon.lines("job-5") == 20)
        daemon.kill()
        for file in Path(daemon.state, "jobs", "job-5").glob("bulk-*.rec"):
            os.truncate(file, file.stat().st_size - 7)
        later = self.daemon()
        self.let_go()
        self.assertEqual(wrapper.wait(PATIENCE), 1)
        self.assertEqual(later.verdict("job-5")["code"], "X1")
        self.assertEqual(later.lines("job-5"), self.lines_of_log("job-5"))


class BadDisk(ServeTest):
    def test_an_unusable_state_directory_is_said_and_survived(self):
        state = Path(self.folder) / "file"
        state.write_text("not a directory")
        daemon = self.daemon(state=str(state))
        self.assertIn("nothing is recorded", daemon.text())
        wrapper = self.train(daemon, "job-6")
        live = daemon.verdict("job-6", "live")
        self.assertTrue(any("not recorded" in note for note in live["data_quality"].get("notes", [])), live["data_quality"])
        self.let_go()
        self.assertEqual(wrapper.wait(PATIENCE), 1)
        self.assertEqual(daemon.verdict("job-6")["code"], "X1")
        self.assertGreater(daemon.metric("rankscope_recorder_write_errors_total"), 0)

    def test_a_full_disk_is_said_and_survived(self):
        # No file may grow beyond 4 KiB: writes fail as they do on a full disk.
        daemon = self.daemon(preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        wrapper = self.train(daemon, "job-7")
        self.let_go()
        self.assertEqual(wrapper.wait(PATIENCE), 1)
        self.assertEqual(daemon.verdict("job-7")["code"], "X1")
        self.assertGreater(daemon.metric("rankscope_recorder_write_errors_total"), 0)


class WithoutWrapper(ServeTest):
    def rank(self, *command):
        process = subprocess.Popen(command, env={**self.environment, "RANK": "0", "WORLD_SIZE": "1"},
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def job_of(self, daemon, pid):
        def look():
            found = re.search(r"proc-[0-9a-f]{8}", daemon.get(f"/explain?pid={pid}")[1])
            return found and found[0]
        return wait_for("the process to be found", look)

    def test_a_rank_is_found_explained_and_its_death_by_signal_seen(self):
        daemon = self.daemon()
        process = self.rank("sleep", "600")
        job = self.job_of(daemon, process.pid)
        explained = subprocess.run([BINARY, "explain", str(process.pid), "--address", daemon.address],
                                   capture_output=True, text=True)
        self.assertEqual(explained.returncode, 0, explained.stderr)
        self.assertIn("RANK", explained.stdout)
        if not any(daemon.metric(f'rankscope_source_up{{source="{source}"}}') == 1 for source in ("process", "proc_connector")):
            self.skipTest("exits told by the kernel: needs root")
        process.kill()
        process.wait()
        verdict = daemon.verdict(job)
        self.assertEqual((verdict["code"], verdict["signal"]), ("A2", "SIGKILL"))

    def test_a_rank_that_dies_while_no_daemon_looks_is_not_alive(self):
        daemon = self.daemon()
        process = self.rank("sleep", "600")
        job = self.job_of(daemon, process.pid)
        wait_for("its recording", lambda: Path(daemon.state, "jobs", job).exists())
        daemon.verdict(job, "live")
        daemon.kill()
        process.kill()
        process.wait()
        later = self.daemon()
        self.assertEqual(later.verdict(job)["triage"]["running"], False)


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
