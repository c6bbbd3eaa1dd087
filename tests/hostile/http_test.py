# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Clients that stall, ask for too much, or pretend that the daemon has another name."""
import http.client
import json
import os
import re
import socket
import subprocess
import time

import kept_verdicts
from hostile_case import ATTACKER, BINARY, PATIENCE, VICTIM, HostileTest, run_tests, wait_for

KEPT = 1000  # of 1,024 that have room: other jobs of the machine end, too
# Nobody waits for a deadline of the daemon's, the shortest of which is 5 s.
BEARABLE_S = 4

# Prints a line when all have come, and holds them until it is killed.
STALL = r"""
import resource, selectors, socket, sys, time
host, port, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
kinds = {"idle": b"", "partial": b"GET /verdict HTTP/1.1\r\nHost: localhost\r\nX: ", "drip": b"GET /verdict HT",
         "deaf": b"GET /verdict HTTP/1.1\r\nHost: localhost\r\n\r\n" * 8}
held, dripping = [], []
for kind, first in kinds.items():
    for _ in range(each):
        client = socket.socket()
        if kind == "deaf":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((host, port))
        try:
            client.sendall(first)
        except OSError:
            pass  # it has given way already
        held.append(client)
        if kind == "drip":
            dripping.append(client)
print("all are there", flush=True)
while True:
    time.sleep(1)
    for client in dripping:
        try:
            client.sendall(b"x")
        except OSError:
            pass
"""

# So many answers over 40 connections; prints their statuses.
ASK_MUCH = r"""
import http.client, sys, threading
host, port, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
statuses = []
def ask():
    client = http.client.HTTPConnection(host, port, timeout=60)
    for _ in range(each):
        client.request("GET", "/verdict")
        answer = client.getresponse()
        answer.read()
        statuses.append(answer.status)
threads = [threading.Thread(target=ask) for _ in range(40)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(statuses), sorted(set(statuses)))
"""


def own_address():
    """An address of this machine that is not of loopback; None: it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        return probe.getsockname()[0]


def resident_mib(daemon):
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"^VmRSS:\s+(\d+)", status.read(), re.M)[1]) / 1024


class Clients(HostileTest):
    def daemon_with_kept(self, count):
        daemon = self.daemon()
        self.let_go()
        run = self.train_as(VICTIM, daemon, "8841")
        self.assertEqual(run.wait(PATIENCE), 1)
        daemon.verdict("8841")
        wait_for("the verdict on disk", lambda: os.path.exists(f"{daemon.state}/verdicts/8841.pb"))
        daemon.stop()
        kept_verdicts.fill(daemon.state, count, "8841")
        return self.daemon(state=daemon.state)

    def ask(self, daemon, target, headers=None, address=None):
        client = http.client.HTTPConnection(address or daemon.address, timeout=PATIENCE)
        try:
            client.request("GET", target, headers=headers or {})
            answer = client.getresponse()
            return answer.status, answer.read().decode(errors="replace"), answer
        finally:
            client.close()

    def test_stalled_clients_keep_nobody_waiting(self):
        """1,200 clients connect and send nothing, half a request head, one byte per second, or never read: scrapes and health checks are
        answered."""
        daemon = self.daemon_with_kept(200)
        before = resident_mib(daemon)
        stalled = self.python_as(ATTACKER, STALL, *daemon.address.split(":"), "300", stdout=subprocess.PIPE)
        self.assertEqual(stalled.stdout.readline(), b"all are there\n")
        waited = []
        for _ in range(20):
            for target in ("/metrics", "/-/ready", "/-/healthy", "/verdict?limit=1"):
                begin = time.monotonic()
                status = self.ask(daemon, target)[0]
                waited.append(time.monotonic() - begin)
                # Those who never read hold all places for a moment, until they have stalled for a second.
                self.assertIn(status, (200, 503) if target.startswith("/verdict") else (200,), target)
        self.assertLess(max(waited), BEARABLE_S)
        self.assertIsNone(stalled.poll(), "they stall until the end")
        wait_for("a place for who asks for verdicts", lambda: self.ask(daemon, "/verdict?limit=1")[0] == 200)
        self.assertGreater(wait_for("the count", lambda: daemon.metric("rankscope_http_evicted_total")), 0)
        self.assertLess(resident_mib(daemon) - before, 64)

    def test_a_thousand_verdicts_asked_for_by_forty_cost_no_memory(self):
        """40 connections request all of 1,000 stored verdicts again and again: memory does not grow, and ticks continue."""
        daemon = self.daemon_with_kept(KEPT)
        self.ask(daemon, "/verdict?limit=1000")
        before = resident_mib(daemon)
        asking = self.python_as(ATTACKER, ASK_MUCH, *daemon.address.split(":"), "10", stdout=subprocess.PIPE)
        self.wait_for_ticks(daemon)
        self.assertEqual(asking.communicate(timeout=PATIENCE)[0], b"400 [200]\n")
        self.assertLess(resident_mib(daemon) - before, 48)
        # They come in pages; the command puts them together again.
        first = json.loads(self.ask(daemon, "/verdict")[1])
        self.assertEqual(len(first["verdicts"]), 100)
        self.assertEqual(first["next"], f"/verdict?limit=100&after={kept_verdicts.name(99)}")
        self.assertEqual(json.loads(self.ask(daemon, first["next"])[1])["verdicts"][0]["job_id"], kept_verdicts.name(100))
        printed = subprocess.run([BINARY, "verdict", "--address", daemon.address, "--format", "json"],
                                 capture_output=True, timeout=PATIENCE)
        self.assertEqual((printed.returncode, printed.stderr), (0, b""))
        document = json.loads(printed.stdout)
        self.assertEqual([verdict["job_id"] for verdict in document["verdicts"]][:KEPT],
                         [kept_verdicts.name(number) for number in range(KEPT)])
        self.assertNotIn("next", document)
        page = self.ask(daemon, "/")[1]
        self.assertIn("500 on this page", page)
        self.assertIn("the next page</a>", page)
        self.assertLess(len(page), 400_000)

    def test_a_page_of_another_site_reads_nothing(self):
        """A host name of the attacker's resolves to 127.0.0.1 (DNS rebinding): no verdict, page or metric is served under that name."""
        daemon = self.daemon()
        self.let_go()
        run = self.train_as(VICTIM, daemon, "8841")
        self.assertEqual(run.wait(PATIENCE), 1)
        daemon.verdict("8841")
        for name in ("rebound.example", "rebound.example:10177", "127.0.0.1.rebound.example"):
            for target in ("/", "/verdict", "/verdict?job_id=8841", "/evidence?job_id=8841", "/metrics", "/explain?pid=1"):
                status, body, _ = self.ask(daemon, target, {"Host": name})
                self.assertEqual(status, 421, target)
                self.assertNotIn("missing_column", body)
                self.assertIn("web.hosts", body)
        for name in ("localhost", daemon.address, "localhost:80"):
            self.assertEqual(self.ask(daemon, "/verdict", {"Host": name})[0], 200)
        config = self.secret_file(f"{self.folder}/hosts.yaml", 'web: {hosts: ["proxy.example"]}')
        allowed = self.daemon("--config", config, state=daemon.state + "-other")
        self.assertEqual(self.ask(allowed, "/verdict", {"Host": "proxy.example"})[0], 200)

    def test_the_network_reads_no_text_of_logs(self):
        """A client from the network requests every route: no answer contains what a job printed, and a scrape is served."""
        address = own_address()
        if address is None:
            self.skipTest("this machine has loopback only")
        daemon = self.daemon("--web.listen-address", "0.0.0.0:0")
        address += ":" + wait_for("its port", lambda: re.search(r"listening address=0\.0\.0\.0:(\d+)", daemon.text()))[1]
        self.let_go()
        run = self.train_as(VICTIM, daemon, "8841")
        self.assertEqual(run.wait(PATIENCE), 1)
        self.assertIn("missing_column", json.dumps(daemon.verdict("8841")))
        for target in ("/verdict", "/verdict?job_id=8841", "/evidence?job_id=8841", "/events?job_id=8841", "/", "/metrics"):
            for accept in ("application/json", "text/plain", "application/x-protobuf"):
                status, body, _ = self.ask(daemon, target, {"Accept": accept}, address)
                self.assertEqual(status, 200, target)
                self.assertNotIn("missing_column", body, target)
        self.assertIn("X1", self.ask(daemon, "/verdict", None, address)[1])
        self.assertEqual(self.ask(daemon, "/metrics", {"Host": "node7.cluster.example"}, address)[0], 200)
        self.assertEqual(self.ask(daemon, "/verdict", {"Host": "node7.cluster.example"}, address)[0], 421)
        self.assertIn("text of logs is not served there", daemon.text())
        checked = subprocess.run([BINARY, "check", "--web.listen-address", "0.0.0.0:1"], capture_output=True, text=True,
                                 timeout=PATIENCE).stdout
        self.assertRegex(checked, r"web +partly +reachable from the network at 0\.0\.0\.0:1")


if __name__ == "__main__":
    run_tests()
