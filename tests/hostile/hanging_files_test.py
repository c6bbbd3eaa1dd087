# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Files that make who reads them wait, or read for ever: each hangs or costs its own user's reader at most, the victim's output
and dumps are heard all the while, and no request reaches a file system whose answers only the attacker can give.
"""
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from file_case import WAITS, Files
from hostile_case import ATTACKER, PATIENCE, HostileTest, run_tests, together, wait_for

HERE = Path(__file__).resolve().parent
# Root of his own namespaces lays an overlay over the first folder, and goes on there as told.
OVERLAY = """
import ctypes, os, sys
lower, own = sys.argv[1:3]
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(own)
for name in ("upper", "work", "merged"):
    os.makedirs(name, exist_ok=True)
if libc.mount(b"overlay", b"merged", b"overlay", 0, f"lowerdir={lower},upperdir=upper,workdir=work,userxattr".encode()) != 0:
    sys.exit("no overlay: " + os.strerror(ctypes.get_errno()))
exec(sys.argv[3])
os.write(2, sys.argv[4].encode() + b" step 1 loss 2.5\\n")
import time
while True:
    time.sleep(60)
"""


class Fuse(Files):
    """The attacker's file system, which hangs from settle() on."""

    def begin(self):
        self.prepare()
        self.fuse = Path(self.folder) / "fuse"
        self.fuse.mkdir()
        self.hang = Path(self.folder) / "hang"
        self.asked = Path(self.folder) / "asked"
        self.server = subprocess.Popen([sys.executable, HERE / "hanging_file_system.py", self.fuse, str(ATTACKER), self.hang, self.asked],
                                       stderr=subprocess.PIPE, text=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.fuse], stderr=subprocess.DEVNULL)
        self.addCleanup(self.end_server)
        (self.fuse / "any").exists()  # the first request
        wait_for("the file system", lambda: Path(f"{self.asked}.ready").exists() or self.server.poll() is not None)
        if self.server.poll() is not None:
            self.skipTest(f"no FUSE here: {self.server.communicate()[1]}")

    def end_server(self):
        self.server.kill()
        self.server.communicate()

    def settle(self):
        # Whoever waits for an answer ends only when the server has ended.
        self.addCleanup(self.end_server)
        self.hang.touch()
        self.watch()
        super().settle()

    def nobody_was_kept(self):
        """The daemon goes on, and has asked the attacker's file system for nothing."""
        self.wait_for_ticks(self.watching, 1)
        threads = {int(thread) for thread in os.listdir(f"/proc/{self.watching.process.pid}/task")}
        askers = {int(line.split()[1]) for line in self.asked.read_text().splitlines()} if self.asked.exists() else set()
        self.assertFalse(threads & askers, "waits for the attacker's file system")

    def ends_in_time(self):
        begin = time.monotonic()
        self.watching.process.terminate()
        self.watching.process.wait(PATIENCE)
        self.assertLess(time.monotonic() - begin, 5)  # one second on a machine that is not busy


@together
class HangingFiles(HostileTest, Fuse):
    def waiting_rank(self, out, marker, **options):
        return self.rank_as(ATTACKER, out, "/usr/bin/python3", "-c", WAITS, marker, **options)

    def overlay_rank(self, then, marker, **options):
        own = self.home(ATTACKER) / marker
        own.mkdir()
        os.chown(own, ATTACKER, ATTACKER)
        errors = self.common / f"errors-{marker}"
        process = self.rank_as(ATTACKER, None, "/usr/bin/unshare", "-rm", "/usr/bin/python3", "-c", OVERLAY, self.fuse, own, then, marker,
                               errors=errors, **options)
        wait_for("the overlay", lambda: "step 1" in errors.read_text() or process.poll() is not None)
        if process.poll() is not None:
            self.skipTest(f"overlays by users: {errors.read_text()}")

    def test_output_on_a_file_system_that_hangs(self):
        """The attacker's standard output is a file on his FUSE file system, which never answers: it gets no request."""
        with open(self.fuse / "out", "wb") as out:
            self.waiting_rank(out, "fuse-output")
        yield
        self.wait_until_heard("fuse-output")
        self.nobody_was_kept()

    def test_output_on_an_overlay_over_it(self):
        """As before, on an overlay that the attacker mounted over it in his own namespaces."""
        self.overlay_rank("os.dup2(os.open('merged/out', os.O_WRONLY | os.O_APPEND), 1)", "overlay-output")
        yield
        self.wait_until_heard("overlay-output")
        self.nobody_was_kept()

    def test_dumps_on_a_file_system_that_hangs(self):
        """A rank names the attacker's FUSE file system as the directory of its Flight Recorder dumps: the daemon does not enter it."""
        self.dumping_rank(ATTACKER, f"{self.fuse}/a/trace_", "fuse-dumps")
        yield
        self.wait_until_heard("fuse-dumps")
        self.nobody_was_kept()

    def test_dumps_beyond_a_link_to_it(self):
        """As before, through a symbolic link in the attacker's own directory."""
        link = self.home(ATTACKER) / "link"
        link.symlink_to(self.fuse / "a")
        self.dumping_rank(ATTACKER, f"{link}/trace_", "linked-dumps")
        yield
        self.wait_until_heard("linked-dumps")
        self.nobody_was_kept()

    def test_dumps_below_a_working_directory_on_it(self):
        """As before, with a path relative to the rank's working directory."""
        self.rank_as(ATTACKER, subprocess.DEVNULL, "/usr/bin/python3", "-c", f"import os; os.chdir({str(self.fuse)!r})\n" + WAITS, "relative",
                     environment={"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "trace_"})
        yield
        self.wait_until_heard("relative")
        self.nobody_was_kept()

    def test_dumps_on_an_overlay_over_it(self):
        """As before, on an overlay that the attacker mounted over it in his own namespaces."""
        self.overlay_rank("", "overlay-dumps",
                          environment={"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(self.home(ATTACKER) / "overlay-dumps/merged/trace_")})
        yield
        self.wait_until_heard("overlay-dumps")
        self.nobody_was_kept()

    def test_the_folder_of_inspector_on_it(self):
        """A rank names the attacker's FUSE file system as the directory of NCCL Inspector: it is not listed."""
        self.waiting_rank(subprocess.DEVNULL, "inspector", environment={"NCCL_INSPECTOR_ENABLE": "1", "NCCL_INSPECTOR_DUMP_DIR": str(self.fuse)})
        yield
        self.wait_until_heard("inspector")
        self.nobody_was_kept()

    def test_a_lease_on_the_output_file(self):
        """The attacker holds a lease on his output file, so that opening it blocks for 45 s: the daemon does not wait."""
        script = "import fcntl; fcntl.fcntl(1, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n" + WAITS.replace("import os", "import signal; "
                                                                                                  "signal.signal(29, signal.SIG_IGN)\nimport os")
        with open(self.common / "leased", "wb") as out:
            os.fchown(out.fileno(), ATTACKER, ATTACKER)
            self.rank_as(ATTACKER, out, "/usr/bin/python3", "-c", script, "leased")
        yield
        self.wait_until_heard("leased")
        self.nobody_was_kept()

    def test_a_file_of_terabytes(self):
        """The attacker's standard output is a sparse file of 8 TB: only its end is read, and the skipped bytes are counted."""
        with open(self.common / "sparse", "ab") as out:
            os.truncate(out.fileno(), 8 << 40)
            os.fchown(out.fileno(), ATTACKER, ATTACKER)
            self.waiting_rank(out, "terabytes")
        yield
        self.wait_until_heard("terabytes")
        self.nobody_was_kept()

    def test_a_file_that_is_rewritten_all_the_time(self):
        """The attacker truncates and rewrites his output file as fast as he can: it counts as a new text at most once a second."""
        script = ("import os, sys\nos.write(2, b'rewritten step 1 loss 2.5\\n')\n"
                  "while os.getppid() > 1:\n    os.ftruncate(1, 0); os.pwrite(1, b'step 2 loss 1.5\\n' * 100, 0); os.sched_yield()")
        with open(self.common / "rewritten", "wb") as out:
            os.fchown(out.fileno(), ATTACKER, ATTACKER)
            self.rank_as(ATTACKER, out, "/usr/bin/python3", "-c", script)
        yield
        self.wait_until_heard("rewritten")
        self.nobody_was_kept()

    def test_three_hundred_output_files(self):
        """The attacker's processes have 600 output files: those beyond his share are not read, and the verdict says so."""
        script = ("import os, sys, time\nhome = sys.argv[1]\n"
                  "for number in range(300):\n"
                  "    if os.fork() == 0:\n"
                  "        for fd in (1, 2):\n"
                  "            os.dup2(os.open(f'{home}/many-{number}-{fd}', os.O_WRONLY | os.O_CREAT, 0o600), fd)\n"
                  "            os.write(fd, b'many step 1 loss 2.5\\n')\n"
                  "        time.sleep(600)\n        os._exit(0)\n"
                  "time.sleep(600)")
        process = self.rank_as(ATTACKER, subprocess.DEVNULL, "/usr/bin/python3", "-c", script, self.home(ATTACKER), start_new_session=True)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)
        wait_for("the files", lambda: len(list(self.home(ATTACKER).glob("many-*"))) == 600)
        yield
        wait_for(f"the reason; {self.watching.text()[-2000:]}",
                 lambda: re.search(f"user {ATTACKER} are read: [^;]*too many output files", self.watching.text()))
        self.nobody_was_kept()

    def test_when_all_of_it_is_there_the_daemon_ends_in_time(self):
        """All of these at once: the daemon ends within a second after SIGTERM."""
        yield
        self.ends_in_time()


@together
class HangingLibraries(HostileTest, Fuse):
    """As before, beside the kernel's programs, which are placed in the libraries that ranks run."""

    EBPF = "auto"
    SOURCES = "nccl_dumps: {interval: 1s}, stdio: {enabled: false}"

    def test_a_library_on_a_file_system_that_hangs(self):
        """The attacker's rank runs code from his FUSE file system: the daemon does not read it, and ends in time."""
        script = ("import mmap, sys\nwith open(sys.argv[2], 'rb') as library:\n"
                  "    code = mmap.mmap(library.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)\n" + WAITS)
        said = self.common / "runs-code"
        self.rank_as(ATTACKER, subprocess.DEVNULL, "/usr/bin/python3", "-c", script, "runs-code", self.fuse / "library", errors=said)
        wait_for("the code to be mapped", lambda: "step 1" in said.read_text())
        yield
        if self.watching.metric('rankscope_source_up{source="nccl"}') != 1:
            self.skipTest("the kernel takes no programs for libraries")
        wait_for(f"the reason; {self.watching.text()[-2000:]}", lambda: re.search(r"nccl: not all calls of .* are seen", self.watching.text()))
        self.nobody_was_kept()
        self.ends_in_time()


if __name__ == "__main__":
    run_tests()
