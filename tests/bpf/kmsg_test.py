# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The kernel's own log: lines as NVIDIA's driver writes them, about real processes, written to the real /dev/kmsg by hand."""
import os
import re
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bpf_test import BpfTest, wait_for  # noqa: E402

FAKE_NVML = Path(os.environ.get("FAKE_NVML_FOLDER", "build/tests/support/fake_nvml/lib")).resolve()
WAITS = """
import os, time
open(os.environ["READY"], "w").close()
while not os.path.exists("end"):
    time.sleep(0.01)
raise SystemExit(1)
"""


class KernelLogTest(BpfTest):
    def setUp(self):
        super().setUp()
        if not os.access("/dev/kmsg", os.W_OK):
            self.skipTest("needs /dev/kmsg")
        # Ten lines in five seconds is what the kernel takes from one writer by default.
        limit = Path("/proc/sys/kernel/printk_devkmsg")
        before = limit.read_text()
        limit.write_text("on\n")
        self.addCleanup(limit.write_text, before)

    def write(self, *lines):
        with open("/dev/kmsg", "wb", buffering=0) as log:
            for line in lines:
                log.write(f"<3>{line}\n".encode())  # without its end, a line waits for the next one

    def xid(self, code, pid, text):
        self.write(f"NVRM: Xid (PCI:0000:4F:00): {code}, pid={pid}, name=python3, {text}")

    def lines(self, daemon, kind):
        return daemon.metric(f'rankscope_kernel_events_total{{kind="{kind}"}}')

    def rank_of_job(self, daemon):
        process = self.python(WAITS)
        wait_for("the rank", lambda: (Path(self.folder) / "ready-0").exists())
        return process, self.job_of(daemon, process.pid)

    def end(self, daemon, process, job):
        (Path(self.folder) / "end").touch()
        process.wait()
        return daemon.verdict(job)


class KernelLog(KernelLogTest):
    def test_an_uncontained_error_is_the_cards(self):
        daemon = self.daemon()
        process, job = self.rank_of_job(daemon)
        begin = time.monotonic()
        self.xid(95, process.pid, "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No")
        verdict = wait_for("the finding", lambda: (found := daemon.verdicts().get(job)) and found["code"] == "B2" and found)
        print(f"raised {time.monotonic() - begin:.2f} s after the line", file=sys.stderr)
        self.assertEqual((verdict["sub"], verdict["ranks"], verdict["domain"]), ("xid", [0], "infrastructure"))
        self.shown(verdict, "Xid 95")
        self.assertEqual(self.end(daemon, process, job)["code"], "B2")

    def test_a_fault_of_the_programs_own_kernel_is_not(self):
        daemon = self.daemon()
        process, job = self.rank_of_job(daemon)
        self.xid(31, process.pid, "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted")
        verdict = self.end(daemon, process, job)
        self.assertEqual((verdict["code"], verdict["sub"], verdict["domain"]), ("X3", "xid", "workload"))

    def test_what_only_follows_decides_nothing(self):
        daemon = self.daemon()
        process, job = self.rank_of_job(daemon)
        self.xid(45, process.pid, "Ch 00000008")
        self.xid(79, 1, "GPU has fallen off the bus.")  # of somebody else
        wait_for("both", lambda: self.lines(daemon, "xid") >= 2)
        self.assertNotIn(self.end(daemon, process, job)["code"], ("B2", "X3"))

    def test_a_flood_is_counted_and_told_once_a_second(self):
        daemon = self.daemon()
        process, job = self.rank_of_job(daemon)
        before = self.lines(daemon, "xid")
        spent = daemon.metric("process_cpu_seconds_total")
        begin = time.monotonic()
        line = f"NVRM: Xid (PCI:0000:4F:00): 13, pid={process.pid}, name=python3, Graphics Exception: ESR 0x505730=0x12000e"
        for _ in range(100):
            self.write(*[line] * 100)
            time.sleep(0.01)
        counted = wait_for("all of them", lambda: (now := self.lines(daemon, "xid") - before +
                                                   daemon.metric('rankscope_source_lost_total{source="kmsg"}')) >= 10_000 and now)
        print(f"{counted:.0f} lines in {time.monotonic() - begin:.1f} s, "
              f"{daemon.metric('process_cpu_seconds_total') - spent:.2f} s of CPU", file=sys.stderr)
        verdict = self.end(daemon, process, job)
        self.assertEqual(verdict["code"], "X3")
        self.assertLess((Path(daemon.state) / "jobs" / job / "facts.rec").stat().st_size, 1 << 18, "not each is told")


class Cards(KernelLogTest):
    """Whose a card is, the driver's library says: a stand-in for it names real processes."""

    def daemon(self):
        if not (FAKE_NVML / "libnvidia-ml.so.1").exists():
            self.fail(f"no stand-in in {FAKE_NVML}")
        self.script = Path(self.folder) / "gpus"
        self.say()
        for key, value in (("LD_LIBRARY_PATH", str(FAKE_NVML)), ("FAKE_NVML_SCRIPT", str(self.script))):
            self.addCleanup(os.environ.__setitem__ if key in os.environ else os.environ.pop, key, os.environ.get(key, ""))
            os.environ[key] = value
        return super().daemon()

    def say(self, *lines):
        next_script = self.script.with_suffix(".next")
        next_script.write_text("\n".join(["driver 550.54.15", "gpus 4 hopper", *lines, ""]))
        next_script.rename(self.script)

    def held(self, daemon, gpu):
        return re.search(rf'rankscope_gpu_processes{{gpu="{gpu}",[^}}]*kind="compute"}} [1-9]', daemon.get("/metrics")[1])

    def bus_of(self, daemon, gpu):
        """As the kernel's log names it: without the function, with four digits of the domain."""
        found = re.search(rf'rankscope_gpu_info{{gpu="{gpu}",[^}}]*pci_bus_id="([^"]+)"', daemon.get("/metrics")[1])
        return found[1].split(".")[0][-10:]

    def test_an_error_that_names_no_process_is_of_who_computes_there(self):
        daemon = self.daemon()
        process, job = self.rank_of_job(daemon)
        self.say(f"gpu 2 process {process.pid} 8589934592")
        wait_for("the process on its card", lambda: self.held(daemon, 2))
        mine, other = (self.bus_of(daemon, gpu) for gpu in (2, 3))
        line = "NVRM: Xid (PCI:{}): 95, pid='<unknown>', name=<unknown>, Uncontained: LTC TAG (0x2,0x0)"
        self.write(line.format(other))
        wait_for("the line", lambda: self.lines(daemon, "xid") >= 1)
        time.sleep(2)
        self.assertNotEqual(daemon.verdicts()[job]["code"], "B2", "another card")
        self.write(line.format(mine))
        verdict = wait_for("the finding", lambda: (found := daemon.verdicts().get(job)) and found["code"] == "B2" and found)
        self.assertEqual((verdict["sub"], verdict["ranks"]), ("xid", [0]))
        self.assertTrue(verdict["gpus"][0].startswith("GPU-"), verdict["gpus"])
        self.assertEqual(self.end(daemon, process, job)["code"], "B2")


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
