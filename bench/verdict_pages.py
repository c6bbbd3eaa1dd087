#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What it costs to serve many kept verdicts: bench/verdict_pages.py build/rankscope [VERDICTS] [CONNECTIONS] [SECONDS]

A state directory holds VERDICTS (1,024) final verdicts, all of them copies of one real run's. CONNECTIONS (40) ask for
/verdict as fast as they can for SECONDS (10), first plain, then with gzip. Prints answers per second, their size, and the
daemon's memory before, at its highest, and afterwards.
"""
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

from serve_cost import resident_mib
from verdict_latency import free_port, wait_until_ready

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "hostile"))
import kept_verdicts  # noqa: E402

TRAINER = """
for step in range(1, 41):
    print(f"step {step} loss {4.0 / step + 0.5:.4f} lr 0.05 step_time 0.053s", flush=True)
raise KeyError("missing_column")
"""


def serve(binary, folder, port):
    with open(os.path.join(folder, "log"), "ab") as log:
        daemon = subprocess.Popen(
            [binary, "serve", "--web.listen-address", f"127.0.0.1:{port}", "--state.dir", os.path.join(folder, "state"),
             "--run.socket", os.path.join(folder, "run.sock")], stderr=log, stdout=log)
    wait_until_ready(port, daemon)
    return daemon


def leave_one_verdict(binary, folder, port):
    daemon = serve(binary, folder, port)
    subprocess.run([binary, "run", "--socket", os.path.join(folder, "run.sock"), "--job-id", "8841", "--dir",
                    os.path.join(folder, "run"), "--", sys.executable, "-c", TRAINER], check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not os.path.exists(os.path.join(folder, "state", "verdicts", "8841.pb")):
        time.sleep(0.1)
    daemon.terminate()
    daemon.wait()


class Asker(threading.Thread):
    """Reads answers and throws them away; counts those that arrived whole."""

    def __init__(self, port, until, headers):
        super().__init__()
        self.until, self.answers, self.bytes, self.refused = until, 0, 0, 0
        self.request = f"GET /verdict HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode()
        self.client = socket.create_connection(("127.0.0.1", port), timeout=60)

    def run(self):
        sink = bytearray(1 << 20)
        while time.monotonic() < self.until:
            self.client.sendall(self.request)
            head = b""
            while b"\r\n\r\n" not in head:
                head += self.client.recv(4096)
            length = int(re.search(rb"Content-Length: (\d+)", head)[1])
            rest = length - len(head.split(b"\r\n\r\n", 1)[1])
            while rest > 0:
                rest -= self.client.recv_into(sink, min(rest, len(sink)))
            if head.startswith(b"HTTP/1.1 200"):
                self.answers += 1
                self.bytes = length
            else:
                self.refused += 1


def measure(name, daemon, port, connections, seconds, headers):
    before = highest = resident_mib(daemon.pid)
    begin = time.monotonic()
    askers = [Asker(port, begin + seconds, headers) for _ in range(connections)]
    for asker in askers:
        asker.start()
    while any(asker.is_alive() for asker in askers):
        highest = max(highest, resident_mib(daemon.pid))
        time.sleep(0.05)
    took = time.monotonic() - begin
    answers = sum(asker.answers for asker in askers)
    print(f"{name}: {answers / took:.0f} answers/s of {max(asker.bytes for asker in askers)} bytes, "
          f"{sum(asker.refused for asker in askers)} refused; {before:.0f} MiB before, {highest:.0f} at its highest, "
          f"{resident_mib(daemon.pid):.0f} afterwards")


def main():
    binary = os.path.abspath(sys.argv[1])
    verdicts, connections, seconds = (int(sys.argv[i]) if len(sys.argv) > i else default
                                      for i, default in ((2, 1024), (3, 40), (4, 10)))
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        leave_one_verdict(binary, folder, port)
        kept_verdicts.fill(os.path.join(folder, "state"), verdicts, "8841")
        daemon = serve(binary, folder, port)
        try:
            time.sleep(3)  # what starting takes is given back
            measure("plain", daemon, port, connections, seconds, "")
            measure("gzip", daemon, port, connections, seconds, "Accept-Encoding: gzip\r\n")
        finally:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main()
