# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""GPUs under `rankscope serve`, by a stand-in for the driver's library that does what a script says (tests/support/fake_nvml):
what of them stands on /metrics, and what one that hangs or is lost does to the others."""
import ctypes
import http.server
import os
import re
import sys
import threading
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
    return f"GPU-{0xfa4e0000 + int(gpu):08x}-0000-4000-8000-000000000000"


def name(metric, gpu, **labels):
    own = "".join(f',{label}="{value}"' for label, value in labels.items())
    return f'rankscope_gpu_{metric}{{gpu="{gpu}",gpu_uuid="{uuid(gpu)}"{own}}}'


class GpuTest(unittest.TestCase):
    """What the classes below share; each is a ServeTest as well."""

    def say(self, script):
        path = Path(self.folder) / "gpus"
        path.with_suffix(".next").write_text(script)
        path.with_suffix(".next").rename(path)

    def start(self, script, library=FAKE, flags=()):
        self.say(script)
        for key, value in (("LD_LIBRARY_PATH", str(Path(library).resolve())),
                           ("FAKE_NVML_SCRIPT", str(Path(self.folder) / "gpus"))):
            self.addCleanup(os.environ.__setitem__ if key in os.environ else os.environ.pop, key, os.environ.get(key, ""))
            os.environ[key] = value
        if "--config" not in flags:
            # Runs of other tests beside this one take series, too.
            config = Path(self.folder) / "roomy.yaml"
            config.write_text("metrics: {max_series: 16000}\n")
            flags = (*flags, "--config", str(config))
        return self.daemon(*flags)

    def with_exporter(self):
        """One of its own; flags that name it, have its names shown and ask it often."""
        self.exporter = DcgmExporter()
        self.addCleanup(self.exporter.close)
        config = Path(self.folder) / "dcgm.yaml"
        config.write_text(f'gpu: {{dcgm_url: "{self.exporter.url}"}}\nmetrics: {{dcgm_names: true}}\n'
                          "sources: {dcgm: {interval: 200ms}}\n")
        return "--config", str(config)

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


class CardsOfAProlog(ServeTest, GpuTest):
    """A job that has cards here and no process, by the files that a prolog writes."""

    def test(self):
        mapping = Path(self.folder) / "mapping"
        mapping.mkdir()
        config = Path(self.folder) / "mapping.yaml"
        config.write_text(f'slurm: {{mapping_dir: "{mapping}"}}\nsources: {{job_mapping: {{interval: 200ms}}}}\n')
        daemon = self.start(EIGHT, flags=("--config", str(config)))
        self.wait_up(daemon, list(range(GPUS)))
        self.assertEqual(daemon.metric('rankscope_source_up{source="job_mapping"}'), 1)

        def cards(job="7788"):
            return dict(re.findall(rf'^rankscope_job_gpu\{{job_id="{job}",gpu="(\d+)",gpu_uuid="[^"]*",source="(\w+)"\}} 1$',
                                   daemon.get("/metrics")[1], re.M))
        for gpu in (1, 4):
            (mapping / str(gpu)).write_text("7788\n")
        (mapping / "notes").write_text("7788\n")
        wait_for("its cards", lambda: cards() == {"1": "mapping", "4": "mapping"})
        (mapping / "4").unlink()
        wait_for("one to be taken back", lambda: cards() == {"1": "mapping"})
        (mapping / "1").write_text("")
        self.assertEqual(daemon.verdict("7788")["code"], "U0")
        self.assertEqual(cards(), {})


class WhoseCards(ServeTest, GpuTest):
    """A job's cards by Slurm's numbers, under a cgroup that makes CUDA count from 0 again; one of them nobody uses.

    Jobs of other tests that run beside this one are on the cards of their LOCAL_RANK, and one with many ranks is on these too: shares
    are compared with the number of jobs that the same page has on a card.
    """
    CARDS = 16

    def cards(self, daemon, metric, job, *rest):
        """{card: value} of the job's series of this name, which have these labels as well."""
        found = {}
        text = daemon.get("/metrics")[1]
        for labels, value in re.findall(rf'^rankscope_{metric}\{{job_id="{job}",([^}}]*)\}} (\S+)$', text, re.M):
            if all(label in labels for label in rest):
                card = re.search(r'gpu="(\d+)",gpu_uuid="([^"]+)"', labels)
                self.assertEqual(card[2], uuid(int(card[1])))
                found[int(card[1])] = float(value)
        return found

    def shares(self, daemon, job):
        """{card: (the job's share, jobs on the card)} of one page."""
        text = daemon.get("/metrics")[1]
        return {int(card): (float(share), len(re.findall(rf'^rankscope_job_gpu_share_ratio\{{job_id="[^"]*",gpu="{card}",', text, re.M)))
                for card, share in re.findall(
                    rf'^rankscope_job_gpu_share_ratio\{{job_id="{job}",gpu="(\d+)",[^}}]*\}} (\S+)$', text, re.M)}

    def is_shared(self, daemon, job, card, jobs):
        """The job has its part of the card, on which there are at least so many jobs."""
        share, on_it = self.shares(daemon, job).get(card, (0, 0))
        return on_it >= jobs and abs(share - 1 / on_it) < 1e-6

    def job(self, daemon, job, **variables):
        self.environment = {key: value for key, value in self.environment.items()
                            if not key.startswith("SLURM_") and "_VISIBLE_DEVICES" not in key and key != "GPU_DEVICE_ORDINAL"}
        self.environment.update({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", **variables})
        before = self.trainers()
        self.train(daemon, job)
        return wait_for("the trainer", lambda: self.trainers() - before).pop()

    def trainers(self):
        """Pids of processes that run this test's program, not of the wrappers that started it."""
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                argv = (process / "cmdline").read_text().split("\0")
            except OSError:
                continue  # it has ended
            if argv[0] == sys.executable and str(Path(self.folder) / "train.py") in argv:
                found.add(process.name)
        return found

    def test(self):
        script = f"driver 550.54.15\ngpus {self.CARDS} hopper\n"
        daemon = self.start(script)
        self.wait_up(daemon, list(range(self.CARDS)))
        first = {"SLURM_JOB_ID": "8841", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_GPUS": "12,13",
                 "CUDA_VISIBLE_DEVICES": "0,1", "GPU_DEVICE_ORDINAL": "0,1"}
        pid = self.job(daemon, "8841", **first)
        wait_for("the job's cards", lambda: self.cards(daemon, "job_gpu", "8841", 'source="slurm"') == {12: 1, 13: 1})
        self.assertEqual(self.cards(daemon, "job_gpu_attached", "8841"), {12: 0, 13: 0})
        self.assertTrue(self.is_shared(daemon, "8841", 12, 1) and self.is_shared(daemon, "8841", 13, 1), self.shares(daemon, "8841"))
        self.assertEqual(self.cards(daemon, "rank_gpu_info", "8841"), {}, "CUDA's numbers are not the node's")

        # Its rank comes to one of them; the other stays the job's.
        self.say(script + f"gpu 12 process {pid} 8589934592\n")
        wait_for("the rank on its card", lambda: self.cards(daemon, "job_gpu_attached", "8841") == {12: 1, 13: 0})
        self.assertEqual(self.cards(daemon, "job_gpu", "8841", 'source="slurm"'), {12: 1, 13: 1})
        self.assertEqual(self.cards(daemon, "rank_gpu_info", "8841", 'rank="0"'), {12: 1})

        # A second job with a card of the first: each has its part.
        self.job(daemon, "8842", CUDA_VISIBLE_DEVICES=f"{uuid(99)},{uuid(13)}", LOCAL_RANK="1", WORLD_SIZE="2")
        wait_for("the second job's card", lambda: self.cards(daemon, "job_gpu", "8842", 'source="uuid"') == {13: 1})
        self.assertEqual(self.cards(daemon, "rank_gpu_info", "8842", 'rank="0"'), {13: 1}, "the one of its LOCAL_RANK")
        wait_for("shares", lambda: self.is_shared(daemon, "8841", 12, 1) and self.is_shared(daemon, "8841", 13, 2))
        self.assertTrue(self.is_shared(daemon, "8842", 13, 2), self.shares(daemon, "8842"))

        # Who ends has no cards.
        Path(self.go).touch()
        daemon.verdict("8841")
        daemon.verdict("8842")
        wait_for("the end", lambda: not any(self.cards(daemon, "job_gpu", job) for job in ("8841", "8842")))


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


class DcgmExporter:
    """Its page and no more, on a port of its own."""

    def __init__(self, port=0):
        outer = self
        self.body, self.status, self.type = "", 200, "text/plain; version=0.0.4"

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = outer.body.encode()
                self.send_response(outer.status)
                self.send_header("Content-Type", outer.type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/metrics"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        self.server = None

    def say(self, **cards):
        """cards: c0={"SM_ACTIVE": 0.5}"""
        self.body = "# HELP DCGM_FI_PROF_SM_ACTIVE x\n"
        for card, values in cards.items():
            for field, value in values.items():
                self.body += f'DCGM_FI_{field}{{gpu="{card[1:]}",UUID="{uuid(card[1:])}",Hostname="n1"}} {value}\n'


class AmpereWithDcgmExporter(ServeTest, GpuTest):
    def test(self):
        flags = self.with_exporter()
        self.exporter.say(c0={"DEV_POWER_USAGE": 300.5, "PROF_SM_ACTIVE": 0.25, "PROF_PIPE_TENSOR_ACTIVE": 0.125},
                          c1={"DEV_POWER_USAGE": 70, "PROF_SM_ACTIVE": "NaN", "PROF_DRAM_ACTIVE": 0.5})
        daemon = self.start("gpus 3 ampere\ngpu 2 power 150000\n", flags=flags)
        self.wait_up(daemon, [0, 1, 2])
        wait_for("DCGM's value", lambda: daemon.metric(name("sm_active_ratio", 0)) == 0.25)
        self.assertEqual(daemon.metric('rankscope_source_up{source="dcgm"}'), 1)
        self.assertEqual(daemon.metric(name("pipe_active_ratio", 0, pipe="tensor")), 0.125)
        self.assertEqual(daemon.metric(name("utilization_source_info", 0, source="dcgm")), 1)
        self.assertIsNone(daemon.metric(name("sm_active_ratio", 1)), "NaN is no number")
        self.assertEqual(daemon.metric(name("dram_active_ratio", 1)), 0.5)
        self.assertIsNone(daemon.metric(name("sm_active_ratio", 2)), "nobody tells of it")
        self.assertEqual(daemon.metric(name("utilization_source_info", 2, source="nvml")), 1)

        # Under the names that dcgm-exporter gives them, too.
        page = daemon.get("/metrics")[1]
        mine = re.findall(r'^DCGM_FI_DEV_POWER_USAGE\{gpu="2",UUID="([^"]+)",pci_bus_id="[^"]+",device="nvidia0",modelName="[^"]+",'
                          r'Hostname="[^"]+",DCGM_FI_DRIVER_VERSION="[^"]+"\} (\S+)$', page, re.M)
        self.assertEqual(mine, [(uuid(2), "150")])
        self.assertEqual(re.findall(r'^DCGM_FI_PROF_SM_ACTIVE\{gpu="(\d)".* (\S+)$', page, re.M), [("0", "0.25")])

        # Somebody else's page, then nobody's: absent, and said so, never 0.
        self.exporter.type, self.exporter.body = "text/html", "<html><body>It works!</body></html>"
        wait_for("the reason", lambda: "serves no metrics" in daemon.text())
        wait_for("its absence", lambda: daemon.metric(name("sm_active_ratio", 0)) is None)
        self.assertEqual(daemon.metric('rankscope_source_up{source="dcgm"}'), 0)
        self.assertEqual(daemon.metric('rankscope_source_up{source="nvml"}'), 1)
        self.exporter.close()
        wait_for("the reason", lambda: "cannot be reached: Connection refused" in daemon.text())
        self.assertEqual(daemon.stop(), 0)


class HopperCountsItself(ServeTest, GpuTest):
    """Its own counters are newer than any exporter's."""
    def test(self):
        flags = self.with_exporter()
        self.exporter.say(c0={"DEV_POWER_USAGE": 300.5, "PROF_SM_ACTIVE": 0.25})
        daemon = self.start("gpus 1 hopper\ngpu * gpm_2 91\n", flags=flags)
        wait_for("both", lambda: daemon.metric(name("sm_active_ratio", 0)) == 0.91 and
                 daemon.metric('rankscope_source_up{source="dcgm"}') == 1)
        self.assertEqual(daemon.metric(name("utilization_source_info", 0, source="gpm")), 1)
        self.assertIsNone(daemon.metric(name("utilization_source_info", 0, source="dcgm")))


class PartsComeAndGo(ServeTest, GpuTest):
    """MIG is set up under us, and taken away: instances with their memory, never the ones of before."""

    def test(self):
        daemon = self.start("gpus 1 hopper\n")
        self.wait_up(daemon, [0])
        self.assertIsNone(daemon.metric(name("mig_instances", 0)))
        self.say("gpus 1 hopper\ngpu 0 mig MIG-a 1073741824 10737418240\ngpu 0 mig MIG-b 0 21474836480\n")
        wait_for("two instances", lambda: self.instances(daemon) == (2, {"MIG-a": 1 << 30, "MIG-b": 0}))
        self.assertEqual(daemon.metric(name("mig_memory_total_bytes", 0, mig="MIG-b")), 20 << 30)
        self.say("gpus 1 hopper\ngpu 0 mig MIG-c 5 21474836480\n")
        wait_for("another", lambda: self.instances(daemon) == (1, {"MIG-c": 5}))
        self.say("gpus 1 hopper\n")
        wait_for("their end", lambda: self.up(daemon) == {0: True} and self.instances(daemon) == (None, {}))

    def instances(self, daemon):
        """Their number and the memory that each uses, of one page."""
        page = daemon.get("/metrics")[1]
        number = re.search(r"^rankscope_gpu_mig_instances\{[^}]*\} (\S+)$", page, re.M)
        used = re.findall(r'^rankscope_gpu_mig_memory_used_bytes\{[^}]*mig="([^"]*)"[^}]*\} (\S+)$', page, re.M)
        return int(number[1]) if number else None, {mig: float(value) for mig, value in used}


class NoNumberIsNone(ServeTest, GpuTest):
    """What stands for "not available" in NVML and below it is no number on /metrics, and calls that fail are counted."""

    def test(self):
        daemon = self.start("gpus 1 hopper\ngpu 0 power 4294967295\ngpu 0 energy 9223372036854775794\n"
                            "gpu 0 temperature 2147483632\ngpu 0 gpm_2 nan\ngpu 0 pcie_replays none\n"
                            "gpu 0 error nvmlDeviceGetPerformanceState 999\n")
        self.wait_up(daemon, [0])
        wait_for("errors", lambda: (daemon.metric(
            'rankscope_nvml_errors_total{call="nvmlDeviceGetPerformanceState",code="unknown"}') or 0) > 2)
        self.assertEqual(daemon.metric(name("up", 0)), 1)
        for metric in ("power_watts", "energy_joules_total", "sm_active_ratio", "pcie_replays_total", "performance_state"):
            self.assertIsNone(daemon.metric(name(metric, 0)), metric)
        page = daemon.get("/metrics")[1]
        numbers = re.findall(r"^rankscope_gpu_\w+\{[^}]*\} (\S+)$", page, re.M)
        self.assertTrue(numbers)
        self.assertEqual([number for number in numbers if not abs(float(number)) < 2.0 ** 46], [])


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
