# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Programs at the CUDA and NCCL calls of real processes: what is counted is what the stub libraries counted themselves."""
import os
import re
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support" / "stub_gpu"))

import counts as oracle  # noqa: E402
import recording  # noqa: E402
from bpf_test import BpfTest  # noqa: E402
from serve_test import BINARY, PATIENCE, wait_for  # noqa: E402

LIBRARIES = Path(os.environ.get("STUB_GPU_FOLDER", "build/tests/support/stub_gpu/lib")).resolve()
SIGNALS = {name: int(number) for number, name in re.findall(
    r'SIGNAL\((\d+), k\w+, "(\w+)"', (Path(__file__).resolve().parents[2] / "detectors/model/signals.inc").read_text())}

# A rank that waits for files: it loads the libraries at "load", calls at "go", and ends at "end".
RANK = r"""
import ctypes, os, sys, threading, time
def wait(name):
    while not os.path.exists(name):
        if not os.path.isdir(os.path.dirname(os.path.abspath(name))):
            sys.exit(9)
        time.sleep(0.005)
folder = os.environ["STUB_GPU"]
open(os.environ["READY"], "w").close()
wait("load")
cuda = ctypes.CDLL(folder + "/libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
cudart = ctypes.CDLL(folder + "/libcudart.so.12", mode=ctypes.RTLD_GLOBAL)
nccl = ctypes.CDLL(folder + "/libnccl.so.2") if os.path.exists(folder + "/libnccl.so.2") else None
null = ctypes.c_void_p()
class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]
class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]
one = Dim3(1, 1, 1)
pointer = ctypes.c_uint64()
def launch(): return cudart.cudaLaunchKernel(null, one, one, None, ctypes.c_size_t(0), null)
def driver_launch(): return cuda.cuLaunchKernel(null, 1, 1, 1, 1, 1, 1, 0, null, None, None)
wait("go")
"""


class CallsTest(BpfTest):
    def setUp(self):
        super().setUp()
        if not (LIBRARIES / "libcuda.so.1").exists():
            self.fail(f"no stub libraries in {LIBRARIES}")
        self.counts = Path(self.folder) / "counts"
        self.counts.mkdir()
        self.environment |= {"STUB_GPU": str(LIBRARIES), "STUB_GPU_COUNTS": str(self.counts),
                             "LD_LIBRARY_PATH": str(LIBRARIES)}

    def start(self, text, **options):
        process = self.python(RANK + text + "\nwait('end')\n", **options)
        wait_for("the rank", lambda: (Path(self.folder) / f"ready-{options.get('rank', '0')}").exists())
        return process

    def say(self, word):
        (Path(self.folder) / word).touch()

    def seen(self, daemon, process):
        """Signal -> values, of this process."""
        if not hasattr(self, "job"):
            self.job = self.job_of(daemon, process.pid)
        found = recording.samples(Path(daemon.state) / "jobs" / self.job).get(process.pid, {})
        names = {number: name for name, number in SIGNALS.items()}
        return {names[number]: values for number, values in found.items()}

    def load(self, daemon, process):
        """Until the library is seen; how long that took."""
        self.say("load")
        begin = time.monotonic()
        wait_for("the library to be seen", lambda: "kernel_launches" in self.seen(daemon, process))
        return time.monotonic() - begin

    def last(self, daemon, process, signal):
        return self.seen(daemon, process).get(signal, [None])[-1]

    @staticmethod
    def takes_many_places():
        check = subprocess.run([BINARY, "check"], capture_output=True, text=True)
        return re.search(r"(?m)^ebpf.multi\s+yes", check.stdout) is not None

    def told(self, pid):
        return oracle.read(self.counts).get(pid, {})

    def finish(self, daemon, process):
        """All samples, its last ones too."""
        self.say("end")
        self.assertEqual(process.wait(PATIENCE), 0)
        wait_for("the last samples", lambda: recording.exits(Path(daemon.state) / "jobs" / self.job))
        return {name: values[-1] for name, values in self.seen(daemon, process).items()}


class Launches(CallsTest):
    def test_each_is_counted_once_through_whatever_layers(self):
        daemon = self.daemon()
        process = self.start("""
for _ in range(700): launch()
for _ in range(300): driver_launch()
for _ in range(50): cudart.cudaGraphLaunch(null, null)
""")
        self.load(daemon, process)
        self.say("go")
        wait_for("the calls", lambda: self.told(process.pid).get("cudaGraphLaunch") == 50)
        end = self.finish(daemon, process)
        told = self.told(process.pid)
        self.assertEqual((told["cudaLaunchKernel"], told["cuLaunchKernel"], told["cuGraphLaunch"]), (700, 1000, 50))
        self.assertEqual((end["kernel_launches"], end["graph_launches"]), (1000, 50))
        self.assertEqual(end["counted_share"], 1)

    def test_these_probes_leave_within_a_second(self):
        config = Path(self.folder) / "config.yaml"
        others = [source for source in ("stdio", "wait", "network", "io")
                  if subprocess.run([BINARY, "list", "sources"], capture_output=True, text=True).stdout.count(f"`{source}`")]
        config.write_text("sources: {" + ", ".join(f"{source}: {{enabled: false}}" for source in others) + "}\n")
        daemon = self.daemon("--config", str(config))
        process = self.start("""
while not os.path.exists("end"): launch()
""")
        self.load(daemon, process)
        self.say("go")
        wait_for("launches", lambda: (self.last(daemon, process, "kernel_launches") or 0) > 100)
        begin = time.monotonic()
        self.assertEqual(daemon.stop(), 0)
        took = time.monotonic() - begin
        print(f"stopped in {took:.3f} s", file=sys.stderr)
        self.assertLess(took, 1)
        self.say("end")
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_the_largest_gap_and_the_running_one(self):
        daemon = self.daemon()
        process = self.start("""
for pause in [0.01] * 20 + [1.3] + [0.01] * 20:
    launch()
    time.sleep(pause)
""")
        self.load(daemon, process)
        self.say("go")
        wait_for("the gap", lambda: max(self.seen(daemon, process).get("largest_launch_gap", [0])) > 3)
        gaps = self.seen(daemon, process)["largest_launch_gap"]
        self.assertTrue(any(1.29 < gap < 1.8 for gap in gaps), gaps)
        ages = self.seen(daemon, process)["last_launch_age"]
        self.assertGreater(ages[-1], 2.5)
        self.finish(daemon, process)


class Gaps(CallsTest):
    """How long ranks stand between launches, by length: what the rank says it waited."""

    NAMES = [name for name in SIGNALS if name.startswith("launch_gaps_")]
    BOUNDS = [2.0 ** power for power in range(-10, 7)] + [float("inf")]

    def full_daemon(self, *flags):
        config = Path(self.folder) / "config.yaml"
        config.write_text("metrics: {profile: full}\n")
        return self.daemon("--config", str(config), *flags)

    def gaps(self, end):
        """The upper ends of the buckets that have any -> how many."""
        return {bound: end[name] for bound, name in zip(self.BOUNDS, self.NAMES) if end[name]}

    def histogram(self, daemon):
        """le -> count, as it is exported."""
        text = daemon.get("/metrics")[1]
        return {float(bound): float(count) for bound, count in re.findall(
            rf'^rankscope_cuda_launch_gap_seconds_bucket{{job_id="{self.job}",rank="0",le="([^"]+)"}} (\S+)$', text, re.M)}

    def test_each_is_counted_by_its_length(self):
        daemon = self.full_daemon()
        process = self.start("""
waited = []
def pause(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until: time.sleep(0.001)
def next_launch():
    launch()
    waited.append(time.monotonic())
for _ in range(6):
    next_launch()
    pause(0.020)
pause(0.3)
next_launch()
pause(1.2)
next_launch()
for _ in range(500): next_launch()
with open("waited", "w") as file: file.write(repr([after - before for before, after in zip(waited, waited[1:])]))
os.rename("waited", "done")
""")
        self.load(daemon, process)
        self.say("go")
        wait_for("the launches", lambda: (Path(self.folder) / "done").exists())
        wait_for("the histogram", lambda: self.histogram(daemon).get(float("inf")) == 507)
        shown = self.histogram(daemon)
        labels = f'{{job_id="{self.job}",rank="0"}}'
        count, total = (daemon.metric(f"rankscope_cuda_launch_gap_seconds_{part}{labels}") for part in ("count", "sum"))
        end = self.finish(daemon, process)
        found = self.gaps(end)
        waited = eval((Path(self.folder) / "done").read_text())
        wanted = {}
        for seconds in waited:
            bound = next(bound for bound in self.BOUNDS if seconds <= bound)
            wanted[bound] = wanted.get(bound, 0) + 1
        self.assertEqual({bound: count for bound, count in wanted.items() if bound > 0.01},
                         {bound: count for bound, count in found.items() if bound > 0.01}, waited)
        self.assertGreaterEqual(wanted[0.03125], 1, "20 ms are beyond 2^-6 s")
        self.assertEqual(sum(found.values()), 507)
        self.assertGreater(found[2.0 ** -10], 450, "the burst")
        self.assertAlmostEqual(end["launch_gap_seconds"], sum(waited), delta=0.1)
        self.assertEqual((count, len(shown)), (507, 18))
        self.assertAlmostEqual(total, end["launch_gap_seconds"], places=3)
        rising = [shown[bound] for bound in self.BOUNDS]
        self.assertEqual(rising, [sum(found.get(bound, 0) for bound in self.BOUNDS[:at + 1]) for at in range(18)])

    def test_a_gap_while_the_probes_were_off_is_none(self):
        daemon = self.full_daemon("--ebpf.budget=0.5%")
        process = self.start("""
while not os.path.exists("slow"):
    for _ in range(1000): launch()
wait("again")
""")
        self.load(daemon, process)
        self.say("go")
        wait_for("windows", lambda: (self.last(daemon, process, "counted_share") or 1) < 0.5)
        wait_for("twenty seconds of them", lambda: len(self.seen(daemon, process)["counted_share"]) > 20)
        self.say("slow")
        self.say("again")
        end = self.finish(daemon, process)
        found = self.gaps(end)
        # It launched all the time: whatever is long was not watched from end to end.
        self.assertFalse({bound: count for bound, count in found.items() if bound > 0.5}, found)
        self.assertGreater(found[2.0 ** -10], 1000)
        self.assertLess(end["launch_gap_seconds"], 0.7 * len(self.seen(daemon, process)["counted_share"]))


class Attached(CallsTest):
    """Whether a rank uses a GPU: its library alone proves nothing, work with it does."""

    def test_from_nothing_to_work(self):
        daemon = self.daemon()
        process = self.start("""
launch()
open('done', 'w').close()
""")
        self.job = self.job_of(daemon, process.pid)
        attached = f'rankscope_cuda_attached{{job_id="{self.job}",rank="0"}}'
        wait_for("the rank to be looked at", lambda: daemon.metric(attached) == 0)
        self.assertEqual(self.last(daemon, process, "cuda_use"), 0)
        self.load(daemon, process)
        wait_for("its library", lambda: self.last(daemon, process, "cuda_use") == 1)
        self.assertEqual(daemon.metric(attached), 0, "mapped, and no device to be seen")
        self.say("go")
        wait_for("the launch", lambda: (Path(self.folder) / "done").exists())
        begin = time.monotonic()
        wait_for("the rank to be attached", lambda: daemon.metric(attached) == 1)
        print(f"shown {time.monotonic() - begin:.2f} s after the launch", file=sys.stderr)
        self.finish(daemon, process)
        wait_for("its end to be shown", lambda: daemon.metric(attached) == 0)


class Budget(CallsTest):
    """Launches beyond what may be spent are counted in windows; where a rank stops, everything is counted again."""

    def probe(self, daemon, what, probe):
        return daemon.metric(f'rankscope_probe_{what}{{source="cuda",probe="{probe}"}}')

    def test_windows_and_back(self):
        daemon = self.daemon("--ebpf.budget=0.5%")
        process = self.start("""
while not os.path.exists("slow"):
    for _ in range(1000): launch()
wait("again")
for _ in range(100): launch()
""")
        self.load(daemon, process)
        self.assertEqual(self.last(daemon, process, "counted_share"), 1)
        self.say("go")
        wait_for("windows", lambda: (self.last(daemon, process, "counted_share") or 1) < 0.5)
        wait_for("the metric", lambda: self.probe(daemon, "duty_ratio", "launch_driver") < 0.5)
        self.assertEqual(self.probe(daemon, "duty_ratio", "launch_runtime"), 0, "the driver's show all")
        self.assertIn("ebpf.budget", daemon.get("/verdict")[1])
        self.say("slow")
        wait_for("everything to be counted", lambda: self.last(daemon, process, "counted_share") == 1)
        wait_for("both layers", lambda: self.probe(daemon, "duty_ratio", "launch_runtime") == 1)
        before = self.last(daemon, process, "kernel_launches")
        self.say("again")
        wait_for("the launches", lambda: self.last(daemon, process, "kernel_launches") > before)
        end = self.finish(daemon, process)
        self.assertEqual(end["kernel_launches"] - before, 100, "exact again")
        text = daemon.get("/metrics")[1]
        self.assertIn('rankscope_probe_placement_info{source="cuda",probe="launch_driver",class="emulated"} 1', text)
        self.assertIn('rankscope_probe_placement_info{source="cuda",probe="launch_runtime",class="push"} 1', text)
        runs, seconds = (self.probe(daemon, what, "launch_driver") for what in ("runs_total", "seconds_total"))
        print(f"{seconds / runs * 1e9:.0f} ns a run", file=sys.stderr)
        self.assertTrue(1e-8 < seconds / runs < 1e-5)  # in seconds: a unit, no measure

    def test_timed_calls_are_given_up_and_looked_at_again(self):
        daemon = self.daemon("--ebpf.budget=0.5%")
        process = self.start("""
while not os.path.exists("slow"):
    for _ in range(1000): cudart.cudaStreamSynchronize(null)
wait("again")
for _ in range(100): cudart.cudaStreamSynchronize(null)
""")
        self.load(daemon, process)
        self.assertEqual(self.last(daemon, process, "timed_share"), 1)
        self.say("go")
        wait_for("too many calls", lambda: self.last(daemon, process, "timed_share") == 0)
        wait_for("its share of the time", lambda: self.probe(daemon, "duty_ratio", "call") == 0)
        self.assertIn("ebpf.budget", daemon.get("/verdict")[1])
        self.say("slow")
        wait_for("the next look", lambda: self.last(daemon, process, "timed_share") == 1)
        before = self.last(daemon, process, "sync_calls")
        self.say("again")
        wait_for("the calls", lambda: self.last(daemon, process, "sync_calls") > before)
        end = self.finish(daemon, process)
        self.assertEqual(end["sync_calls"] - before, 100, "exact again")


class Libraries(CallsTest):
    """Wherever the code lies."""

    LAUNCHES = "for _ in range(500): launch()\nopen('done', 'w').close()\n"

    def launched(self, daemon, process):
        self.say("go")
        wait_for("the launches", lambda: (Path(self.folder) / "done").exists())
        end = self.finish(daemon, process)
        self.assertEqual(end["kernel_launches"], 500)

    def test_loaded_late(self):
        daemon = self.daemon()
        process = self.start(self.LAUNCHES)
        self.job_of(daemon, process.pid)
        time.sleep(1.2)  # the daemon has looked, and found nothing
        self.assertEqual(self.seen(daemon, process).get("kernel_launches"), None)
        took = self.load(daemon, process)
        print(f"a library loaded late is reported after {took:.2f} s", file=sys.stderr)
        self.launched(daemon, process)

    def test_a_copy_with_another_name_in_another_place(self):
        bundle = Path(self.folder) / "torch" / "lib"
        bundle.mkdir(parents=True)
        for library in LIBRARIES.iterdir():
            shutil.copy(library, bundle / library.name)
        self.environment |= {"STUB_GPU": str(bundle), "LD_LIBRARY_PATH": str(bundle)}
        daemon = self.daemon()
        process = self.start(self.LAUNCHES)
        self.load(daemon, process)
        self.launched(daemon, process)

    def test_two_copies_at_once_one_in_another_mount_namespace(self):
        hidden = Path(self.folder) / "hidden"
        hidden.mkdir()
        daemon = self.daemon()
        first = self.start(self.LAUNCHES.replace("done", "done-first"))
        self.load(daemon, first)
        script = f"mount -t tmpfs none {hidden} && cp {LIBRARIES}/* {hidden}/ && exec \"$@\""
        environment = {**self.environment, "STUB_GPU": str(hidden), "LD_LIBRARY_PATH": "", "RANK": "1", "WORLD_SIZE": "2",
                       "READY": str(Path(self.folder) / "ready-1")}
        environment["LD_LIBRARY_PATH"] = str(hidden)
        second = subprocess.Popen(["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-c",
                                   RANK + self.LAUNCHES + "\nwait('end')\n"], env=environment, cwd=self.folder)
        self.addCleanup(lambda: second.poll() is None and (second.kill(), second.wait()))
        wait_for("the second rank", lambda: (Path(self.folder) / "ready-1").exists())
        self.assertFalse(any(hidden.iterdir()), "not to be seen from here")
        wait_for("its library to be seen", lambda: "kernel_launches" in self.seen_of_job(daemon, second))
        self.say("go")
        wait_for("the launches", lambda: (Path(self.folder) / "done").exists() and (Path(self.folder) / "done-first").exists())
        self.say("end")
        self.assertEqual((first.wait(PATIENCE), second.wait(PATIENCE)), (0, 0))
        for process in first, second:
            wait_for("the count", lambda: (self.seen_of_job(daemon, process).get("kernel_launches") or [0])[-1] == 500)

    def seen_of_job(self, daemon, process):
        for folder in (Path(daemon.state) / "jobs").iterdir():
            found = recording.samples(folder).get(process.pid)
            if found:
                names = {number: name for name, number in SIGNALS.items()}
                return {names[number]: values for number, values in found.items()}
        return {}

    def test_a_static_program(self):
        source = Path(self.folder) / "static.c"
        source.write_text(r"""
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int cudaLaunchKernel(void *f) { __asm__ volatile("" ::: "memory"); return f == (void *)1; }
int main(void) {
  fclose(fopen(getenv("READY"), "w"));
  while (access("go", F_OK)) usleep(5000);
  for (int i = 0; i < 500; i++) cudaLaunchKernel(0);
  fclose(fopen("done", "w"));
  while (access("end", F_OK)) usleep(5000);
  return 0;
}
""".replace("#include <stdio.h>", "#include <stdio.h>\n#include <stdlib.h>"))
        program = Path(self.folder) / "static"
        subprocess.run(["gcc", "-O2", "-static", "-o", program, source], check=True)
        daemon = self.daemon()
        process = self.rank(str(program))
        self.load(daemon, process)
        self.launched(daemon, process)


class Calls(CallsTest):
    def test_time_bytes_and_failures(self):
        daemon = self.daemon()
        process = self.start("""
cuda.cuStreamSynchronize(null)
buffer = ctypes.create_string_buffer(1 << 20)
size = ctypes.c_size_t
device = ctypes.c_uint64()
for _ in range(5): assert cudart.cudaMalloc(ctypes.byref(device), size(1 << 20)) == 0
assert cudart.cudaMalloc(ctypes.byref(pointer), size(1 << 50)) == 2
at = ctypes.c_void_p(device.value)
for _ in range(7): assert cudart.cudaMemcpyAsync(at, buffer, size(1000), 1, null) == 0
for _ in range(3): assert cudart.cudaMemcpyAsync(buffer, at, size(500), 2, null) == 0
for _ in range(4): cudart.cudaDeviceSynchronize()
open('done', 'w').close()
""")
        self.load(daemon, process)
        self.say("go")
        wait_for("the calls", lambda: (Path(self.folder) / "done").exists())
        end = self.finish(daemon, process)
        self.assertEqual((end["allocated_bytes"], end["allocation_failures"], end["last_failed_allocation_bytes"]),
                         (5 << 20, 1, 1 << 50))
        self.assertEqual((end["copy_calls"], end["copied_to_device_bytes"], end["copied_to_host_bytes"], end["copied_bytes"]),
                         (10, 7000, 1500, 8500))
        self.assertEqual((end["sync_calls"], end["cuda_errors"]), (5, 1))
        failed = [e for e in recording.events(Path(daemon.state) / "jobs" / self.job) if e.type == 30]
        self.assertEqual([(e.pid, e.text["call"], e.number["bytes"], e.number["result"]) for e in failed],
                         [(process.pid, "cudaMalloc", 1 << 50, 2)])

    def test_a_synchronisation_that_does_not_end(self):
        daemon = self.daemon()
        process = self.start("""
cuda.stubGpuSetKernelNanoseconds.argtypes = [ctypes.c_int64]
cuda.stubGpuSetKernelNanoseconds(600 * 10**9)
launch()
cudart.cudaDeviceSynchronize()
""")
        self.load(daemon, process)
        self.say("go")
        wait_for("its age", lambda: (self.last(daemon, process, "oldest_sync_seconds") or 0) > 2)
        syncs = self.seen(daemon, process)
        self.assertEqual(syncs["sync_calls"][-1], 0)
        self.assertGreater(syncs["cuda_sync_seconds"][-1], 1.5)
        self.assertEqual(syncs["cuda_sync_seconds"], sorted(syncs["cuda_sync_seconds"]))
        process.kill()


class Collectives(CallsTest):
    def test_communicators_and_collectives(self):
        daemon = self.daemon()
        process = self.start("""
comm, size = ctypes.c_void_p(), ctypes.c_size_t
unique = UniqueId()
nccl.ncclGetUniqueId(ctypes.byref(unique))
assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0) == 0
for _ in range(40): assert nccl.ncclAllReduce(null, null, size(1000), 7, 0, comm, null) == 0
for _ in range(10): assert nccl.ncclAllGather(null, null, size(100), 9, comm, null) == 0
for _ in range(5): assert nccl.ncclReduce(null, null, size(10), 8, 0, 0, comm, null) == 0
open('done', 'w').close()
wait('more')
assert nccl.ncclCommDestroy(comm) == 0
""")
        self.load(daemon, process)
        self.say("go")
        wait_for("the calls", lambda: (Path(self.folder) / "done").exists())
        wait_for("the communicator", lambda: self.last(daemon, process, "communicators") == 1)
        self.assertEqual(self.last(daemon, process, "inits_in_flight"), 0)
        self.say("more")
        end = self.finish(daemon, process)
        # Where each place costs a link of its own, it is not spent on what training hardly calls, such as ncclReduce.
        reduces = 5 if self.takes_many_places() else 0
        entered = 50 + reduces
        self.assertEqual((end["collectives_enqueued"], end["collective_bytes"]), (entered, 40 * 4000 + 10 * 200 + reduces * 80))
        self.assertEqual((end["collective_sequence"], end["communicators"]), (entered, 0))
        told = [(e.type, e.text["what"], e.number["nranks"], e.number["rank"]) for e in
                recording.events(Path(daemon.state) / "jobs" / self.job) if e.type in (40, 41)]
        self.assertEqual(told, [(41, "begun", 1, 0), (40, "created", 1, 0), (40, "destroyed", 1, 0)])


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
