#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""How long after the last process has gone /verdict says so: bench/verdict_latency.py build/rankscope [RUNS]

Starts `serve` of its own (temporary state, free port) and RUNS short commands under `run`. Each command writes the
monotonic time as its last act; /verdict is asked every 5 ms until the job's state is no longer live. Prints the median and
the largest delay in seconds; exit 1 when the largest is above 1.
"""
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

LIMIT_S = 1.0
COMMAND = """
import sys, time
for step in range(1, 61):
    print(f"step {step} loss {0.5 + 3 / (1 + 0.1 * step):.4f} lr 0.01 step_time 0.001s", flush=True)
    time.sleep(0.001)
open(sys.argv[1], "w").write(repr(time.monotonic()))
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


def wait_until_ready(port, daemon):
    while daemon.poll() is None:
        if ask(port, "/verdict")[0] == 200:
            return
        time.sleep(0.01)
    raise SystemExit(f"serve ended with {daemon.returncode}")


def one_delay(binary, folder, socket_path, port, known):
    stamp = os.path.join(folder, f"stamp{len(known)}")
    run = subprocess.Popen([binary, "run", "--socket", socket_path, "--", sys.executable, "-c", COMMAND, stamp],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        status, body = ask(port, "/verdict")
        now = time.monotonic()
        for verdict in json.loads(body)["verdicts"] if status == 200 else []:
            if verdict["job_id"] in known or verdict["state"] == "live" or not os.path.exists(stamp):
                continue
            known.add(verdict["job_id"])
            with open(stamp, encoding="ascii") as file:
                delay = now - float(file.read())
            run.wait()
            return delay
        time.sleep(0.005)
    raise SystemExit("no verdict came within 30 s")


def main():
    binary, runs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    with tempfile.TemporaryDirectory() as folder:
        port, socket_path = free_port(), os.path.join(folder, "run.sock")
        daemon = subprocess.Popen([binary, "serve", "--state.dir", os.path.join(folder, "state"), "--run.socket", socket_path,
                                   "--web.listen-address", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
        try:
            wait_until_ready(port, daemon)
            known = set()
            delays = [one_delay(binary, folder, socket_path, port, known) for _ in range(runs)]
        finally:
            daemon.terminate()
            daemon.wait()
    print(f"{runs} runs: median {statistics.median(delays):.3f} s, largest {max(delays):.3f} s, limit {LIMIT_S} s")
    return 0 if max(delays) <= LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
