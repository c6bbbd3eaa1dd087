# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Programs in the real kernel under `rankscope serve`: real processes end in real ways, and the verdict says how."""
import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "serve"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import recording  # noqa: E402
from serve_test import BINARY, PATIENCE, Daemon, wait_for  # noqa: E402

NOBODY = 65534
SYSTEM_PYTHON = "/usr/bin/python3"  # Debian's, whose packages are meant
ODD_FILES = Path(__file__).resolve().parent.parent / "support" / "odd_files.py"
CGROUPS = Path("/sys/fs/cgroup")


def missing():
    """Why these tests cannot run here; empty: they can."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.access("/sys/kernel/btf/vmlinux", os.R_OK):
        return "needs a kernel with BTF"
    check = subprocess.run([BINARY, "check"], capture_output=True, text=True)
    found = re.search(r"(?m)^process\s+(\S+)\s+(.*)$", check.stdout)
    if not found or found[1] != "yes":
        return f"programs cannot run in this kernel: {found and found[2]}"
    return ""


class BpfTest(unittest.TestCase):
    def setUp(self):
        if reason := missing():
            print(f"skipped: {reason}", file=sys.stderr)
            self.skipTest(reason)
        directory = tempfile.TemporaryDirectory(prefix="rankscope_bpf_")
        self.addCleanup(directory.cleanup)
        self.folder = directory.name
        os.chmod(self.folder, 0o755)
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("SLURM_", "RANK", "WORLD_SIZE", "TORCHELASTIC_"))}

    def daemon(self, *flags):
        daemon = Daemon(self.folder, *flags)
        self.addCleanup(daemon.stop)
        return daemon

    def up(self, daemon, source="process"):
        return daemon.metric(f'rankscope_source_up{{source="{source}"}}') == 1

    def rank(self, *command, before=None, rank="0", **options):
        """Starts a rank and waits until it is ready: it makes a file."""
        ready = Path(self.folder) / f"ready-{rank}"
        process = subprocess.Popen(command, env={**self.environment, "RANK": rank, "WORLD_SIZE": "1", "READY": str(ready)},
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder, preexec_fn=before,
                                   **options)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def python(self, text, **options):
        return self.rank(sys.executable, "-c", text, **options)

    def odd_files(self):
        """Where a file system of slow and failing files is mounted: tests/support/odd_files.py."""
        if subprocess.run([SYSTEM_PYTHON, "-c", "import fusepy"], capture_output=True).returncode != 0:
            self.skipTest("needs python3-fusepy")
        at = tempfile.mkdtemp(dir=self.folder)
        server = subprocess.Popen([SYSTEM_PYTHON, str(ODD_FILES), at], stdout=subprocess.PIPE)
        self.addCleanup(lambda: (subprocess.run(["umount", "-l", at], check=True), server.wait(), server.stdout.close()))
        self.assertEqual(server.stdout.readline(), b"ready\n")
        return Path(at)

    def job_of(self, daemon, pid):
        def look():
            found = re.search(r"proc-[0-9a-f]{8}", daemon.get(f"/explain?pid={pid}")[1])
            return found and found[0]
        return wait_for("the process to be found", look)

    def the_verdict(self, daemon, process):
        """Of the job of this process: there may be others' ranks on the machine."""
        return daemon.verdict(self.job_of(daemon, process.pid))

    def recorded(self, daemon, verdict):
        return Path(daemon.state) / "jobs" / verdict["job_id"]

    def shown(self, verdict, text):
        texts = [evidence["text"] for evidence in verdict["shows"]]
        self.assertTrue(any(text in shown for shown in texts), f"'{text}' in none of {texts}")

    def questions(self, verdict):
        return " ".join(question["question"] for question in verdict["cannot_decide"])


class KilledFromOutside(BpfTest):
    """The sender of a SIGKILL is named: pid, name and user."""

    def killed(self, daemon, kill, before=None):
        process = self.rank("sleep", "600", before=before)
        self.job_of(daemon, process.pid)
        sender = kill(process.pid)
        process.wait()
        return process.pid, sender, self.the_verdict(daemon, process)

    def kill_by_command(self, pid, *before):
        process = subprocess.Popen([*before, "kill", "-9", str(pid)])
        self.assertEqual(process.wait(), 0)
        return process.pid

    def test_by_root(self):
        daemon = self.daemon()
        self.assertTrue(self.up(daemon), daemon.text())
        _, sender, verdict = self.killed(daemon, self.kill_by_command, before=lambda: os.setuid(NOBODY))
        self.assertEqual((verdict["code"], verdict["sub"], verdict["signal"]), ("A2", "sigkill", "SIGKILL"))
        self.assertEqual((verdict["domain"], verdict["tier"]), ("infrastructure", "P"))
        self.shown(verdict, f"sent by pid {sender} (")
        self.shown(verdict, "of uid 0")
        self.assertIn(f"pid {sender} ", verdict["implies"][0]["text"])
        self.assertIn("not the run's user", verdict["implies"][0]["text"])
        self.assertNotIn("who sent", self.questions(verdict))
        begin = time.monotonic()
        self.assertEqual(daemon.stop(), 0)
        self.assertLess(time.monotonic() - begin, 3, "programs must be detached quickly")

    def test_by_a_user_who_may(self):
        user = 1234

        def kill(pid):
            return self.kill_by_command(pid, "setpriv", f"--reuid={user}", "--clear-groups", "--inh-caps=+kill",
                                        "--ambient-caps=+kill")

        daemon = self.daemon()
        pid, sender, verdict = self.killed(daemon, kill, before=lambda: os.setuid(NOBODY))
        self.assertEqual((verdict["code"], verdict["domain"]), ("A2", "infrastructure"))
        self.shown(verdict, f"sent by pid {sender} (kill) of uid {user}")
        sent = recording.signals(self.recorded(daemon, verdict))
        self.assertEqual([(s.pid, s.signo, s.sender, s.comm, s.uid) for s in sent], [(pid, 9, sender, "kill", user)])
        own = Path("/proc/self/cgroup").read_text()
        self.assertIn(sent[0].cgroup, own, "the sender's cgroup is ours")

    def test_by_the_runs_own_user(self):
        daemon = self.daemon()
        _, _, verdict = self.killed(daemon, self.kill_by_command)
        self.assertEqual((verdict["code"], verdict["domain"]), ("A2", "unknown"))
        self.assertIn("the run's own user", verdict["implies"][0]["text"])

    def test_by_its_launcher(self):
        def kill(pid):
            os.kill(pid, signal.SIGKILL)
            return os.getpid()

        daemon = self.daemon()
        _, sender, verdict = self.killed(daemon, kill)
        self.assertEqual((verdict["code"], verdict["domain"]), ("A2", "workload"))
        self.assertIn(f"another process of its own job, python3 (pid {sender})", verdict["implies"][0]["text"])


class MemoryGroup:
    """A memory cgroup of its own with a limit, without swap: of the v1 hierarchy where that has the controller, else v2."""

    def __init__(self, name, limit):
        self.limit = limit
        self.v1 = (CGROUPS / "memory" / "memory.limit_in_bytes").exists()
        self.path = (CGROUPS / "memory" if self.v1 else CGROUPS) / name

    def make(self):
        if not self.v1:
            (CGROUPS / "cgroup.subtree_control").write_text("+memory")
        self.path.mkdir()
        limits = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] if self.v1 else ["memory.max"]
        (self.path / limits[0]).write_text(str(self.limit))
        with contextlib.suppress(OSError):  # kernels without swap accounting
            for file in limits[1:]:
                (self.path / file).write_text(str(self.limit))
            if not self.v1:
                (self.path / "memory.swap.max").write_text("0")

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        with contextlib.suppress(OSError):
            self.path.rmdir()
        return not self.path.exists()


class Limit(BpfTest):
    """A real memory cgroup, and the kernel's out-of-memory killer in it."""

    def setUp(self):
        super().setUp()
        self.group = MemoryGroup(f"rankscope_test_{os.getpid()}", 64 << 20)
        try:
            self.group.make()
        except OSError as error:
            self.skipTest(f"cannot make a memory cgroup: {error}")
        self.addCleanup(lambda: wait_for("the cgroup to be empty", self.group.remove))

    def test_a_kill_at_the_limit_names_it(self):
        daemon = self.daemon()
        process = self.python("""
import os, time
hold = []
while True:
    hold.append(os.urandom(1 << 20))
""", before=self.group.enter)
        self.assertEqual(process.wait(PATIENCE), -signal.SIGKILL)
        verdict = self.the_verdict(daemon, process)
        self.assertEqual((verdict["code"], verdict["sub"], verdict["signal"]), ("A2", "host_oom", "SIGKILL"))
        self.assertEqual((verdict["domain"], verdict["tier"]), ("workload", "P"))
        self.assertIn(f"/{self.group.path.name}, 64 MiB, was reached", verdict["implies"][0]["text"])
        self.assertNotIn("who sent", self.questions(verdict))
        self.assertIn("64 MiB", verdict["resolution"]["immediate"][0])
        if os.access("/dev/kmsg", os.R_OK):
            cited = [e["cite"]["text"] for e in verdict["shows"] if "text" in e.get("cite", {})]
            self.assertTrue(any(f"oom_memcg=/{self.group.path.name}" in line for line in cited), cited)
        kills = [s for s in recording.signals(self.recorded(daemon, verdict)) if s.signo == 9]
        self.assertEqual([(s.pid, s.sender) for s in kills], [(process.pid, 0)])

    def test_a_kill_by_hand_below_the_limit_is_none_of_it(self):
        daemon = self.daemon()
        process = self.rank("sleep", "600", before=self.group.enter)
        self.job_of(daemon, process.pid)
        process.kill()
        process.wait()
        verdict = self.the_verdict(daemon, process)
        self.assertEqual((verdict["code"], verdict["sub"]), ("A2", "sigkill"))
        self.shown(verdict, f"sent by pid {os.getpid()} (")


class Crash(BpfTest):
    def crash(self, text, core):
        limit = resource.RLIM_INFINITY if core else 0
        daemon = self.daemon()
        # On a busy machine it would end before it was looked at.
        known = Path(self.folder) / "known"
        process = self.python(f"import os, time\nwhile not os.path.exists({str(known)!r}): time.sleep(0.01)\n{text}",
                              before=lambda: resource.setrlimit(resource.RLIMIT_CORE, (limit, limit)))
        self.job_of(daemon, process.pid)
        known.touch()
        status = process.wait(PATIENCE)
        verdict = self.the_verdict(daemon, process)
        exits = [e for e in recording.exits(self.recorded(daemon, verdict)) if e.pid == process.pid]
        self.assertEqual(len(exits), 1, exits)
        self.assertTrue(exits[0].known)
        self.assertEqual(exits[0].wait_status & 0x7f, -status)
        return daemon, process, verdict, exits[0]

    def test_segmentation_fault(self):
        _, _, verdict, end = self.crash("import ctypes; ctypes.string_at(8)", core=False)
        self.assertEqual((verdict["code"], verdict["sub"], verdict["signal"]), ("A2", "sigsegv", "SIGSEGV"))
        self.shown(verdict, "raised by the kernel for a fault of the process")
        self.assertFalse(end.core)

    def test_core_dump(self):
        pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
        if pattern.startswith("|"):
            self.skipTest(f"core dumps go to a program: {pattern}")
        _, _, verdict, end = self.crash("import ctypes; ctypes.string_at(8)", core=True)
        self.assertEqual(verdict["sub"], "sigsegv")
        self.assertTrue(end.core, "the kernel dumped core")

    def test_abort(self):
        _, process, verdict, _ = self.crash("import os; os.abort()", core=False)
        self.assertEqual((verdict["code"], verdict["sub"]), ("A2", "sigabrt"))
        self.shown(verdict, "sent by itself")

    def test_a_fault_sent_by_somebody_else_is_no_crash(self):
        daemon = self.daemon()
        process = self.rank("sleep", "600", before=lambda: os.setuid(NOBODY))
        self.job_of(daemon, process.pid)
        subprocess.run(["kill", "-SEGV", str(process.pid)], check=True)
        process.wait()
        verdict = self.the_verdict(daemon, process)
        self.assertEqual((verdict["code"], verdict["signal"], verdict["domain"]), ("A2", "SIGSEGV", "infrastructure"))
        self.assertNotIn("library", self.questions(verdict))


class Survived(BpfTest):
    def test_a_signal_that_is_handled_is_no_death(self):
        daemon = self.daemon()
        process = self.python("""
import os, signal, sys, time
def stop(*_):
    sys.exit(0)
signal.signal(signal.SIGHUP, stop)
open(os.environ["READY"], "w")
time.sleep(600)
""")
        self.job_of(daemon, process.pid)
        wait_for("the rank", lambda: (Path(self.folder) / "ready-0").exists())
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(PATIENCE), 0)
        verdict = self.the_verdict(daemon, process)
        self.assertNotEqual(verdict["code"], "A2")
        sent = recording.signals(self.recorded(daemon, verdict))
        self.assertEqual([(s.pid, s.signo, s.sender) for s in sent], [(process.pid, signal.SIGHUP, os.getpid())])


class Cancelled(BpfTest):
    def test_who_asked_a_run_to_stop_that_then_ended_itself(self):
        daemon = self.daemon()
        os.chmod(self.folder, 0o777)
        process = self.rank("/usr/bin/python3", "-c", """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
open(os.environ["READY"], "w")
time.sleep(600)
""", before=lambda: os.setuid(NOBODY))
        self.job_of(daemon, process.pid)
        wait_for("the rank", lambda: (Path(self.folder) / "ready-0").exists())
        sender = subprocess.Popen(["kill", "-TERM", str(process.pid)])
        sender.wait()
        self.assertEqual(process.wait(PATIENCE), 1)
        verdict = self.the_verdict(daemon, process)
        self.assertEqual((verdict["code"], verdict["sub"], verdict["domain"]), ("X20", "sigterm", "infrastructure"))
        self.shown(verdict, f"sent by pid {sender.pid} (kill) of uid 0")
        self.assertIn("not the run's user", verdict["implies"][0]["text"])
        self.assertNotIn("who asked", self.questions(verdict))


class Short(BpfTest):
    """Processes that live for a millisecond, counted against what their parent saw."""

    CHILDREN = r"""
import os, sys, time
forks, execs = 1000, 3000
with open("oracle", "w") as oracle:
    for i in range(forks):
        pid = os.fork()
        if pid == 0:
            os._exit(i % 200)
        oracle.write("%d %d\n" % os.waitpid(pid, 0))
    begin = time.monotonic()
    for i in range(execs):
        pid = os.posix_spawn("/bin/true" if i % 2 else "/bin/false", ["x"], os.environ)
        oracle.write("%d %d\n" % os.waitpid(pid, 0))
    rate = execs / (time.monotonic() - begin)
with open("rate", "w") as file:
    file.write("%.0f" % rate)
sys.exit(7)
"""

    def test_every_one_is_counted_with_its_status(self):
        daemon = self.daemon()
        process = self.python(self.CHILDREN)
        self.assertEqual(process.wait(4 * PATIENCE), 7)  # four thousand processes
        verdict = self.the_verdict(daemon, process)
        oracle = Counter(tuple(map(int, line.split())) for line in (Path(self.folder) / "oracle").read_text().splitlines())
        seen = Counter((e.pid, e.wait_status) for e in recording.exits(self.recorded(daemon, verdict)))
        rank = seen.pop((process.pid, 7 << 8), 0)
        print(f"{sum(oracle.values())} processes, {(Path(self.folder) / 'rate').read_text()} execs/s", file=sys.stderr)
        self.assertEqual(rank, 1)
        self.assertEqual(sum((oracle - seen).values()), 0, "missed")
        self.assertEqual(sum((seen - oracle).values()), 0, "told and not there")
        self.assertEqual(daemon.metric('rankscope_source_lost_total{source="process"}'), 0)

    def test_a_rank_that_lives_for_a_millisecond_is_known_whole(self):
        daemon = self.daemon()
        process = self.rank("/bin/false", rank="3")
        process.wait()
        verdict = self.the_verdict(daemon, process)
        start = [s for s in recording.starts(self.recorded(daemon, verdict)) if s.pid == process.pid][-1]
        self.assertEqual((start.argv, start.comm, start.environment["RANK"], start.complete), (["/bin/false"], "false", "3", True))
        self.assertEqual(start.parent, os.getpid())
        ends = [(e.pid, e.wait_status) for e in recording.exits(self.recorded(daemon, verdict))]
        self.assertEqual(ends, [(process.pid, 1 << 8)])

    def test_an_environment_that_does_not_fit_is_read_from_proc(self):
        daemon = self.daemon()
        self.environment = {**{f"FILLER_{i}": "x" * 4000 for i in range(20)}, **self.environment}
        process = self.rank("sleep", "600", rank="5")
        self.job_of(daemon, process.pid)
        process.kill()
        process.wait()
        self.assertEqual(self.the_verdict(daemon, process)["ranks"], [5])

    def test_a_process_ends_with_its_last_thread(self):
        daemon = self.daemon()
        process = self.python("""
import ctypes, os, threading, time
threading.Thread(target=lambda: (time.sleep(1), os._exit(5))).start()
ctypes.CDLL(None).pthread_exit(None)  # the first thread goes
""")
        self.assertEqual(process.wait(PATIENCE), 5)
        verdict = self.the_verdict(daemon, process)
        ends = [(e.pid, e.wait_status) for e in recording.exits(self.recorded(daemon, verdict))]
        self.assertEqual(ends, [(process.pid, 5 << 8)])


class Gate(BpfTest):
    def reason(self, daemon, source):
        found = re.search(rf"source={source} state=(\S+) reason=(.*)", daemon.text())
        return found and (found[1], found[2])

    def test_it_takes_the_process_connectors_place(self):
        daemon = self.daemon()
        self.assertTrue(self.up(daemon), daemon.text())
        self.assertFalse(self.up(daemon, "proc_connector"))
        process = self.rank("sleep", "600")
        self.job_of(daemon, process.pid)
        process.kill()
        process.wait()
        verdict = self.the_verdict(daemon, process)
        ends = [e.pid for e in recording.exits(self.recorded(daemon, verdict))]
        self.assertEqual(ends, [process.pid], "told once")

    def test_the_kernel_takes_all_programs(self):
        if os.environ.get("RANKSCOPE_TEST_CONFIG"):
            self.skipTest("asked of a machine that runs all sources")
        daemon = self.daemon()
        check = subprocess.run([BINARY, "check"], capture_output=True, text=True).stdout
        for source in ("process", "stdio", "wait", "network", "io", "cuda", "nccl"):
            self.assertTrue(self.up(daemon, source), daemon.text())
            self.assertRegex(check, rf"(?m)^{source}\s+yes ")
        self.assertNotIn("partly", daemon.text())

    def test_off_leaves_the_process_connector(self):
        daemon = self.daemon("--ebpf=off")
        self.assertFalse(self.up(daemon))
        wait_for("the process connector", lambda: self.up(daemon, "proc_connector"))
        process = self.rank("sleep", "600")
        self.job_of(daemon, process.pid)
        process.kill()
        process.wait()
        verdict = self.the_verdict(daemon, process)
        self.assertEqual((verdict["code"], verdict["signal"]), ("A2", "SIGKILL"))
        self.assertIn("who sent", self.questions(verdict), "nobody saw the sender")
        check = subprocess.run([BINARY, "check", "--ebpf=off"], capture_output=True, text=True).stdout
        self.assertRegex(check, r"(?m)^process\s+off\s+ebpf\.mode is off")

    def test_without_rights_it_says_so(self):
        check = subprocess.run(["setpriv", "--bounding-set=-all", "--inh-caps=-all", BINARY, "check"], capture_output=True, text=True)
        found = re.search(r"(?m)^process\s+(\S+)\s+(.*)$", check.stdout)
        self.assertTrue(found, check.stdout + check.stderr)
        self.assertEqual(found[1], "no")
        self.assertIn("CAP_BPF", found[2])


def run():
    """The tests of the calling module, as CTest takes their outcome."""
    outcome = unittest.main(module="__main__", exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)


if __name__ == "__main__":
    run()
