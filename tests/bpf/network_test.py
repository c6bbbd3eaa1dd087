# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""How ranks fail to meet, seen by programs in the real kernel: real PyTorch, real sockets, no wrapper and no text captured.

Each rank stands in a job of its own; those that need a packet filter or a route stand in a network namespace of their own.
"""
import datetime
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import recording  # noqa: E402
from bpf_test import BpfTest  # noqa: E402
from serve_test import wait_for  # noqa: E402

PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's torch
# A rank as they are written: the process group first.
RANK = """
import datetime, os, sys
import torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=float(os.environ["PATIENCE"])))
print("met", flush=True)
"""
# In decisions.md: an explicit failure is a verdict at 30 s.
EXPLICIT = 30


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True).returncode == 0


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class NetworkTest(BpfTest):
    def setUp(self):
        super().setUp()
        self.jobs = 0

    def rank_of_two(self, program=RANK, host="127.0.0.1", port=None, patience=300, namespace="", mounts="", traced=False,
                    calls="connect", **variables):
        """A rank 1 of 2 whose coordinator is nobody. Its job's name and its process."""
        self.jobs += 1
        job = f"7{os.getpid() % 100000:05d}{self.jobs}"
        environment = {**self.environment, "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "SLURM_JOB_ID": job,
                       "MASTER_ADDR": host, "MASTER_PORT": str(port or free_port()), "PATIENCE": str(patience), **variables}
        command = [PYTHON, "-c", program]
        if traced:
            command = ["strace", "-f", "-qq", "-e", f"trace={calls}", "-o", str(Path(self.folder) / "trace"), *command]
        if namespace:
            command = ["unshare", "-n", "sh", "-c", f'set -e; ip link set lo up; {namespace}; exec "$@"', "sh", *command]
        if mounts:
            command = ["unshare", "-m", "sh", "-c", f'set -e; {mounts}; exec "$@"', "sh", *command]
        log = open(Path(self.folder) / f"{job}.log", "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen(command, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return job, process

    def said(self, job):
        return (Path(self.folder) / f"{job}.log").read_text()

    def live(self, daemon, job, code, sub):
        def look():
            found = daemon.verdicts().get(job)
            return found if found and (found["code"], found["sub"]) == (code, sub) else None
        return wait_for(f"{code} {sub} of {job}, now {daemon.verdicts().get(job)}; it says: {self.said(job)}", look)


class Live(NetworkTest):
    """Four ranks whose coordinator cannot be reached in four ways, while they still try."""

    def test_the_trigger_is_named_while_they_try(self):
        if not has_torch():
            self.skipTest("needs python3-torch")
        if not shutil.which("nft"):
            self.skipTest("needs nftables")
        daemon = self.daemon()
        self.assertTrue(self.up(daemon, "network"), daemon.text())
        drop = ("nft add table inet t; nft add chain inet t in '{ type filter hook input priority 0; }'; "
                "nft add rule inet t in tcp dport 29500 drop")
        cases = {
            "refused": self.rank_of_two(),
            "syn_timeout": self.rank_of_two(port=29500, namespace=drop),
            "dns": self.rank_of_two(host="no-such-node.invalid"),
            "unreachable": self.rank_of_two(host="10.77.0.1", namespace="ip route add unreachable 10.77.0.1"),
        }
        begin = time.monotonic()
        for trigger, (job, process) in cases.items():
            verdict = self.live(daemon, job, "C1", trigger)
            print(f"{trigger}: {time.monotonic() - begin:.1f} s", verdict["shows"][0]["text"], file=sys.stderr)
            if trigger != "unreachable":  # which torch 1.13 does not try again
                self.assertEqual(verdict["state"], "live")
                self.assertIsNone(process.poll())
            # From the first try on, which may come late on a busy machine, and by the daemon's own clock.
            tried, named = (datetime.datetime.fromisoformat(verdict[at].replace("Z", "+00:00")) for at in ("onset", "detected"))
            self.assertLess((named - tried).total_seconds(), EXPLICIT + 20)
            self.assertEqual(verdict["ranks"], [1])
            self.assertNotIn("coordinator is down", self.questions(verdict), "what is proved is no open question")
            self.assertTrue(all(show["store"] == "kernel" for show in verdict["shows"][:1]), verdict["shows"])


class Ended(NetworkTest):
    """What is said once they have given up; and what looks like it and is not."""

    # Fails to reach a service of its own a few times, goes on without it, and ends by something else.
    OTHER = """
import os, socket, sys, time
for _ in range(10):
    try:
        socket.create_connection(("127.0.0.1", int(os.environ["SERVICE"])), 1)
    except OSError:
        time.sleep(0.1)
sys.exit(3)
"""
    # Connects without waiting, as c10d does, and asks the socket later.
    NONBLOCKING = """
import os, select, socket, sys, time
for _ in range(200):
    connection = socket.socket()
    connection.setblocking(False)
    connection.connect_ex((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    select.select([], [connection], [], 1)
    error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    connection.close()
    if not error:
        sys.exit(0)
sys.exit(4)
"""
    # The coordinator itself, late: its peers are refused until then.
    LATE = """
import datetime, os, sys, time
import torch.distributed as dist
if os.environ["RANK"] == "0":
    time.sleep(5)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
dist.barrier()
sys.exit(5)
"""

    def connects(self, daemon, verdict):
        """What the recording holds of connections: (peer's port, outcome) -> the highest count."""
        found = {}
        for strings, numbers in recording.events_of(self.recorded(daemon, verdict), recording.CONNECT):
            key = (numbers["port"], strings["outcome"])
            found[key] = max(found.get(key, 0), numbers["attempts"])
        return found

    def test_after_the_end(self):
        if not has_torch():
            self.skipTest("needs python3-torch")
        daemon = self.daemon()
        self.assertTrue(self.up(daemon, "network"), daemon.text())
        with socket.socket() as taken:
            taken.bind(("0.0.0.0", 0))
            taken.listen()
            in_use = self.rank_of_two(port=taken.getsockname()[1], RANK="0", patience=20)
            refused = self.rank_of_two(patience=6)
            other = self.rank_of_two(self.OTHER, SERVICE=str(free_port()))
            late_port = free_port()
            late = [self.rank_of_two(self.LATE, port=late_port, RANK=rank, SLURM_JOB_ID="77001") for rank in "01"]
            for _, process in (in_use, refused, other, *late):
                process.wait(120)
        with self.subTest("port in use"):
            verdict = daemon.verdict(in_use[0])
            self.assertEqual((verdict["code"], verdict["sub"], verdict["domain"]), ("C1", "port_in_use", "workload"))
            self.shown(verdict, "because the address is in use")
        with self.subTest("refused until it gave up"):
            verdict = daemon.verdict(refused[0])
            self.assertEqual((verdict["code"], verdict["sub"], verdict["tier"]), ("C1", "refused", "P"), self.said(refused[0]))
        with self.subTest("another service is not the coordinator"):
            self.assertEqual(other[1].returncode, 3)
            self.assertNotEqual(daemon.verdict(other[0])["code"], "C1")
        with self.subTest("refused first, and met at last"):
            self.assertEqual([process.returncode for _, process in late], [5, 5], self.said(late[1][0]))
            verdict = daemon.verdict("77001")
            self.assertNotEqual(verdict["code"], "C1")
            found = self.connects(daemon, verdict)
            self.assertIn((late_port, "refused"), found)
            self.assertIn((late_port, "connected"), found)

    def test_counts_agree_with_strace(self):
        if not shutil.which("strace"):
            self.skipTest("needs strace")
        daemon = self.daemon()
        self.assertTrue(self.up(daemon, "network"), daemon.text())
        port = free_port()
        job, process = self.rank_of_two(self.NONBLOCKING, port=port, traced=True)
        self.assertEqual(process.wait(60), 4)
        verdict = daemon.verdict(job)
        self.assertEqual((verdict["code"], verdict["sub"]), ("C1", "refused"))
        calls = len(re.findall(rf"connect\(.*htons\({port}\).* = -1 (EINPROGRESS|ECONNREFUSED)",
                               (Path(self.folder) / "trace").read_text()))
        self.assertEqual(calls, 200)
        self.assertEqual(self.connects(daemon, verdict)[port, "refused"], calls)
        self.shown(verdict, "200 attempts")


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
