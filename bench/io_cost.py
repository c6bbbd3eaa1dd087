#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What the programs that watch files and sockets cost those who call the kernel: bench/io_cost.py build/rankscope [REPEATS]

Nanoseconds a call, median of REPEATS (7), of a process that belongs to no training and of a rank: without the daemon, with it
but without its sources `network` and `io`, and with one or both of them. The runs of all settings take turns, so that a
machine that drifts drifts for all. Use the ratios. Needs root, gcc, a kernel with BTF.
"""
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager

from verdict_latency import free_port, wait_until_ready

CALLS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
#define TIME(name, times, call)                              \
  do {                                                       \
    double begin = now();                                    \
    for (int i = 0; i < (times); i++) { call; }              \
    printf("%s %.1f\n", name, (now() - begin) / (times));    \
  } while (0)

int main(int argc, char **argv) {
  static char bytes[65536];
  char path[4096], missing[4096], checkpoint[4096];
  struct stat found;
  int null = open("/dev/null", O_WRONLY), file, pair[2];
  sleep(2); /* the daemon decides who is a rank */
  snprintf(path, sizeof path, "%s/plain.txt", argv[1]);
  snprintf(missing, sizeof missing, "%s/module_that_is_not_there.py", argv[1]);
  snprintf(checkpoint, sizeof checkpoint, "%s/model.pt", argv[1]);
  file = open(path, O_RDWR | O_CREAT, 0644);
  close(open(checkpoint, O_RDWR | O_CREAT, 0644));
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  TIME("getppid", 400000, syscall(SYS_getppid));
  TIME("write_100_null", 400000, if (write(null, bytes, 100) < 0) return 1);
  TIME("pwrite_64k_file", 4000, if (pwrite(file, bytes, sizeof bytes, 0) < 0) return 1);
  TIME("pread_4k_file", 100000, if (pread(file, bytes, 4096, 0) < 0) return 1);
  TIME("open_close", 40000, close(open(path, O_RDONLY)));
  TIME("open_close_checkpoint", 40000, close(open(checkpoint, O_RDONLY)));
  TIME("stat_missing", 100000, stat(missing, &found));
  TIME("send_receive", 40000, if (send(pair[0], bytes, 64, 0) < 0 || recv(pair[1], bytes, 64, 0) < 0) return 1);
  return 0;
}
"""
SETTINGS = {"no daemon": None, "neither": ("network", "io"), "network": ("io",), "io": ("network",), "both": ()}


@contextmanager
def daemon(binary, folder, without):
    if without is None:
        yield
        return
    config = os.path.join(folder, "config.yaml")
    with open(config, "w", encoding="ascii") as file:
        file.write("sources: {" + ", ".join(f"{name}: {{enabled: false}}" for name in without) + "}\n")
    port = free_port()
    with open(os.path.join(folder, "log"), "ab") as log:
        process = subprocess.Popen(
            [binary, "serve", "--config.file", config, "--web.listen-address", f"127.0.0.1:{port}", "--state.dir",
             os.path.join(folder, "state"), "--run.socket", os.path.join(folder, "run.sock")], stderr=log, stdout=log)
    try:
        wait_until_ready(port, process)
        yield
    finally:
        process.terminate()
        process.wait()


def measure(program, folder, rank):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "RANK", "WORLD_SIZE"))}
    if rank:
        environment.update(RANK="0", WORLD_SIZE="1")
    out = subprocess.run([program, folder], env=environment, capture_output=True, text=True, check=True).stdout
    return {name: float(value) for name, value in map(str.split, out.splitlines())}


def main():
    binary = sys.argv[1]
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "calls.c"), os.path.join(folder, "calls")
        with open(source, "w", encoding="ascii") as file:
            file.write(CALLS)
        subprocess.run(["gcc", "-O2", "-o", program, source], check=True)
        results = {}
        for _ in range(repeats):
            for setting, without in SETTINGS.items():
                with daemon(binary, folder, without):
                    for who in ("other", "rank"):
                        for call, value in measure(program, folder, who == "rank").items():
                            results.setdefault((who, call, setting), []).append(value)
    names = list(SETTINGS)
    for who in ("other", "rank"):
        print(f"\n{'of a rank' if who == 'rank' else 'of any other process'}, ns a call (ratio to no daemon)")
        print(f"{'call':24}" + "".join(f"{name:>20}" for name in names))
        for call in dict.fromkeys(call for _, call, _ in results):
            medians = [statistics.median(results[who, call, name]) for name in names]
            print(f"{call:24}" + "".join(f"{value:12.0f} ({value / medians[0]:.2f})" for value in medians))


if __name__ == "__main__":
    main()
