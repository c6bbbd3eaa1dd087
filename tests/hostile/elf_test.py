# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Libraries that are made to be read for ever, copied without end or rewritten: what the daemon counts of CUDA and NCCL stays
what the victim's own libraries count, and costs what it costs without them."""
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bpf"))

import recording  # noqa: E402
from hostile_case import ATTACKER, PATIENCE, VICTIM, HostileTest, run_tests, wait_for  # noqa: E402
from serve_test import BINARY  # noqa: E402

LIBRARIES = Path(os.environ.get("STUB_GPU_FOLDER", "build/tests/support/stub_gpu/lib")).resolve()
SIGNALS = {int(number): name for number, name in re.findall(
    r'SIGNAL\((\d+), k\w+, "(\w+)"', (Path(__file__).resolve().parents[2] / "detectors/model/signals.inc").read_text())}

# Launches 500 times before the file "launch" is there, 500 times after it, and lives until "end" is.
TRAINS = r"""
import ctypes, os, sys, time
folder = os.environ["LIBRARIES"]
cuda = ctypes.CDLL(folder + "/libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
cudart = ctypes.CDLL(folder + "/libcudart.so.12", mode=ctypes.RTLD_GLOBAL)
null = ctypes.c_void_p()
class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]
one = Dim3(1, 1, 1)
def wait(name):
    while not os.path.exists(name):
        if not os.path.isdir(os.path.dirname(name)):
            sys.exit(9)
        time.sleep(0.01)
wait(sys.argv[1])
for _ in range(500):
    cudart.cudaLaunchKernel(null, one, one, None, ctypes.c_size_t(0), null)
wait(sys.argv[2])
"""

# Maps all files of a folder as code, again whenever the folder has changed, under another name each time, so that it is seen.
MAPS = r"""
import ctypes, mmap, os, sys, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
folder, change = sys.argv[1], sys.argv[2] == "rewrite"
names = sorted(os.listdir(folder))
for name in names:
    fd = os.open(os.path.join(folder, name), os.O_RDONLY)
    assert libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, fd, 0) not in (None, 2**64 - 1)
    os.close(fd)
open(os.path.join(os.path.dirname(folder), "mapped"), "w").close()
turn = 0
while os.path.isdir(folder):
    if change:
        turn += 1
        for name in names:
            os.utime(os.path.join(folder, name))
        with open("/proc/self/comm", "w") as comm:
            comm.write(f"python{turn}")
    time.sleep(0.05)
"""


def endless_library():
    """An ELF file of 264 kB, the rest of it sparse: 4,000 symbol tables, each with the same 512 MB of names."""
    sections = 4001
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), 3, 62, 1, 0, 64, 120, 0, 64, 56, 1, 64, sections, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 1 << 30, 1 << 30, 4096)
    names = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 1 << 20, 512 << 20, 0, 0, 1, 0)
    symbols = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 1 << 20, 512 << 20, 0, 0, 8, 24)
    return header + segment + names + symbols * (sections - 1)


class CallSources(HostileTest):
    def setUp(self):
        super().setUp()
        check = subprocess.run([BINARY, "check"], capture_output=True, text=True)
        found = re.search(r"(?m)^cuda\s+(\S+)\s+(.*)$", check.stdout)
        if not found or found[1] != "yes":
            self.skipTest(f"programs cannot run in this kernel: {found and found[2]}")
        self.libraries = Path(self.folder) / "lib"
        shutil.copytree(LIBRARIES, self.libraries, symlinks=False)
        self.attackers = 0
        for word in ("launch", "end"):
            self.addCleanup((Path(self.folder) / word).unlink, missing_ok=True)

    def say(self, word):
        (Path(self.folder) / word).touch()

    def victim(self, number=0):
        counts = self.home(VICTIM) / f"counts-{number}"
        counts.mkdir()
        os.chown(counts, VICTIM, VICTIM)
        return self.python_as(VICTIM, TRAINS, self.word("launch"), self.word("end"), environment={
            "RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": f"77{number}", "LIBRARIES": str(self.libraries),
            "LD_LIBRARY_PATH": str(self.libraries), "STUB_GPU_COUNTS": str(counts)})

    def word(self, word):
        return str(Path(self.folder) / word)

    def attack(self, fill, how="map"):
        """`fill` puts files into a folder; a rank of the attacker's runs code of all of them. Returns once it does."""
        self.attackers += 1
        place = self.home(ATTACKER) / str(self.attackers)
        folder = place / "libraries"
        folder.mkdir(parents=True)
        fill(folder)
        for path in (place, folder, *folder.iterdir()):
            os.chown(path, ATTACKER, ATTACKER)
        process = self.python_as(ATTACKER, MAPS, folder, how, environment={
            "RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": f"66{self.attackers}"})
        wait_for("the attack", (place / "mapped").exists)
        return process

    def copies(self, count):
        def fill(folder):
            for number in range(count):
                shutil.copy(self.libraries / "libcuda.so.1", folder / f"libcuda.so.{number}")
        return fill

    def endless(self, count):
        def fill(folder):
            for number in range(count):
                with open(folder / f"libnccl.so.{number}", "wb") as library:
                    library.write(endless_library())
                    library.truncate(2 << 30)
        return fill

    def seen(self, daemon, process, job):
        found = recording.samples(Path(daemon.state) / "jobs" / job).get(process.pid, {})
        return {SIGNALS[number]: values for number, values in found.items() if number in SIGNALS}

    def counted(self, daemon, victim, number=0):
        """The victim launches, and it is counted."""
        job = f"77{number}"
        wait_for("the victim's libraries to be seen", lambda: "kernel_launches" in self.seen(daemon, victim, job))
        self.say("launch")
        wait_for("its launches", lambda: self.seen(daemon, victim, job)["kernel_launches"][-1] == 500)
        seen = self.seen(daemon, victim, job)
        self.assertNotIn(-1, seen["cuda_use"])
        self.say("end")
        self.assertEqual(victim.wait(PATIENCE), 0)

    def is_unknown(self, daemon, process, job):
        """What it calls is said to be unknown, not none."""
        wait_for("its calls to be unknown", lambda: self.seen(daemon, process, job).get("cuda_use", [None])[-1] == -1)
        self.assertNotIn(f'rankscope_cuda_kernel_launches_total{{job_id="{job}"', daemon.get("/metrics")[1])

    def reasons(self, daemon):
        return re.findall(r'source is partly up" source=cuda reason="[^"]*not all calls of [^"]*', daemon.text())

    def cpu_seconds(self, daemon):
        fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def comes_to_rest(self, daemon):
        """Its work for the attacker is bounded, however much he wants: some ticks cost what ticks cost."""
        def rests():
            before = self.cpu_seconds(daemon)
            self.wait_for_ticks(daemon, 4)
            return self.cpu_seconds(daemon) - before < 4 * 0.35
        wait_for("the daemon to come to rest", rests)

    def test_symbol_tables_without_end(self):
        """The attacker runs code from twenty files of 264 kB, each with 4,000 overlapping tables of 512 MB: the daemon reads a bounded
        amount, all launches of the victim are counted, and the attacker's calls are reported as unknown, not as zero."""
        daemon = self.daemon()
        attacker = self.attack(self.endless(20))
        self.counted(daemon, self.victim())
        self.comes_to_rest(daemon)
        self.is_unknown(daemon, attacker, "661")
        wait_for("the reason to be told", lambda: self.reasons(daemon))

    def test_a_hundred_copies_of_a_library(self):
        """The attacker runs code from a hundred copies of libcuda: every launch of the victim, who starts later, is counted."""
        daemon = self.daemon()
        attackers = [self.attack(self.copies(25)) for _ in range(4)]
        self.wait_for_ticks(daemon, 4)
        self.counted(daemon, self.victim())
        self.is_unknown(daemon, attackers[-1], "664")
        self.assertGreater(daemon.metric('rankscope_source_lost_total{source="cuda"}'), 0)

    def test_copies_beside_a_victim_that_is_counted_already(self):
        """The attacker runs a hundred copies of libcuda while the victim's libraries are probed: these probes stay."""
        daemon = self.daemon()
        victim = self.victim()
        wait_for("the victim's libraries to be seen", lambda: "kernel_launches" in self.seen(daemon, victim, "770"))
        for _ in range(2):
            self.attack(self.copies(50))
        self.wait_for_ticks(daemon, 3)
        self.counted(daemon, victim)

    def overlay(self, *command):
        """A command in an overlay over `lib`, mounted at `merged` in a mount namespace of its own."""
        return ["sh", "-c", "mkdir -p upper work merged && mount -t overlay overlay "
                f"-o lowerdir={self.libraries},upperdir=upper,workdir=work merged && exec \"$@\"", "sh", *command]

    def test_an_overlay_of_ones_own(self):
        """The attacker runs code from an overlay mounted in a user namespace, whose file system could hang and so block every fork of
        the host while a probe is placed: no probe is placed there, and the attacker's calls are reported as unknown. On an overlay that
        root mounted they are counted."""
        daemon = self.daemon()
        merged = self.home(ATTACKER) / "merged"
        attacker = self.start_as(
            ATTACKER, "unshare", "-Urm", *self.overlay("/usr/bin/python3", "-c", TRAINS, self.word("launch"), self.word("end")),
            environment={"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": "661", "LIBRARIES": str(merged),
                         "LD_LIBRARY_PATH": str(merged), "STUB_GPU_COUNTS": str(self.home(ATTACKER))})
        self.is_unknown(daemon, attacker, "661")
        merged = Path(self.folder) / "merged"
        victim = subprocess.Popen(
            ["unshare", "-m", *self.overlay("setpriv", f"--reuid={VICTIM}", f"--regid={VICTIM}", "--clear-groups",
                                            "/usr/bin/python3", "-c", TRAINS, self.word("launch"), self.word("end"))],
            cwd=self.folder, env={**self.environment, "RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": "770",
                                  "LIBRARIES": str(merged), "LD_LIBRARY_PATH": str(merged),
                                  "STUB_GPU_COUNTS": str(self.home(VICTIM))})
        self.addCleanup(lambda: victim.poll() is None and (victim.kill(), victim.wait()))
        self.counted(daemon, victim)

    def test_libraries_that_change_all_the_time(self):
        """The attacker touches forty libraries twenty times a second under a new process name each time: the daemon's work stays
        bounded, and the victim's calls are counted."""
        daemon = self.daemon()
        self.attack(self.copies(40), "rewrite")
        self.wait_for_ticks(daemon, 5)
        self.counted(daemon, self.victim())
        self.comes_to_rest(daemon)


if __name__ == "__main__":
    run_tests()
