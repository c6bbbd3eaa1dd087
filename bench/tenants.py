#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""How soon a victim's crash is named beside hostile users: bench/tenants.py build/rankscope [--seconds 6] [--only WORD] [--all]

One daemon; each tenant of hostile_tenants.py in turn, as a user of his own, at nice 0 like everybody. Beside each, a victim's
rank is killed with SIGKILL, and a victim's wrapped run raises; the time from the end of each process until /verdict names it is
measured, and the largest distance between two ticks meanwhile. Before the daemon starts, each tenant runs without it: "alone" is
how late a thread that only sleeps was woken at worst, which is what the machine does to everybody beside this tenant. Prints a row
per tenant; exit 1 when a victim was named later than after 1 s or two ticks are more than 2 s apart, each beyond "alone". With
--all, all tenants at once are one more row, which fails nothing: nobody's share of two cores is left then. Needs root.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

from hostile_tenants import PRELUDE, TENANTS
from verdict_latency import ask, free_port, wait_until_ready

VICTIM, TENANT = 61001, 62000
PYTHON = "/usr/bin/python3"  # another user may not read whatever runs this
NAMED_S, TICKS_S = 1.0, 2.0
PATIENCE_S = 30
WRAPPED = """
import time
for step in range(1, 41):
    print(f"step {step} loss {4 / step:.4f} lr 0.1 step_time 0.01s", flush=True)
    time.sleep(0.01)
open("stamp", "w").write(repr(time.monotonic()))
raise KeyError("victim")
"""


def become(uid):
    def change():
        os.setsid()
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    return change


def processes_of(uid):
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] != "Z":
                        found.append(int(name))
        except (OSError, IndexError):
            pass
    return found


def end_all(*uids):
    """The tenants' uids are ours alone: whatever has them was started here."""
    for stop in (signal.SIGSTOP, signal.SIGKILL):  # stopped, a storm makes no new ones meanwhile
        while True:
            found = [pid for uid in uids for pid in processes_of(uid)]
            for pid in found:
                try:
                    os.kill(pid, stop)
                except OSError:
                    pass
            if not found or stop == signal.SIGSTOP:
                break
            time.sleep(0.02)


class Bench:
    def __init__(self, binary, folder, *flags, before=None):
        self.folder = folder
        os.chmod(folder, 0o755)
        self.binary = shutil.copy(binary, folder)
        for companion in ("rankscope-serve",):
            path = os.path.join(os.path.dirname(binary), companion)
            if os.path.exists(path):
                shutil.copy(path, folder)
        self.port = free_port()
        self.socket = os.path.join(folder, "run.sock")
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "RANK", "WORLD_SIZE"))}
        self.log = open(os.path.join(folder, "log"), "wb")
        if before:
            before(self)
        self.daemon = subprocess.Popen(
            [self.binary, "serve", "--web.listen-address", f"127.0.0.1:{self.port}", "--state.dir", os.path.join(folder, "state"),
             "--run.socket", self.socket, "--log.level", "warn", *flags], stderr=self.log, stdout=self.log)
        wait_until_ready(self.port, self.daemon)
        self.number = 0

    def home(self, uid):
        path = os.path.join(self.folder, f"home{uid}")
        if not os.path.exists(path):
            os.mkdir(path, 0o700)
            os.chown(path, uid, uid)
        return path

    def start(self, uid, *command, environment=None):
        return subprocess.Popen(command, cwd=self.home(uid), preexec_fn=become(uid), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, env={**self.environment, **(environment or {})})

    def attack(self, index, text):
        uid = TENANT + index
        return self.start(uid, PYTHON, "-c", PRELUDE + textwrap.dedent(text), self.socket, self.binary, self.home(uid))

    def verdict(self, job):
        status, body = ask(self.port, f"/verdict?job_id={job}")
        return json.loads(body) if status == 200 else {}

    def until(self, condition, begin):
        while time.monotonic() < begin + PATIENCE_S:
            if condition():
                return time.monotonic()
            time.sleep(0.02)
        return float("inf")

    def killed_rank(self):
        """Seconds from SIGKILL of a rank of the victim's to its verdict."""
        self.number += 1
        job = str(4_000_000 + self.number)
        rank = self.start(VICTIM, "/bin/sleep", "600", environment={"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": job})
        seen = self.until(lambda: self.verdict(job).get("state") == "live", time.monotonic())
        time.sleep(0.3)
        begin = time.monotonic()
        rank.kill()
        rank.wait()
        if seen == float("inf"):
            return seen, "never seen"
        named = self.until(lambda: self.verdict(job).get("state", "live") != "live", begin)
        return named - begin, self.verdict(job).get("code")

    def raised_run(self):
        """Seconds from the end of a wrapped run of the victim's to its verdict."""
        self.number += 1
        job, home = f"victim-{self.number}", self.home(VICTIM)
        stamp = os.path.join(home, "stamp")
        if os.path.exists(stamp):
            os.unlink(stamp)
        run = self.start(VICTIM, self.binary, "run", "--socket", self.socket, "--job-id", job, "--dir", os.path.join(home, job), "--",
                         PYTHON, "-c", WRAPPED)
        named = self.until(lambda: os.path.exists(stamp) and self.verdict(job).get("state", "live") != "live", time.monotonic())
        begin = float("-inf")  # it did not come to its end
        if os.path.exists(stamp):
            with open(stamp, encoding="ascii") as file:
                begin = float(file.read())
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return named - begin, self.verdict(job).get("code")

    def cpu_seconds(self):
        with open(f"/proc/{self.daemon.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self):
        with open(f"/proc/{self.daemon.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024

    def metric(self, name):
        found = re.search(rf"^{name} (\S+)$", ask(self.port, "/metrics")[1].decode(), re.M)
        return float(found[1]) if found else None


class TickWatch:
    """The largest distance of two ticks while it runs, as an onlooker sees it."""
    def __init__(self, bench):
        self.bench, self.largest, self.stopped = bench, 0.0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        last, seen = None, time.monotonic()
        while not self.stopped.is_set():
            tick = self.bench.metric("rankscope_last_tick_timestamp_seconds")
            now = time.monotonic()
            if tick is not None and tick != last:
                self.largest = max(self.largest, tick - last if last else 0)
                last, seen = tick, now
            self.largest = max(self.largest, now - seen)
            time.sleep(0.1)

    def stop(self):
        self.stopped.set()
        self.thread.join()
        return self.largest


class Lateness:
    """How late a thread that only sleeps is woken at worst."""
    def __init__(self):
        self.largest, self.stopped = 0.0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.stopped.is_set():
            begin = time.monotonic()
            time.sleep(0.05)
            self.largest = max(self.largest, time.monotonic() - begin - 0.05)

    def stop(self):
        self.stopped.set()
        self.thread.join()
        return self.largest


def lateness_beside(bench, attacks, seconds):
    running = [bench.attack(index, text) for index, text in attacks]
    late = Lateness()
    time.sleep(seconds)
    worst = late.stop()
    end_all(*(TENANT + index for index, _ in attacks))
    for process in running:
        process.wait()
    return worst


def measure(bench, name, attacks, seconds, alone):
    begin_cpu, begin = bench.cpu_seconds(), time.monotonic()
    running = [bench.attack(index, text) for index, text in attacks]
    ticks = TickWatch(bench)
    time.sleep(seconds / 2)
    killed, killed_as = bench.killed_rank()
    raised, raised_as = bench.raised_run()
    time.sleep(max(0, begin + seconds - time.monotonic()))
    cpu = (bench.cpu_seconds() - begin_cpu) / (time.monotonic() - begin)
    distance = ticks.stop()
    end_all(*(TENANT + index for index, _ in attacks))
    for process in running:
        process.wait()
    good = (max(killed, raised) <= NAMED_S + alone and distance <= TICKS_S + alone and killed_as == "A2" and raised_as == "X1")
    print(f"{name:42} {killed:7.2f} {killed_as or '-':4} {raised:7.2f} {raised_as or '-':4} {distance:7.2f} {alone:7.2f} {100 * cpu:6.0f} "
          f"{bench.resident_mib():6.0f}  {'' if good else 'TOO LATE'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rankscope_tenants_") as folder:
        chosen = [(index, name, text) for index, (name, text) in enumerate(TENANTS.items()) if options.only in name]
        alone = {}

        def before(bench):
            alone.update((name, lateness_beside(bench, [(index, text)], options.seconds)) for index, name, text in chosen)

        bench = Bench(os.path.abspath(options.binary), folder, before=before)
        try:
            print(f"{'tenant':42} {'killed':>7} {'':4} {'raised':>7} {'':4} {'ticks':>7} {'alone':>7} {'cpu %':>6} {'MiB':>6}")
            good = measure(bench, "nobody", [], options.seconds, 0)
            for index, name, text in chosen:
                good &= measure(bench, name, [(index, text)], options.seconds, alone[name])
            if options.all:
                measure(bench, "all at once", [(index, text) for index, _, text in chosen], 3 * options.seconds, 0)
        finally:
            end_all(VICTIM, *(TENANT + index for index, _, _ in chosen))
            bench.daemon.terminate()
            bench.daemon.wait()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
