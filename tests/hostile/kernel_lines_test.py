# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Lines of the kernel's log that an unprivileged user has the kernel write: it names programs that crash, and their files.

A file is named like the line that it is to pass for. The kernel then logs
"COMM[PID]: segfault at 10 ip .. sp .. error 6 in FILE[..]", COMM being the first 15 bytes of the name that was executed.
"""
import os
import re
import struct
import subprocess
from pathlib import Path

from hostile_case import ATTACKER, PATIENCE, VICTIM, HostileTest, run_tests, wait_for

FAKE_NVML = Path(os.environ.get("FAKE_NVML_FOLDER", "build/tests/support/fake_nvml/lib")).resolve()
BUS = "0000:28:00"  # of the stand-in's third card


def crashing_program():
    """An x86-64 program of one instruction, which writes to address 16."""
    code = b"\xc6\x04\x25\x10\x00\x00\x00\x00"
    base, head = 0x400000, 64 + 56
    return (b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + head, 64, 0, 0, 64, 56, 1, 0, 0, 0) +
            struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, head + len(code), head + len(code), 4096) + code)


class NamedPrograms:
    """What the classes share: the daemon, the victim's job, and the crashes."""

    def prepare(self):
        if os.uname().machine != "x86_64" or not os.access("/dev/kmsg", os.W_OK):
            self.skipTest("needs x86-64 and /dev/kmsg")
        for name, value in (("printk_devkmsg", "on\n"), ("printk", "1\n"), ("printk_ratelimit", "0\n")):
            setting = Path("/proc/sys/kernel") / name
            self.addCleanup(setting.write_text, setting.read_text())
            setting.write_text(value)

    def start(self, cards=True):
        """The daemon, and the victim's job, which holds the third card."""
        environment = dict(os.environ)
        if cards:
            self.script = Path(self.folder) / "gpus"
            self.say()
            environment |= {"LD_LIBRARY_PATH": str(FAKE_NVML), "FAKE_NVML_SCRIPT": str(self.script)}
        self.served = self.daemon(environment=environment)
        self.job = f"victim-{os.getpid()}"
        self.run_of_victim = self.train_as(VICTIM, self.served, self.job)
        wait_for("the victim's job", lambda: self.job in self.served.verdicts())
        wait_for("20 lines", lambda: self.served.lines(self.job) >= 20)
        children = Path(f"/proc/{self.run_of_victim.pid}/task/{self.run_of_victim.pid}/children")
        self.pid = int(wait_for("the victim's process", lambda: children.read_text().split())[0])
        if cards:
            self.say(f"gpu 2 process {self.pid} 8589934592")
            wait_for("the process on its card", lambda: re.search(
                r'rankscope_gpu_processes{gpu="2",[^}]*kind="compute"} [1-9]', self.served.get("/metrics")[1]))

    def say(self, *lines):
        following = self.script.with_suffix(".next")
        following.write_text("\n".join(["driver 550.54.15", "gpus 4 hopper", *lines, ""]))
        following.rename(self.script)

    def counts(self):
        return {kind: float(value) for kind, value in re.findall(
            r'(?m)^rankscope_kernel_events_total{kind="([^"]+)"} (\S+)$', self.served.get("/metrics")[1])}

    def crash(self, file, name=None):
        """As the attacker: a program whose file has this name, executed by another where one is given."""
        folder = self.home(ATTACKER) / "bin"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        self.home(ATTACKER).chmod(0o755)
        path = folder / file
        path.write_bytes(crashing_program())
        path.chmod(0o755)
        executed = path
        if name and name != file:
            executed = folder / name
            executed.symlink_to(path.name)
        process = self.run_as(ATTACKER, executed)
        self.assertEqual(process.returncode, -11, "it did not crash")

    def barrier(self):
        """A line of root's own about no job, which comes behind all that was logged before; counts are of before it."""
        counts = self.counts()
        with open("/dev/kmsg", "wb", buffering=0) as log:
            log.write(b"<3>INFO: task init:1 blocked for more than 122 seconds.\n")
        wait_for("the line behind", lambda: self.counts()["hung_task"] > counts["hung_task"])
        after = self.counts()
        return {**after, "hung_task": after["hung_task"] - 1}

    def assert_nothing_came_of_it(self, *texts):
        """Each text as a file's name, as that of a file executed by a short name, and behind what ends a line."""
        for number, text in enumerate(texts):
            self.crash(text[:255])
            self.crash("a " + text[:250], f"x{number}")
            self.crash(f"q\n{text[:250]}", f"nfs: server x{number}")
        logged = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
        self.assertIn(texts[-1][:40], logged, "the kernel named no file")
        self.assertEqual({kind: count for kind, count in self.barrier().items() if count}, {})
        self.wait_for_ticks(self.served)
        verdict = self.served.verdicts()[self.job]
        self.assertEqual((verdict["code"], verdict["triage"]["running"]), (self.before["code"], True))
        self.assertEqual(verdict.get("warnings", []), self.before.get("warnings", []))
        self.let_go()
        self.assertEqual(self.run_of_victim.wait(PATIENCE), 1)
        verdict = self.served.verdict(self.job)
        self.assertEqual((verdict["code"], verdict["exception_type"], verdict["domain"]), ("X1", "KeyError", "workload"))

    def begin(self, cards=True):
        self.prepare()
        self.start(cards)
        self.wait_for_ticks(self.served)
        self.before = self.served.verdicts()[self.job]


class KernelNamesOfCards(HostileTest, NamedPrograms):
    def test_a_program_named_like_an_xid_of_the_victims_card(self):
        """A program named like an Xid line about the victim's GPU and process crashes: the victim's job is not B2."""
        self.begin()
        self.assert_nothing_came_of_it(
            f"NVRM: Xid (PCI:{BUS}): 79, pid={self.pid}, name=python3, GPU has fallen off the bus.",
            f"NVRM: Xid (PCI:{BUS}): 95, Uncontained: LTC TAG (0x2,0x0)", f"NVRM: GPU {BUS}.0: GPU has fallen off the bus.")

    def test_a_program_named_like_a_switchs_error(self):
        """A program named like a fatal error of an NVSwitch crashes: no job is B2 nvswitch."""
        self.begin()
        self.assert_nothing_came_of_it("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 28 sourcing buffer")

    def test_without_a_driver_even_roots_line_is_only_counted(self):
        """A complete Xid line about the victim's process, on a node without NVIDIA's driver: it is counted as unconfirmed and otherwise
        ignored."""
        if Path("/proc/driver/nvidia").exists():
            self.skipTest("the driver is here")
        self.begin(cards=False)
        with open("/dev/kmsg", "wb", buffering=0) as log:
            log.write(f"<3>NVRM: Xid (PCI:{BUS}): 79, pid={self.pid}, name=python3, GPU has fallen off the bus.\n".encode())
        counts = self.barrier()
        self.assertEqual((counts["xid"], counts["unconfirmed"]), (0, 1))
        self.let_go()
        self.assertEqual(self.run_of_victim.wait(PATIENCE), 1)
        self.assertEqual(self.served.verdict(self.job)["code"], "X1")


class KernelNamesOfTheHost(HostileTest, NamedPrograms):
    def test_a_program_named_like_a_poisoned_page(self):
        """A program named like the kernel's report of a failed memory page of the victim's crashes: the victim's job is not X15."""
        self.begin(cards=False)
        self.assert_nothing_came_of_it(
            f"Memory failure: 0x3a1c2: Killing python3:{self.pid} due to hardware memory corruption",
            "mce: [Hardware Error]: Machine check events logged", "EDAC MC0: 1 UE memory read error on D#0 (channel:1)")

    def test_a_program_named_like_a_hung_task(self):
        """A program named like the kernel's report of a hung task of the victim's crashes: the victim's job is not affected."""
        self.begin(cards=False)
        self.assert_nothing_came_of_it(f"INFO: task python3:{self.pid} blocked for more than 122 seconds.",
                                       f"INFO: task a:{self.pid} blocked for more than 122 seconds.")

    def test_a_program_named_like_storage_that_fails(self):
        """Programs named like reports of failing disks and unresponsive file servers crash: there is no warning and no X21."""
        self.begin(cards=False)
        # A file's name holds no "/".
        self.assert_nothing_came_of_it("nvme nvme0: controller is down; will reset: CSTS=0xffffffff",
                                       "nfs: server fs-7 not responding, still trying", "nfs: server fs-7 OK", "ceph: mds0 hung",
                                       "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm x: y",
                                       "XFS (sda1): Corruption of in-memory data detected.  Shutting down filesystem.")

    def test_a_program_named_like_an_error_of_the_bus(self):
        """A program named like fatal errors of the PCIe bus crashes: there is no warning about the bus."""
        self.begin(cards=False)
        self.assert_nothing_came_of_it(f"nvidia {BUS}.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=X",
                                       f"pcieport {BUS}.0: AER: Uncorrectable (Fatal) error message received from {BUS}.0",
                                       "efa 0000:00:1d.0: Failed to get device attributes -110")


if __name__ == "__main__":
    run_tests()
