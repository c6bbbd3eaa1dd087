#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What watching GPUs costs: bench/gpu_cost.py build [SECONDS] [SERIES]

The cards are the stand-in for the driver's library (tests/support/fake_nvml), whose calls take next to no time: what is
measured is the product's own part. Prints
  - wall and CPU time of a look at one of 8 GPUs, all fields (build/bench/nvml_bench);
  - the daemon's share of a core over SECONDS (60) with 8 GPUs looked at once a second, and by turns without any;
  - with one GPU that hangs in every call: the longest time between two looks at each of the others, beside that without;
  - with 16 GPUs, one of which hangs, and runs of as many ranks as it takes to have SERIES (12,000): the time of /metrics.
"""
import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from serve_cost import cpu_seconds, resident_mib
from verdict_latency import ask, free_port, wait_until_ready

EIGHT = "driver 550.54.15\ngpus 8 hopper\ngpu * energy 5000000 +70000\ngpu * gpm_1 97\ngpu * gpm_2 62\n"
WARM_UP_S = 8
CONFIG = """ebpf: {mode: "off"}
metrics: {profile: %s, max_series: %d}
"""
# Who hears of every process of the machine costs what the machine's other work makes of it.
ALONE = """sources: {procfs: {enabled: false}, proc_connector: {enabled: false}}
"""


class Serve:
    def __init__(self, build, script=None, profile="default", series=2000, more=""):
        self.directory = tempfile.TemporaryDirectory()
        folder = Path(self.directory.name)
        (folder / "config.yaml").write_text(CONFIG % (profile, series) + more)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
        if script:
            (folder / "gpus").write_text(script)
            environment |= {"LD_LIBRARY_PATH": str(build / "tests/support/fake_nvml/lib"), "FAKE_NVML_SCRIPT": str(folder / "gpus")}
        self.port = free_port()
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [build / "rankscope", "serve", "--config", folder / "config.yaml", "--web.listen-address",
                 f"127.0.0.1:{self.port}", "--state.dir", folder / "state", "--run.socket", folder / "run.sock"],
                stderr=log, stdout=log, env=environment)
        wait_until_ready(self.port, self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()

    def page(self):
        return ask(self.port, "/metrics")[1].decode()


def at(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def look(build):
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "gpus")
        script.write_text(EIGHT)
        subprocess.run([build / "bench/nvml_bench", build / "tests/support/fake_nvml/lib/libnvidia-ml.so.1", "100"], check=True,
                       env={**os.environ, "FAKE_NVML_SCRIPT": str(script)})


def shares(build, seconds):
    """By turns, half of the time each and twice: a machine is not the same from one minute to the next."""
    found = {"without GPUs": [], "with 8 GPUs": []}
    memory = {}
    for _ in range(2):
        for name, script in (("without GPUs", None), ("with 8 GPUs", EIGHT)):
            with Serve(build, script, more=ALONE) as serve:
                time.sleep(WARM_UP_S)
                if script and serve.page().count("rankscope_gpu_up{") != 8:
                    raise SystemExit("not all GPUs are looked at")
                begin, before = time.monotonic(), cpu_seconds(serve.process.pid)
                time.sleep(seconds / 2)
                found[name].append((cpu_seconds(serve.process.pid) - before) / (time.monotonic() - begin))
                memory[name] = resident_mib(serve.process.pid)
    means = {name: sum(values) / len(values) for name, values in found.items()}
    for name, share in means.items():
        print(f"{name}: {100 * share:.2f} % of a core, {memory[name]:.1f} MiB resident")
    print(f"8 GPUs once a second: {100 * (means['with 8 GPUs'] - means['without GPUs']):.2f} % of a core")


def longest_pause(build, seconds, script, expected):
    """Between two changes of a counter that rises all the time, of each GPU that is up; seconds."""
    with Serve(build, script) as serve:
        time.sleep(WARM_UP_S)
        last, pauses, end = {}, {}, time.monotonic() + seconds
        while time.monotonic() < end:
            now = time.monotonic()
            for gpu, value in re.findall(r'^rankscope_gpu_energy_joules_total\{gpu="(\d+)"[^}]*\} (\S+)$', serve.page(), re.M):
                if gpu in last and last[gpu][0] != value:
                    pauses.setdefault(gpu, []).append(now - last[gpu][1])
                if gpu not in last or last[gpu][0] != value:
                    last[gpu] = (value, now)
            time.sleep(0.02)
        if len(pauses) != expected:
            raise SystemExit(f"{len(pauses)} GPUs are looked at, not {expected}")
        return max(max(values) for values in pauses.values())


def scrapes(build, series):
    """Ranks are processes that sleep, eight to a run."""
    script = EIGHT.replace("gpus 8", "gpus 16") + "gpu 3 hang\n"
    with Serve(build, script, "full", series) as serve:
        workers = []
        try:
            while (count := int(float(re.search(r"^rankscope_series (\S+)$", serve.page(), re.M)[1]))) < series - 100:
                if len(workers) >= 2000:
                    print(f"(no more than {count} series)")
                    break
                for rank in range(8):
                    workers.append(subprocess.Popen(["sleep", "3600"], env={
                        "PATH": os.environ["PATH"], "SLURM_JOB_ID": str(9000 + len(workers) // 8), "RANK": str(rank),
                        "LOCAL_RANK": str(rank), "WORLD_SIZE": "8"}))
                time.sleep(0.5 if len(workers) % 64 else 3)
            time.sleep(3)
            connection = http.client.HTTPConnection("127.0.0.1", serve.port, timeout=10)
            for name, headers in (("text", {}), ("text, gzip", {"Accept-Encoding": "gzip"})):
                took = []
                for _ in range(300):
                    begin = time.monotonic()
                    connection.request("GET", "/metrics", headers=headers)
                    answer = connection.getresponse()
                    size = len(answer.read())
                    took.append(time.monotonic() - begin)
                    time.sleep(0.01)
                print(f"/metrics, {count} series, {len(workers)} ranks, 16 GPUs, one hangs, {name}: {size} bytes, "
                      f"median {1e3 * at(took, 0.5):.2f} ms, p99 {1e3 * at(took, 0.99):.2f} ms")
        finally:
            for worker in workers:
                worker.kill()
            for worker in workers:
                worker.wait()


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    series = int(sys.argv[3]) if len(sys.argv) > 3 else 12000
    look(build)
    shares(build, seconds)
    print(f"longest time between two looks at a GPU: {longest_pause(build, seconds, EIGHT, 8):.2f} s; of the others where one "
          f"hangs: {longest_pause(build, seconds, EIGHT + 'gpu 3 hang' + chr(10), 7):.2f} s")
    scrapes(build, series)


if __name__ == "__main__":
    main()
