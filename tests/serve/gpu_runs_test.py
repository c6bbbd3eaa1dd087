# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of eight ranks on eight GPUs, what goes wrong with them, and what /metrics and /verdict then say.

The ranks are real processes (tests/support/stub_gpu), their text is what PyTorch prints, and the cards are the stand-in for the
driver's library (tests/support/fake_nvml). Each run has a daemon of its own, and all go on side by side: a minute that a family
asks for is a minute here. Two families ask for five; of those runs the cards are looked at four times a second until the recording
holds enough looks, the recording is retimed to one look every two seconds, and `rankscope replay` judges it.
"""
import bisect
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bpf"))

import recording  # noqa: E402
from serve_test import BINARY, Daemon, ServeTest, wait_for  # noqa: E402

FAKE = str(Path(os.environ.get("FAKE_NVML_FOLDER", "build/tests/support/fake_nvml/lib")).resolve())
TRAINER = os.environ.get("STUB_TRAINER", "build/tests/support/stub_gpu/stub_trainer")
STUBS = os.environ.get("STUB_GPU_FOLDER", "build/tests/support/stub_gpu/lib")
GPUS = 8
LONG = 170  # seconds; a verdict of two minutes of looks takes as long, and machines are slow
GB = 10 ** 9

# The cards are watched, and text; nothing else may decide here. Other daemons' cards have the same places on the bus: what the
# kernel's log says of one would be said of all.
CONFIG = """ebpf: {mode: "off"}
sources:
  kmsg: {enabled: %s}
  stdout_tail: {enabled: false}
  nvml: {interval: %s}
  procfs: {interval: %s}
"""
TRAINS = "ranks 8\nsteps 1000000\nstep_ms 200\nlaunches 4\ncollectives 1\nwatchdog 0\nmemory_bytes 1048576\n"
# NVML's units and the numbers of its GPM metrics: 1 engine, 2 SMs, 5 tensor, 10 memory, in percent.
WORKS = dict(gpu_utilization=97, gpm_1=97, gpm_2=62, gpm_5=31, gpm_10=42, clock_1=1980, throttle_bits=0, power=640000,
             temperature=66, memory_used=61 * GB)
RESTS = dict(gpu_utilization=0, gpm_1=0, gpm_2=0, gpm_5=0, gpm_10=0)
WAITS = dict(gpu_utilization=100, gpm_1=100, gpm_2=12, gpm_5=0, gpm_10=1)

TRACEBACK = """Traceback (most recent call last):
  File "/workspace/train.py", line 214, in <module>
    main(parse_arguments())
  File "/workspace/train.py", line 88, in main
    loss.backward()
  File "/usr/local/lib/python3.11/dist-packages/torch/_tensor.py", line 581, in backward
    torch.autograd.backward(
"""
OUT_OF_MEMORY = TRACEBACK + (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU {gpu} has a total capacity of 79.65 GiB of which "
    "{free} is free. Including non-PyTorch memory, this process has {own} memory in use. Of the allocated memory {allocated} is "
    "allocated by PyTorch, and 212.00 MiB is reserved by PyTorch but unallocated.\n")
LAUNCH_FAILED = TRACEBACK + (
    "RuntimeError: CUDA error: unspecified launch failure\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n")


def uuid(gpu):
    return f"GPU-fa4e000{gpu}-0000-4000-8000-000000000000"


class Run:
    """A daemon and a run of eight ranks of its own, rank N on GPU N."""

    def __init__(self, test, name, script="", ranks=GPUS, interval="1s", kernel_log=False):
        self.test, self.name, self.ranks = test, name, ranks
        self.folder = Path(test.folder) / name
        self.folder.mkdir()
        self.words = self.folder / "words"
        self.cards = {gpu: dict(WORKS) for gpu in range(GPUS)}
        self.events, self.holders, self.others = [], {}, []
        self.say()
        config = self.folder / "config.yaml"
        config.write_text(CONFIG % ("true" if kernel_log else "false", interval, interval))
        self.daemon = Daemon(self.folder, "--config", str(config), environment={
            **test.environment, "LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCRIPT": str(self.folder / "gpus")})
        test.addCleanup(self.daemon.stop)
        (self.folder / "script").write_text(
            TRAINS.replace("ranks 8", f"ranks {ranks}") + script.replace("WORDS", str(self.words)) + "\n")
        self.wrapper = subprocess.Popen(
            [BINARY, "run", "--socket", self.daemon.socket, "--job-id", name, "--dir", str(self.folder / "job"), "--", TRAINER,
             str(self.folder / "script")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**test.environment, "STUB_GPU_LIBRARIES": STUBS})
        test.addCleanup(self.end)
        pids = self.until("all ranks", self.pids)
        self.holders = {rank: pid for rank, pid in pids.items()}
        self.say()
        self.until("its processes on the cards", lambda: all(
            self.metric("processes", gpu, kind="compute") == 1 for gpu in range(ranks)))

    def end(self):
        if self.wrapper.poll() is None:
            self.wrapper.terminate()
            self.wrapper.wait()

    def pids(self):
        status, text = self.daemon.get(f"/evidence?job_id={self.name}")
        found = {rank["rank"]: rank["pid"] for rank in json.loads(text)["ranks"]} if status == 200 else {}
        return found if len(found) == self.ranks and all(pid > 0 for pid in found.values()) else None

    def say(self, *events):
        """Tells the driver what the cards do now."""
        self.events += events
        lines = ["driver 550.54.15", f"gpus {GPUS} hopper", *(
            f"gpu {gpu} {key} {value}" for gpu, values in self.cards.items() for key, value in values.items())]
        lines += [f"gpu {rank} process {pid} {50 * GB}" for rank, pid in self.holders.items()]
        path = self.folder / "gpus"
        path.with_suffix(".next").write_text("\n".join(lines + self.others + self.events) + "\n")
        path.with_suffix(".next").rename(path)

    def set(self, gpus, **values):
        for gpu in gpus:
            self.cards[gpu].update(values)
        self.say()

    def fail(self, text):
        self.words.with_suffix(".next").write_text(text)
        self.words.with_suffix(".next").rename(self.words)

    def until(self, what, condition, limit=LONG):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            if value := condition():
                return value
            time.sleep(0.5)
        raise AssertionError(f"{self.name}: waited {limit} s for {what}; {self.line(self.verdict())}; {self.daemon.text()[-2000:]}")

    def metric(self, metric, gpu, **labels):
        own = "".join(f',{label}="{value}"' for label, value in labels.items())
        return self.daemon.metric(f'rankscope_gpu_{metric}{{gpu="{gpu}",gpu_uuid="{uuid(gpu)}"{own}}}')

    def steps(self):
        return json.loads(self.daemon.get(f"/evidence?job_id={self.name}")[1])["training"]["step"] or 0

    def trains(self, steps):
        self.until(f"{steps} steps", lambda: self.steps() >= steps)

    def verdict(self):
        return self.daemon.verdicts().get(self.name)

    @staticmethod
    def line(verdict):
        return verdict and {key: verdict[key] for key in ("code", "sub", "ranks", "tier", "confidence", "domain")}

    def becomes(self, code, state="live", ranks=None):
        verdict = self.until(f"{code}, {state}", lambda: (found := self.verdict()) and found["code"] == code and
                             found["state"] == state and ranks in (None, found["ranks"]) and found)
        print(f"{self.name}: {self.line(verdict)}", *(f"\n    {shown['text']}" for shown in verdict["shows"]), file=sys.stderr)
        return verdict

    def becomes_final(self, code):
        return self.becomes(code, "final")

    def expect(self, verdict, sub, ranks, *shown):
        self.test.assertEqual((verdict["sub"], verdict["ranks"]), (sub, ranks), f"{self.name}: {self.line(verdict)}")
        texts = [evidence["text"] for evidence in verdict["shows"]]
        for pattern in shown:
            self.test.assertTrue(any(re.search(pattern, text) for text in texts), f"{self.name}: '{pattern}' in none of {texts}")


def leak(test):
    run = Run(test, "leak", "rank 3 raise WORDS")
    run.set(range(GPUS), memory_used=f"{20 * GB} +{13 * GB // 10}")
    test.assertIsNone(run.metric("fan_speed_ratio", 3), "it has none")
    run.until("memory that is nearly full", lambda: (run.metric("memory_used_bytes", 3) or 0) >= 80 * GB)
    run.fail(OUT_OF_MEMORY.format(asked="512.00 MiB", gpu=3, free="310.00 MiB", own="78.80 GiB", allocated="77.30 GiB"))
    run.expect(run.becomes_final("B1"), "leak", [3])


def oversize(test):
    run = Run(test, "oversize", "rank 0 raise WORDS")
    run.trains(10)
    run.fail(OUT_OF_MEMORY.format(asked="91.60 GiB", gpu=0, free="12.61 GiB", own="66.50 GiB", allocated="65.20 GiB"))
    run.expect(run.becomes_final("B1"), "oversize", [0])


def ecc(test):
    run = Run(test, "ecc", "rank 5 raise WORDS")
    run.trains(10)
    run.set([5], ecc_1_0_2=1)
    run.until("the counter", lambda: run.metric("ecc_errors_total", 5, kind="uncorrected", scope="volatile", location="all") == 1)
    run.fail(LAUNCH_FAILED)
    verdict = run.becomes_final("B2")
    run.expect(verdict, "ecc", [5], r"GPU 5 \(rank 5\) counted 1 uncorrected memory error.* and 0 before")
    test.assertEqual((verdict["domain"], verdict["gpus"]), ("infrastructure", [uuid(5)]))


def lost(test):
    if not os.access("/dev/kmsg", os.W_OK):
        print("lost: left out: what the driver writes to the kernel's log needs /dev/kmsg", file=sys.stderr)
        return
    run = Run(test, "lost", "rank 6 raise WORDS", kernel_log=True)
    run.trains(10)
    run.say("gpu 6 lost")
    with open("/dev/kmsg", "wb", buffering=0) as log:
        log.write(f"<3>NVRM: Xid (PCI:0000:48:00): 79, pid={run.holders[6]}, name=python3, GPU has fallen off the bus.\n".encode())
    run.until("its loss", lambda: run.metric("health", 6, state="lost") == 1)
    test.assertEqual(run.metric("up", 6), 0)
    test.assertIsNone(run.metric("power_watts", 6), "what was, is not now")
    test.assertEqual(run.metric("xid_errors_total", 6, xid="79"), 1)
    test.assertEqual(run.metric("up", 5), 1)
    run.fail(LAUNCH_FAILED)
    verdict = run.becomes_final("B2")
    run.expect(verdict, "xid", [6], "Xid 79")
    test.assertEqual((verdict["domain"], verdict["gpus"]), ("infrastructure", [uuid(6)]))


def shared(test):
    run = Run(test, "shared", "rank 2 raise WORDS")
    run.trains(10)
    other = subprocess.Popen(["sleep", "600"])
    test.addCleanup(lambda: (other.kill(), other.wait()))
    run.others = [f"gpu 2 process {other.pid} {24 * 2 ** 30}"]
    run.set([2], memory_used=84 * GB)
    run.until("two processes", lambda: run.metric("processes", 2, kind="compute") == 2)
    run.until("their memory", lambda: (run.metric("memory_used_bytes", 2) or 0) >= 80 * GB)
    run.fail(OUT_OF_MEMORY.format(asked="512.00 MiB", gpu=2, free="190.50 MiB", own="50.10 GiB", allocated="48.90 GiB"))
    run.expect(run.becomes_final("X2"), "co_tenant", [2])


def healthy(test):
    run = Run(test, "healthy", "steps 150")
    verdict = run.becomes_final("G1")
    run.expect(verdict, "healthy", [], r"all 8 GPUs .* the engine was active for at least 97 %.*, the SMs for 62 %",
               "no uncorrected memory error .* on any of 8 GPUs")


def heat(test):
    run = Run(test, "heat", "rank 4 sleep 100 from 100")
    run.trains(100)
    run.set([4], clock_1=1215, throttle_bits=0x40, temperature=91)
    run.until("the reason", lambda: run.metric("throttle_active", 4, reason="hw_thermal") == 1)
    test.assertEqual(run.metric("clock_hertz", 4, domain="sm"), 1215e6)
    verdict = run.becomes("B3")
    run.expect(verdict, "thermal", [4], "throttled by the thermal limit.* 1215 MHz instead of 1980 MHz, at 91 degrees", r"a step takes 0\.[3-9]")
    test.assertEqual(verdict["domain"], "infrastructure")


def spin(test):
    run = Run(test, "spin", "rank 5 leave at 50")
    run.trains(48)
    run.set([gpu for gpu in range(GPUS) if gpu != 5], **WAITS)
    run.set([5], **RESTS)
    run.until("the waiting", lambda: run.metric("sm_active_ratio", 0) == 0.12)
    test.assertEqual(run.metric("engine_active_ratio", 0), 1)
    run.until("the rest of the other", lambda: run.metric("sm_active_ratio", 5) == 0)  # each card has its own second
    # Its thread says why it is not there: a pause that nothing ends.
    run.expect(run.becomes("C2", ranks=[5]), "sleep", [5], "12 %", "has printed no training record for")


def odd_card(test):
    run = Run(test, "odd")
    run.set(range(GPUS), gpu_utilization=99, gpm_1=99, gpm_2=16, gpm_5=7, gpm_10=10)
    run.set([5], gpm_2=55, gpm_5=28, gpm_10=30)
    run.expect(run.becomes("D3"), "card", [5], r"SMs of GPU 5 \(rank 5\) were active for 55 %.* its 7 peers for 16 %.* 99 %, theirs for 99 %")


# Of the runs that are retimed: the cards' looks, and those at their processes, come so often, and are put so far apart.
OFTEN, APART = "250ms", 2 * 10 ** 9
TICK, ENGINE_ACTIVITY = 11, 30  # recording.proto's tag; the signal's number in signals.inc


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def recorded(folder):
    """The header, and of each observation its time, its bytes behind the time, and its fields."""
    header, observations = None, []
    for path in sorted(Path(folder).glob("bulk-*.rec")):
        for number, frame in enumerate(recording.frames(path.read_bytes())):
            if number == 0:
                header = header or frame
                continue
            tag, at = recording.varint(frame, 0)
            if tag != 8:  # t_ns comes first
                raise AssertionError(f"an observation without a time: {frame[:20]}")
            t, rest = recording.varint(frame, at)
            observations.append((t, frame[rest:], recording.fields(frame)))
    return header, observations


def looks(observations, gpu, engine):
    """Times of the looks at a card, and how many of them lie before the first that found its engine at this ratio."""
    times, before = [], None
    for t, _, observation in observations:
        batch = recording.fields(observation[recording.SAMPLES][0]) if recording.SAMPLES in observation else {}
        if recording.text(batch, 3) != uuid(gpu):
            continue
        values = dict(zip(recording.packed(batch.get(10, []), recording.varint),
                          recording.packed(batch.get(13, []), recording.double)))
        if before is None and abs(values[ENGINE_ACTIVITY] - engine) < 0.005:
            before = len(times)
        times.append(t)
    return times, before


def retimed(header, observations, times):
    """The recording up to the last of these looks, look K exactly K * APART after the first and all else between its looks: what
    was late on a busy machine is late no more. Its ticks are left out: a replay without any makes its own, one a second."""
    out = varint(len(header)) + header
    for t, rest, observation in observations:
        if t > times[-1] or TICK in observation:
            continue
        at = max(1, min(bisect.bisect_right(times, t), len(times) - 1))
        begin, end = times[at - 1], times[at]
        length = 10 ** 9 // 4 if t < times[0] else end - begin
        frame = b"\x08" + varint(times[0] + (at - 1) * APART + (t - begin) * APART // length) + rest
        out += varint(len(frame)) + frame
    return out


def judged(run, code, gpu, engine, count):
    """What a replay says of the run, `count` looks after the card's engine was found at this ratio."""
    def enough():
        header, observations = recorded(Path(run.daemon.state) / "jobs" / run.name)
        times, before = looks(observations, gpu, engine)
        if before is not None and len(times) >= before + count:
            return retimed(header, observations, times[:before + count])
        return None
    result = subprocess.run([BINARY, "replay", "-"], input=run.until(f"{count} looks", enough), capture_output=True, check=True)
    verdict = {found["job_id"]: found for found in json.loads(result.stdout)["verdicts"]}[run.name]
    print(f"{run.name}, retimed: {run.line(verdict)}", *(f"\n    {shown['text']}" for shown in verdict["shows"]),
          file=sys.stderr)
    run.test.assertEqual(verdict["code"], code, run.line(verdict))
    return verdict


def idles(test):
    run = Run(test, "idles", "rank 0 leave at 50", ranks=1, interval=OFTEN)
    run.trains(48)
    run.set([0], **RESTS)
    run.until("its idling", lambda: run.metric("engine_active_ratio", 0) == 0)
    test.assertEqual(run.metric("memory_used_bytes", 0), 61 * GB)
    run.expect(judged(run, "C3", 0, 0, 170), "idle", [0], r"GPU 0 \(rank 0\) was active for 0 %.* 58174 MiB of its memory in use; nothing has run on it for 3")


def starves(test):
    run = Run(test, "starves", interval=OFTEN)
    run.set(range(GPUS), gpu_utilization=12, gpm_1=12, gpm_2=9, gpm_5=5, gpm_10=6)
    run.until("its idling", lambda: run.metric("engine_active_ratio", 7) == 0.12)
    run.expect(judged(run, "D1", 7, 0.12, 190), "low_duty", [], r"GPU 7 \(rank 7\) was active for 12 % .* at most 12 % of any of the last five")


RUNS = [starves, odd_card, heat, spin, idles, leak, healthy, oversize, ecc, lost, shared]


class GpuRuns(ServeTest):
    def test_each_run_is_told_apart(self):
        wanted = os.environ.get("GPU_RUNS")  # some of them, by name
        runs = [run for run in RUNS if not wanted or run.__name__ in wanted.split(",")]
        with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
            going = {pool.submit(run, self): run.__name__ for run in runs}
            failures = []
            for done in concurrent.futures.as_completed(going):
                if error := done.exception():
                    failures.append(f"{going[done]}: {''.join(traceback.format_exception(error))}")
        if failures:
            self.fail("\n".join(failures))


if __name__ == "__main__":
    import unittest
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
