# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""GPUs under `rankscope serve`, by a stand-in for the driver's library that does what a script says (tests/support/fake_nvml):
what of them stands on /metrics, and what one that hangs or is lost does to the others."""
import ctypes
import os
import re
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from serve_test import ServeTest, wait_for  # noqa: E402

FAKE = os.environ.get("FAKE_NVML_FOLDER", "build/tests/support/fake_nvml/lib")
OLD = str(Path(FAKE).parent / "old")
GPUS = 8
EIGHT = """driver 550.54.15
gpus 8 hopper
gpu * energy 5000000 +70000
gpu * gpm_2 91
gpu 5 power 612000
gpu 2 process 4711 8589934592
"""


def uuid(gpu):
    return f"GPU-fa4e000{gpu}-0000-4000-8000-000000000000"


def name(metric, gpu, **labels):
    own = "".join(f',{label}="{value}"' for label, value in labels.items())
    return f'rankscope_gpu_{metric}{{gpu="{gpu}",gpu_uuid="{uuid(gpu)}"{own}}}'


class GpuTest(unittest.TestCase):
    """What the classes below share; each is a ServeTest as well."""

    def say(self, script):
        path = Path(self.folder) / "gpus"
        path.with_suffix(".next").write_text(script)
        path.with_suffix(".next").rename(path)

    def start(self, script, library=FAKE):
        self.say(script)
        for key, value in (("LD_LIBRARY_PATH", str(Path(library).resolve())),
                           ("FAKE_NVML_SCRIPT", str(Path(self.folder) / "gpus"))):
            self.addCleanup(os.environ.__setitem__ if key in os.environ else os.environ.pop, key, os.environ.get(key, ""))
            os.environ[key] = value
        return self.daemon()

    def up(self, daemon):
        found = re.findall(r'^rankscope_gpu_up\{gpu="(\d+)",[^}]*\} (\d)$', daemon.get("/metrics")[1], re.M)
        return {int(gpu): value == "1" for gpu, value in found}

    def wait_up(self, daemon, expected):
        wait_for(f"the GPUs {expected} to be up; {daemon.text()}",
                 lambda: [gpu for gpu, value in self.up(daemon).items() if value] == expected)


class EightGpus(ServeTest, GpuTest):
    def test(self):
        daemon = self.start(EIGHT)
        everyone = list(range(GPUS))
        self.wait_up(daemon, everyone)
        self.assertEqual(daemon.metric('rankscope_source_up{source="nvml"}'), 1)
        self.assertEqual(daemon.metric(name("power_watts", 5)), 612)
        self.assertEqual(daemon.metric(name("memory_total_bytes", 0)), 85520809984)
        self.assertEqual(daemon.metric(name("processes", 2, kind="compute")), 1)
        self.assertEqual(daemon.metric(name("processes", 3, kind="compute")), 0)
        wait_for("two samples of the counters", lambda: daemon.metric(name("sm_active_ratio", 7)) == 0.91)
        self.assertIsNone(daemon.metric(name("fan_speed_ratio", 0)), "it has none")

        # One hangs, and one is lost.
        self.say(EIGHT + "gpu 3 hang\ngpu 6 lost\n")
        others = [gpu for gpu in everyone if gpu not in (3, 6)]
        self.wait_up(daemon, others)
        self.assertEqual(daemon.metric(name("health", 3, state="unresponsive")), 1)
        self.assertEqual(daemon.metric(name("health", 6, state="lost")), 1)
        self.assertIsNone(daemon.metric(name("power_watts", 3)), "what was, is not now")
        self.assertEqual(daemon.metric('rankscope_source_up{source="nvml"}'), 1)
        self.assertIn("gpu 3: NVML: a call does not return", daemon.text())
        before = {gpu: daemon.metric(name("energy_joules_total", gpu)) for gpu in others}
        for _ in range(3):
            last = dict(before)
            wait_for("the others to be looked at again", lambda: all(
                (daemon.metric(name("energy_joules_total", gpu)) or 0) > last[gpu] for gpu in others))
            before = {gpu: daemon.metric(name("energy_joules_total", gpu)) for gpu in others}
        started = time.monotonic()
        self.assertEqual(daemon.get("/metrics")[0], 200)
        self.assertLess(time.monotonic() - started, 1, "a scrape waits for no GPU")

        # Both come back.
        self.say(EIGHT)
        self.wait_up(daemon, everyone)
        self.assertEqual(daemon.metric(name("health", 3, state="healthy")), 1)
        self.assertEqual(daemon.metric(name("health", 6, state="healthy")), 1)
        self.assertEqual(daemon.metric('rankscope_series_dropped_total{reason="cap_gpu_detail"}'), 0)

        # And the daemon ends while one hangs.
        self.say(EIGHT + "gpu * hang\n")
        self.wait_up(daemon, [])
        self.assertEqual(daemon.stop(), 0)


class OldDriver(ServeTest, GpuTest):
    def test(self):
        daemon = self.start("driver 418.67\nprocess_bytes 16\ngpus 2 ampere\n", OLD)
        self.wait_up(daemon, [0, 1])
        self.assertEqual(daemon.metric(name("temperature_celsius", 1, sensor="core")), 34)
        self.assertIsNone(daemon.metric(name("energy_joules_total", 1)))
        self.assertIsNone(daemon.metric(name("sm_active_ratio", 1)))


class SixteenGpusThenNone(ServeTest, GpuTest):
    def test(self):
        daemon = self.start("gpus 16 ampere\n")
        wait_for("sixteen", lambda: sum(self.up(daemon).values()) == 16)
        self.assertEqual(daemon.metric('rankscope_series_dropped_total{reason="cap_gpu"}'), 0)
        daemon.stop()
        daemon = self.start("gpus 0 hopper\n")
        wait_for("the reason", lambda: "no NVIDIA GPU on this node" in daemon.text())
        self.assertEqual(self.up(daemon), {})
        self.assertEqual(daemon.metric('rankscope_source_up{source="nvml"}'), 0)


class NoPermission(ServeTest, GpuTest):
    def test(self):
        daemon = self.start("error nvmlInit_v2 4\ngpus 8 hopper\n")
        wait_for("the reason", lambda: "give this user access to /dev/nvidiactl" in daemon.text())
        self.assertEqual(daemon.metric('rankscope_source_up{source="nvml"}'), 0)
        self.say(EIGHT)  # it has been given: found without a restart
        self.wait_up(daemon, list(range(GPUS)))


class NoDriver(ServeTest, GpuTest):
    def test(self):
        try:
            ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            daemon = self.daemon()
            wait_for("the reason", lambda: "no NVIDIA driver on this node" in daemon.text())
            self.assertEqual(daemon.metric('rankscope_source_up{source="nvml"}'), 0)
            self.assertNotIn("rankscope_gpu_", daemon.get("/metrics")[1])
        else:
            self.skipTest("this machine has a driver")


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
