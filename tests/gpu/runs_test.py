# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Real runs of PyTorch on a real GPU (workload.py), and what rankscope says of them live and of their recordings."""
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from card_test import GpuTest, main  # noqa: E402
from reports_test import free_port  # noqa: E402
from serve_test import BINARY  # noqa: E402

WORKLOAD = str(Path(__file__).resolve().parent / "workload.py")
CALLS = str(Path(__file__).resolve().parent / "calls.py")
PYTHON = os.environ.get("RANKSCOPE_TORCH_PYTHON", sys.executable)  # of the environment where PyTorch is
LONG = int(os.environ.get("RANKSCOPE_TEST_LONG", "480"))  # seconds; families that look at five minutes of a card take as long


class TorchTest(GpuTest):
    def setUp(self):
        super().setUp()
        asked = subprocess.run([PYTHON, "-c", "import torch; print(torch.cuda.is_available())"], capture_output=True, text=True)
        if asked.stdout.strip() != "True":
            reason = f"no PyTorch that sees a GPU: {(asked.stderr.strip().splitlines() or ['torch.cuda.is_available() is False'])[-1]}"
            print(f"skipped: {reason}", file=sys.stderr)
            self.skipTest(reason)

    def start(self, how, **variables):
        self.watcher = self.cards()
        self.environment |= variables
        return self.run_wrapped(self.watcher, how, PYTHON, WORKLOAD, how)

    def until(self, what, condition):
        end, last = time.monotonic() + LONG, None
        while time.monotonic() < end:
            last = condition()
            if last:
                return last
            time.sleep(1)
        self.fail(f"waited {LONG} s for {what}; {self.watcher.verdicts()}; {self.watcher.text()}")

    def becomes(self, how, code, final=False):
        verdict = self.until(code, lambda: (found := self.watcher.verdicts().get(how)) and found["code"] == code and
                             (not final or found["state"] == "final") and found)
        print(f"{how}: {verdict['code']} {verdict['sub']} {verdict['confidence']}",
              *(f"\n    {shown['text']}" for shown in verdict["shows"]), file=sys.stderr)
        self.watcher.stop()  # all of the recording is on the disk
        again = subprocess.run([BINARY, "replay", str(Path(self.watcher.state) / "jobs" / how)], capture_output=True, check=True)
        self.assertEqual(json.loads(again.stdout)["verdicts"][0]["code"], code, "a replay says what was said live")
        if keep := os.environ.get("RANKSCOPE_KEEP_RECORDINGS"):  # a folder: recordings of real cards are worth keeping
            subprocess.run(["cp", "-r", str(Path(self.watcher.state) / "jobs" / how), keep], check=True)
        return verdict


class Oversize(TorchTest):
    def test(self):
        self.start("oversize")
        self.assertEqual(self.becomes("oversize", "B1", final=True)["sub"], "oversize")


class Fragmentation(TorchTest):
    def test(self):
        self.start("fragmentation", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:False")
        self.assertIn(self.becomes("fragmentation", "B1", final=True)["sub"], ("fragmentation", "plan"))


class Leak(TorchTest):
    def test(self):
        self.start("leak")
        self.assertEqual(self.becomes("leak", "B1", final=True)["sub"], "leak")


class IdleWithMemoryHeld(TorchTest):
    def test(self):
        self.start("idle")
        self.assertEqual(self.becomes("idle", "C3")["ranks"], [0])


class Healthy(TorchTest):
    def test(self):
        self.start("healthy")
        self.becomes("healthy", "G1", final=True)


class StarvedInput(TorchTest):
    def test(self):
        self.start("starved")
        self.becomes("starved", "D1")


class LaunchBlocking(TorchTest):
    def test(self):
        if os.geteuid() != 0:
            self.skipTest("its calls are counted in the kernel: needs root")
        self.start("blocking", CUDA_LAUNCH_BLOCKING="1")
        self.assertEqual(self.becomes("blocking", "D2")["sub"], "launch_blocking")


class SaveStorm(TorchTest):
    def test(self):
        self.start("save_storm")
        self.assertEqual(self.becomes("save_storm", "D2")["sub"], "save_storm")


class IllegalAddress(TorchTest):
    def test(self):
        self.start("illegal")
        self.becomes("illegal", "X3", final=True)


class AssertionOnTheDevice(TorchTest):
    def test(self):
        self.start("assertion")
        self.becomes("assertion", "X3", final=True)


class TwoRanksOnOneCard(TorchTest):
    def test_what_nccl_refuses_is_a_mistake_of_the_configuration(self):
        self.watcher = self.cards()
        self.run_wrapped(self.watcher, "shared", PYTHON, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_addr",
                         "127.0.0.1", "--master_port", str(free_port()), CALLS, "collectives", self.folder)
        verdict = self.becomes("shared", "A1", final=True)
        self.assertIn("Duplicate GPU", json.dumps(verdict["shows"]))


class SpinReading(TorchTest):
    def test_few_waiting_blocks_keep_the_engine_on_and_the_multiprocessors_off(self):
        self.start("spin")
        values = {}

        def spins():
            for name in ("engine_active", "sm_active"):
                found = re.findall(rf"^rankscope_gpu_{name}_ratio\{{[^}}]*\}} (\S+)$", self.watcher.get("/metrics")[1], re.M)
                values[name] = max(map(float, found), default=None)
            if values["engine_active"] is not None and values["sm_active"] is None and self.watcher.lines("spin") > 60:
                self.skipTest("this card does not count its multiprocessors' activity")
            return values["engine_active"] and values["engine_active"] >= 0.9 and values["sm_active"] <= 0.27
        self.until("an engine that is on and multiprocessors that are not", spins)
        print(f"16 busy-waiting blocks: {values}", file=sys.stderr)


if __name__ == "__main__":
    main()
