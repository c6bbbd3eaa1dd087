#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Two real ranks of PyTorch over gloo, with a data loader's worker each, of which rank 1 stops moving at a step in one of the
ways that real ones do. Without RANK it is their launcher: it starts both and waits for them.

    waiting_trainer.py HOW STEP FILE PIDS     HOW: none | dataloader | filelock | collect | sleep | save (rank 0)

With `shard` it does not stop: its samples lie in files, FILE with the rank's number behind it; with `loaded` its data loader
reads them, with `busy` so early that nobody waits for it.
"""
import fcntl
import gc
import multiprocessing
import os
import socket
import subprocess
import sys
import time

HOW, STEP, FILE, PIDS = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]


def launch():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(2):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                           MASTER_PORT=str(port), OMP_NUM_THREADS="1")
        ranks.append(subprocess.Popen([sys.executable, "-u", *sys.argv], env=environment))
    with open(PIDS, "w", encoding="ascii") as pids:
        pids.write(" ".join(str(rank.pid) for rank in ranks))
    sys.exit(max(abs(rank.wait()) for rank in ranks))


if "RANK" not in os.environ:
    launch()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

RANK = int(os.environ["RANK"])
LOCK = multiprocessing.Lock()


class Samples(Dataset):
    shard = None

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        if HOW in ("shard", "loaded", "busy"):
            if self.shard is None:
                self.shard = open(FILE + str(RANK), "rb", buffering=0)
            os.pread(self.shard.fileno(), 4096, index % 4096 * 4096)
        if HOW == "dataloader" and RANK == 1 and index == STEP * 8:
            LOCK.acquire()
            LOCK.acquire()  # a lock that was held when the worker was forked looks like this
        return torch.randn(64, generator=torch.Generator().manual_seed(index)), index % 10


def stray(step):
    if step != STEP:
        return
    if HOW == "filelock" and RANK == 1:
        with open(FILE, "a", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
    if HOW == "collect" and RANK == 1:
        heap = [[] for _ in range(2_000_000)]
        begin = time.monotonic()
        while time.monotonic() - begin < 600:
            gc.collect()
        del heap
    if HOW == "sleep" and RANK == 1:
        time.sleep(600)
    if HOW == "save" and RANK == 0:
        print(f"saving checkpoint to {FILE}.pt", flush=True)
        begin = time.monotonic()
        while time.monotonic() - begin < 45:
            with open(FILE + ".pt", "wb") as file:
                file.write(os.urandom(8 << 20))
                os.fsync(file.fileno())
        print(f"saved checkpoint {FILE}.pt", flush=True)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    workers = 1 if HOW in ("dataloader", "loaded", "busy") else 0
    begin = time.monotonic()
    for step, (x, y) in enumerate(DataLoader(Samples(), batch_size=8, num_workers=workers)):
        stray(step)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        # Steps of a second's fiftieth, all of it work.
        while time.monotonic() - begin < 0.02 * (step + 1) and HOW == "none":
            sum(range(1000))
        if HOW != "none":
            time.sleep(0.2 if HOW == "busy" else 0.02)
        if RANK == 0 and step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f} lr 0.05 step_time {(time.monotonic() - begin) / (step + 1):.3f}s",
                  flush=True)


main()
