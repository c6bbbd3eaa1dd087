#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What stalled clients cost others: bench/http_stalled.py build/rankscope [CLIENTS] [ASKED]

CLIENTS (2,000) connections of four kinds - silent, half a head, a byte a second, and such that ask for pages and never read
them - come back as soon as they are cut off, while a scrape and both probes are asked for ASKED (300) times, each on a
connection of its own. Prints the median, the 99th percentile and the worst of each, without the clients and beside them, and
the daemon's memory.
"""
import os
import socket
import subprocess
import sys
import tempfile
import time

from serve_cost import cpu_seconds, resident_mib
from verdict_latency import free_port, wait_until_ready

TARGETS = ("/metrics", "/-/ready", "/-/healthy")

STALL = r"""
import resource, selectors, socket, sys, time
port, count = int(sys.argv[1]), int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
FIRST = (b"", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ", b"GET /metrics HT",
         b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
clients = [None] * count
def come(number):
    client = socket.socket()
    if number % 4 == 3:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.setblocking(False)
    try:
        client.send(FIRST[number % 4])
    except OSError:
        pass
    clients[number] = client
for number in range(count):
    come(number)
print("all are there", flush=True)
# Each looks once a second whether he was cut off, and then comes again.
while True:
    for number, client in enumerate(clients):
        gone = False
        try:
            if number % 4 == 2:
                client.send(b"x")
            gone = number % 4 != 3 and client.recv(1) == b""
        except BlockingIOError:
            pass
        except OSError:
            gone = True
        if gone:
            client.close()
            come(number)
        if number % 20 == 0:
            time.sleep(20 / count)
"""


def ask(port, target):
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while block := client.recv(1 << 16):
            answer += block
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{target}: {answer[:100]}")
    return 1000 * (time.monotonic() - begin)


def measure(port, asked):
    for target in TARGETS:
        took = []
        for _ in range(asked):
            took.append(ask(port, target))
            time.sleep(0.02)
        took.sort()
        print(f"  {target:12} median {took[asked // 2]:8.2f} ms   p99 {took[asked * 99 // 100]:8.2f} ms   worst {took[-1]:8.2f} ms")


def main():
    binary = os.path.abspath(sys.argv[1])
    clients = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    asked = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        with open(os.path.join(folder, "log"), "wb") as log:
            daemon = subprocess.Popen(
                [binary, "serve", "--web.listen-address", f"127.0.0.1:{port}", "--state.dir", os.path.join(folder, "state"),
                 "--run.socket", os.path.join(folder, "run.sock")], stderr=log, stdout=log)
        stalled = None
        try:
            wait_until_ready(port, daemon)
            print(f"alone, {resident_mib(daemon.pid):.0f} MiB:")
            measure(port, asked)
            stalled = subprocess.Popen([sys.executable, "-c", STALL, str(port), str(clients)], stdout=subprocess.PIPE)
            if stalled.stdout.readline() != b"all are there\n":
                raise RuntimeError("the clients did not come")
            begin, before = time.monotonic(), cpu_seconds(daemon.pid)
            print(f"beside {clients} stalled clients:")
            measure(port, asked)
            share = (cpu_seconds(daemon.pid) - before) / (time.monotonic() - begin)
            print(f"  the daemon: {resident_mib(daemon.pid):.0f} MiB, {100 * share:.0f} % of a core")
        finally:
            if stalled is not None:
                stalled.kill()
                stalled.wait()
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main()
