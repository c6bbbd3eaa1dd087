# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""No descriptor is left to the daemon: it says nothing of what it could not look at, spends no time on it, and goes on afterwards."""
import http.client
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from hostile_case import ATTACKER, PATIENCE, VICTIM, HostileTest, run_tests, wait_for


class Descriptors(HostileTest):
    def cpu_seconds(self, daemon):
        fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def lowest_free(self, daemon):
        taken = {int(name) for name in os.listdir(f"/proc/{daemon.process.pid}/fd")}
        return next(number for number in range(1 << 20) if number not in taken)

    def ask(self, client, target):
        client.request("GET", target)
        return client.getresponse().read().decode()

    def metric(self, client, name):
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.ask(client, "/metrics"), re.M)
        return float(found[1]) if found else None

    def wait_for_ticks_of(self, client, count):
        for _ in range(count):
            before = self.metric(client, "rankscope_last_tick_timestamp_seconds")
            wait_for("a tick", lambda before=before: self.metric(client, "rankscope_last_tick_timestamp_seconds") > before)

    def test_without_a_descriptor_no_job_ends_and_no_core_burns(self):
        """All file descriptors are in use while the attacker connects again and again: the victim's job is not reported as ended."""
        daemon = self.daemon()
        victim = self.train_as(VICTIM, daemon, None)
        (job,) = wait_for("the victim's job", lambda: self.runs(daemon))
        self.wait_for_ticks(daemon)
        host, port = daemon.address.rsplit(":", 1)
        client = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        self.ask(client, "/-/healthy")  # the daemon keeps this connection
        limits = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (self.lowest_free(daemon), limits[1]))
        attacker = self.python_as(ATTACKER, "import socket, sys, time\n"
                                  "held = []\n"
                                  "for _ in range(8):\n"
                                  "    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                                  f"    one.connect('{daemon.socket}')\n"
                                  "    held.append(one)\n"
                                  "print('held', flush=True)\ntime.sleep(600)", stdout=subprocess.PIPE)
        self.assertEqual(attacker.stdout.readline(), b"held\n")
        self.addCleanup(attacker.stdout.close)
        self.wait_for_ticks_of(client, 2)
        cpu, begin = self.cpu_seconds(daemon), time.monotonic()
        self.wait_for_ticks_of(client, 5)
        share = (self.cpu_seconds(daemon) - cpu) / (time.monotonic() - begin)
        print(f"CPU without a descriptor: {share:.2f} of a core", file=sys.stderr)
        self.assertLess(share, 0.6)
        verdict = json.loads(self.ask(client, f"/verdict?job_id={job}"))
        verdict = verdict["verdicts"][0] if "verdicts" in verdict else verdict
        self.assertEqual(verdict["state"], "live", verdict)
        for source in ("run", "procfs"):  # each counts in a thread of its own
            row = re.compile(rf'^rankscope_source_lost_total{{source="{source}"}} (\S+)$', re.M)
            wait_for(f"a loss of {source}", lambda: float(row.search(self.ask(client, "/metrics"))[1]) > 0)
        client.close()
        attacker.kill()
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, limits)
        self.let_go()
        self.assertEqual(victim.wait(PATIENCE), 1)
        self.assertEqual(daemon.verdict(job)["code"], "X1")

    def test_the_last_descriptors_are_not_for_wrappers(self):
        """The attacker connects until the daemon accepts no more, with a low limit of file descriptors: pages are served and the
        victim's job is judged."""
        daemon = self.daemon(preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512)))
        attacker = self.python_as(ATTACKER, "import socket, sys, time\n"
                                  "held = []\n"
                                  "for _ in range(600):\n"
                                  "    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                                  "    one.settimeout(5)\n"
                                  "    try:\n"
                                  f"        one.connect('{daemon.socket}')\n"
                                  "    except OSError:\n"
                                  "        break\n"
                                  "    held.append(one)\n"
                                  "print('held', flush=True)\ntime.sleep(600)", stdout=subprocess.PIPE)
        self.assertEqual(attacker.stdout.readline(), b"held\n")
        self.addCleanup(attacker.stdout.close)
        self.wait_for_ticks(daemon)
        victim = self.train_as(VICTIM, daemon, None)
        self.let_go()
        self.assertEqual(victim.wait(PATIENCE), 1)
        (job,) = wait_for("the victim's job", lambda: self.runs(daemon))
        self.assertEqual(daemon.verdict(job)["code"], "X1")


if __name__ == "__main__":
    run_tests()
