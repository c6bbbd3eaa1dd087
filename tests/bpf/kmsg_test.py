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
    """The node's cards are those of a stand-in for the driver's library: of others no line is believed."""

    def setUp(self):
        super().setUp()
        if not os.access("/dev/kmsg", os.W_OK):
            self.skipTest("needs /dev/kmsg")
        # Ten lines in five seconds is what the kernel takes from one writer by default.
        # And a line that goes to a serial console takes three milliseconds.
        for name, value in (("printk_devkmsg", "on\n"), ("printk", "1\n")):
            setting = Path("/proc/sys/kernel") / name
            self.addCleanup(setting.write_text, setting.read_text())
            setting.write_text(value)

    def daemon(self, *flags, script=()):
        if not (FAKE_NVML / "libnvidia-ml.so.1").exists():
            self.fail(f"no stand-in in {FAKE_NVML}")
        self.script = Path(self.folder) / "gpus"
        self.say(*script)
        for key, value in (("LD_LIBRARY_PATH", str(FAKE_NVML)), ("FAKE_NVML_SCRIPT", str(self.script))):
            self.addCleanup(os.environ.__setitem__ if key in os.environ else os.environ.pop, key, os.environ.get(key, ""))
            os.environ[key] = value
        daemon = super().daemon(*flags)
        wait_for("the cards", lambda: self.bus_of(daemon, 3))
        return daemon

    def say(self, *lines):
        next_script = self.script.with_suffix(".next")
        next_script.write_text("\n".join(["driver 550.54.15", "gpus 4 hopper", *lines, ""]))
        next_script.rename(self.script)

    def bus_of(self, daemon, gpu):
        """As the kernel's log names it: without the function, with four digits of the domain."""
        found = re.search(rf'rankscope_gpu_info{{gpu="{gpu}",[^}}]*pci_bus_id="([^"]+)"', daemon.get("/metrics")[1])
        return found and found[1].split(".")[0][-10:]

    def write(self, *lines):
        with open("/dev/kmsg", "wb", buffering=0) as log:
            for line in lines:
                log.write(f"<3>{line}\n".encode())  # without its end, a line waits for the next one

    def xid(self, code, pid, text):
        self.write(f"NVRM: Xid (PCI:0000:28:00): {code}, pid={pid}, name=python3, {text}")

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
        line = f"NVRM: Xid (PCI:0000:28:00): 13, pid={process.pid}, name=python3, Graphics Exception: ESR 0x505730=0x12000e"
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

    def held(self, daemon, gpu):
        return re.search(rf'rankscope_gpu_processes{{gpu="{gpu}",[^}}]*kind="compute"}} [1-9]', daemon.get("/metrics")[1])

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

    def number(self, daemon, metric, gpu, label):
        """Of the newest scrape; None: there is no such series."""
        found = re.search(rf'(?m)^rankscope_gpu_{metric}{{gpu="{gpu}",[^}}]*,{label}}} (\S+)$', daemon.get("/metrics")[1])
        return float(found[1]) if found else None

    def count(self, daemon, gpu, code):
        return self.number(daemon, "xid_errors_total", gpu, f'xid="{code}"')

    def waits(self, daemon, gpu):
        """What the card waits for, or None where nobody tells."""
        actions = ("none", "reset_gpu", "reboot", "inspect")
        values = {action: self.number(daemon, "xid_pending_action", gpu, f'action="{action}"') for action in actions}
        return {action for action, value in values.items() if value} if None not in values.values() else None

    def wait_waits(self, daemon, gpu, *expected):
        wait_for(f"GPU {gpu} to wait for {expected}; it waits for {self.waits(daemon, gpu)}",
                 lambda: self.waits(daemon, gpu) == set(expected))

    def line(self, daemon, gpu, code, text="Uncontained: LTC TAG (0x2,0x0)"):
        self.write(f"NVRM: Xid (PCI:{self.bus_of(daemon, gpu)}): {code}, pid='<unknown>', name=<unknown>, {text}")

    def test_told_by_the_log_and_the_library_it_is_one(self):
        daemon = self.daemon()
        wait_for("the cards", lambda: self.bus_of(daemon, 3))
        self.wait_waits(daemon, 2, "none")
        self.say("gpu 2 xid 95")
        self.line(daemon, 2, 95)
        wait_for("it", lambda: self.count(daemon, 2, 95) == 1)
        time.sleep(1.5)
        self.assertEqual(self.count(daemon, 2, 95), 1)
        self.line(daemon, 2, 95)
        self.line(daemon, 2, 95)
        wait_for("two more", lambda: self.count(daemon, 2, 95) == 3)
        self.assertIsNone(self.count(daemon, 3, 95))

    def test_where_the_log_may_not_be_read_the_library_tells(self):
        config = Path(self.folder) / "c.yaml"
        config.write_text("sources: {kmsg: {enabled: false}}\n")
        daemon = self.daemon("--config.file", str(config))
        process, job = self.rank_of_job(daemon)
        held = f"gpu 2 process {process.pid} 8589934592"
        self.say(held)
        wait_for("the process on its card", lambda: self.held(daemon, 2))
        begin = time.monotonic()
        self.say(held, "gpu 2 xid 95")
        verdict = wait_for("the finding", lambda: (found := daemon.verdicts().get(job)) and found["code"] == "B2" and found)
        print(f"raised {time.monotonic() - begin:.2f} s after the library knew", file=sys.stderr)
        self.assertEqual((verdict["sub"], verdict["ranks"]), ("xid", [0]))
        self.shown(verdict, "NVML reported Xid 95")
        self.assertEqual(self.count(daemon, 2, 95), 1)
        self.wait_waits(daemon, 2, "reset_gpu")
        self.assertEqual(self.end(daemon, process, job)["code"], "B2")

    def test_what_a_card_waits_for_stands_until_it_is_done(self):
        daemon = self.daemon(script=["gpu * energy 5000000 +70000", "gpu * field_230 none"])
        wait_for("the cards", lambda: self.bus_of(daemon, 3))
        for gpu in range(4):
            self.line(daemon, gpu, 154, "GPU recovery action changed from 0x1 (GPU Reset) to 0x0 (None)")
            self.wait_waits(daemon, gpu, "none")  # of lines of other tests, too
        before = self.count(daemon, 0, 95) or 0
        for gpu in (0, 1, 2):
            self.line(daemon, gpu, 95)
        self.line(daemon, 3, 79, "GPU has fallen off the bus.")
        for gpu in (0, 1, 2):
            self.wait_waits(daemon, gpu, "reset_gpu")
        self.wait_waits(daemon, 3, "reboot")
        self.assertEqual(self.count(daemon, 0, 95), before + 1)
        # Two are reset: one with new counters, one by the driver's own word. Silence mends nothing.
        self.line(daemon, 1, 154, "GPU recovery action changed from 0x1 (GPU Reset) to 0x0 (None)")
        self.say("gpu 0 energy 10 +70000", "gpu 1 energy 5000000 +70000", "gpu 2 energy 5000000 +70000", "gpu 3 lost")
        self.wait_waits(daemon, 0, "none")
        self.wait_waits(daemon, 1, "none")
        wait_for("the loss", lambda: self.number(daemon, "health", 3, 'state="lost"') == 1)
        self.say("gpu 3 energy 10 +70000", "gpu 2 energy 5000000 +70000", "gpu * field_230 none")
        self.wait_waits(daemon, 3, "none")
        self.assertEqual(self.waits(daemon, 2), {"reset_gpu"})
        # What the card waits for outlives the daemon; what was counted is of the daemon before.
        daemon.stop()
        before = time.time()
        daemon = self.daemon(script=["gpu * field_230 none"])
        wait_for("the cards", lambda: self.bus_of(daemon, 3))
        self.wait_waits(daemon, 2, "reset_gpu")
        self.wait_waits(daemon, 1, "none")
        self.assertEqual(self.count(daemon, 2, 95), 0)
        last = self.number(daemon, "last_xid_timestamp_seconds", 2, 'xid="95"')
        self.assertTrue(before - 120 < last < before, f"{last} against {before}")
        # A run that begins now is told of it, and blames nothing on it.
        process, job = self.rank_of_job(daemon)
        self.say(f"gpu 2 process {process.pid} 8589934592", "gpu * field_230 none")
        warned = wait_for("the warning", lambda: [warning for warning in daemon.verdicts()[job].get("warnings", [])
                                                  if warning["kind"] == "gpu_latent"])
        self.assertIn("Xid 95", warned[0]["text"])
        self.assertNotEqual(self.end(daemon, process, job)["code"], "B2")
        self.say()  # the driver asks for nothing: it was reset in between, whoever did it
        self.wait_waits(daemon, 2, "none")

    def test_thirty_thousand_lines_are_counted(self):
        daemon = self.daemon()
        wait_for("the cards", lambda: self.bus_of(daemon, 3))
        bus = self.bus_of(daemon, 2)
        before = self.count(daemon, 2, 13) or 0
        resident, spent = (daemon.metric(name) for name in ("process_resident_memory_bytes", "process_cpu_seconds_total"))
        self.write(f"NVRM: Xid (PCI:{bus}): 13, pid=1, name=python3, Graphics Exception: ESR 0x505730=0x12000e")
        lost = daemon.metric('rankscope_source_lost_total{source="kmsg"}')
        line = f"NVRM: Xid (PCI:{bus}): 13, pid=1, name=python3, Graphics Exception: ESR 0x505730=0x12000e"
        begin = time.monotonic()
        slowest = 0
        for i in range(30):
            self.write(*[line] * 1000)
            asked = time.monotonic()
            if i % 10 == 0:
                self.assertEqual(daemon.get("/metrics")[0], 200)
                slowest = max(slowest, time.monotonic() - asked)
            time.sleep(max(0, begin + (i + 1) * 0.1 - time.monotonic()))
        took = time.monotonic() - begin
        counted = wait_for("all of them", lambda: (now := (self.count(daemon, 2, 13) or 0) - before +
                                                   daemon.metric('rankscope_source_lost_total{source="kmsg"}') - lost)
                           >= 30_001 and now)
        self.assertEqual(counted, 30_001)
        spent = daemon.metric("process_cpu_seconds_total") - spent
        grown = daemon.metric("process_resident_memory_bytes") - resident
        print(f"{counted:.0f} lines in {took:.1f} s: {spent / took:.1%} of a core, {grown / 2**20:+.1f} MiB, "
              f"slowest scrape {slowest:.3f} s", file=sys.stderr)
        self.assertLess(spent / took, 0.5)
        self.assertLess(grown, 16 << 20)


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
