# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What a job's libraries report of themselves, under `rankscope serve`: ranks freeze, a RAS service of the protocol that NCCL
speaks answers for them, dumps of the Flight Recorder's form lie on disk, and the verdict names the rank that never came. The
service and the dumps are made here: there is no NCCL on this machine."""
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from serve_test import BINARY, ServeTest, wait_for  # noqa: E402

JOB = "8841"
SUPPORT = Path(__file__).resolve().parent.parent / "support"

# A launcher of four ranks. Rank 0 prints; from step 12 on rank 2 is elsewhere and the others wait for it.
LAUNCHER = r"""
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, "-u", sys.argv[1]], env={**os.environ, "RANK": str(r), "LOCAL_RANK": str(r),
                          "WORLD_SIZE": "4"}) for r in range(4)]
for rank in ranks:
    rank.wait()
sys.exit(1)
"""
RANK = r"""
import os, sys, time
sys.path.insert(0, os.environ["SUPPORT"])
rank, folder = int(os.environ["RANK"]), os.environ["FOLDER"]
with open(f"{folder}/pid_{rank}", "w") as own:
    own.write(str(os.getpid()))
if rank == 0 and os.environ.get("SERVICE"):
    import threading, ras_service
    threading.Thread(target=ras_service.serve, args=(int(os.environ["NCCL_RAS_ADDR"].rsplit(":")[-1]), folder,
                                                     os.environ["SERVICE"]), daemon=True).start()
for step in range(1, 13):
    if rank == 0:
        print(f"step {step} loss {4.0 / step + 0.5:.4f} lr 0.05 step_time 0.053s")
    time.sleep(0.2)
while not os.path.exists(folder + "/end"):
    if not os.path.isdir(folder):
        sys.exit(9)  # the test is over
    if os.path.exists(folder + "/dump") and not os.path.exists(f"{folder}/trace_{rank}"):
        import pathlib, flight_dumps
        hidden = pathlib.Path(f"{folder}/.trace_{rank}")
        flight_dumps.write(hidden, flight_dumps.of_world(4, 4520 if rank == 2 else 4522, 4520))
        hidden.rename(f"{folder}/trace_{rank}")
    time.sleep(0.05)
sys.exit(1)
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class NcclReports(ServeTest):
    def frozen(self, *sources, **environment):
        (Path(self.folder) / "launch.py").write_text(LAUNCHER)
        (Path(self.folder) / "rank.py").write_text(RANK)
        config = Path(self.folder) / "config.yaml"
        config.write_text("families: {collective_hang: {hang_floor: 5s}}\nsources: {" + ", ".join(sources) + "}\n")
        daemon = self.daemon("--config", str(config))
        process = subprocess.Popen(
            [BINARY, "run", "--socket", daemon.socket, "--job-id", JOB, "--dir", f"{self.folder}/run", "--", sys.executable,
             "launch.py", "rank.py"],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**self.environment, "SUPPORT": str(SUPPORT), "FOLDER": self.folder, **environment})
        self.addCleanup(lambda: (Path(self.folder, "end").touch(), process.wait()))
        return daemon

    def hang(self, daemon, condition):
        def look():
            found = daemon.verdicts().get(JOB)  # there may be others' ranks on the machine
            return found and found["code"] == "C2" and condition(found) and found
        return wait_for(f"the verdict of a hang; {daemon.text()}", look)

    def shown(self, verdict, text):
        texts = [evidence["text"] for evidence in verdict["shows"]]
        self.assertTrue(any(text in shown for shown in texts), f"'{text}' in none of {texts}")

    def open_questions(self, verdict):
        return " ".join(question["question"] for question in verdict["cannot_decide"])

    def test_dumps_of_the_flight_recorder_name_the_rank(self):
        daemon = self.frozen("nccl_dumps: {interval: 1s}", TORCH_NCCL_DEBUG_INFO_TEMP_FILE=f"{self.folder}/trace_")
        verdict = self.hang(daemon, lambda _: True)
        self.assertEqual(verdict["ranks"], [])
        self.assertIn("which rank did not enter", self.open_questions(verdict))
        Path(self.folder, "dump").touch()
        verdict = self.hang(daemon, lambda verdict: verdict["ranks"])
        self.assertEqual((verdict["ranks"], verdict["tier"]), ([2], "C"))
        self.shown(verdict, "rank 2 has reached operation 4520 of group 0 (default_pg); the furthest rank has reached 4522")
        self.assertNotIn("which rank did not enter", self.open_questions(verdict))

    def test_ras_names_the_rank(self):
        port = free_port()
        daemon = self.frozen("nccl_ras: {interval: 1s}", NCCL_RAS_ADDR=f"localhost:{port}", SERVICE="json")
        begin = time.monotonic()
        verdict = self.hang(daemon, lambda verdict: verdict["ranks"])
        self.assertEqual((verdict["ranks"], verdict["tier"]), ([2], "C"))
        self.shown(verdict, "rank 2 has launched 11 AllReduce operations; 3 ranks have launched 12 (source: NCCL RAS, unchanged in")
        self.assertGreater(time.monotonic() - begin, 10, "one report is not believed")
        # Each rank is the process that NCCL knows by its number.
        for rank in range(4):
            pid = Path(self.folder, f"pid_{rank}").read_text()
            explained = subprocess.run([BINARY, "explain", pid, "--address", daemon.address], capture_output=True, text=True,
                                       check=True).stdout
            self.assertIn(f"nccl ras: rank {rank} of 4, process {pid} on 127.0.0.1, CUDA device {rank}", explained)
            self.assertIn("; the same rank\n", explained)
        asked = Path(self.folder, "questions").read_text().splitlines()
        self.assertIn("CLIENT PROTOCOL 2", asked)
        self.assertIn("VERBOSE STATUS", asked)

    def test_a_service_that_never_answers_holds_nobody_up(self):
        port = free_port()
        daemon = self.frozen("nccl_ras: {interval: 1s}", NCCL_RAS_ADDR=f"localhost:{port}", SERVICE="silent")
        verdict = self.hang(daemon, lambda _: True)
        self.assertEqual(verdict["ranks"], [])
        self.assertEqual(daemon.metric('rankscope_source_up{source="nccl_ras"}'), 1)
        begin = time.monotonic()
        self.assertEqual(daemon.stop(), 0)
        self.assertLess(time.monotonic() - begin, 10, "asking takes up to 15 s")


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    sys.exit(0 if outcome.wasSuccessful() else 1)
