# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A known number of calls into the real libraries: calls.py launches|collectives FOLDER

Warms up, writes FOLDER/ready, waits for FOLDER/go, calls, writes FOLDER/done with the seconds that it took, waits for FOLDER/end.
"""
import os
import sys
import time
from pathlib import Path

import torch

LAUNCHES, GRAPHS, COPIES, BLOCKS, COLLECTIVES = 20_000, 1_000, 200, 50, 300
MIB = 1 << 20


def wait(path):
    while not path.exists():
        if not path.parent.is_dir():
            sys.exit(9)  # the test is over
        time.sleep(0.01)


def launches():
    """One kernel each; as many graphs; copies from pageable memory; blocks that the allocator's cache cannot have."""
    graph, x = torch.cuda.CUDAGraph(), torch.zeros(1024, device="cuda")
    host = torch.zeros(MIB, dtype=torch.uint8)
    card = torch.zeros(MIB, dtype=torch.uint8, device="cuda")
    with torch.cuda.graph(graph):
        x += 1
    torch.cuda._sleep(10)
    card.copy_(host)
    torch.cuda.synchronize()

    def call():
        begin = time.monotonic()
        for i in range(LAUNCHES):
            torch.cuda._sleep(10)  # clock cycles, in a kernel of one block
            if i % 500 == 499:
                torch.cuda.synchronize()
        took = time.monotonic() - begin
        for _ in range(GRAPHS):
            graph.replay()
        for _ in range(COPIES):
            card.copy_(host)
        kept = [torch.empty(64 * MIB, dtype=torch.uint8, device="cuda") for _ in range(BLOCKS)]
        torch.cuda.synchronize()
        del kept
        return took
    return call


def collectives():
    import torch.distributed as dist
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    dist.init_process_group("nccl", rank=int(os.environ.get("RANK", "0")), world_size=int(os.environ.get("WORLD_SIZE", "1")))
    x = torch.ones(MIB, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()

    def call():
        begin = time.monotonic()
        for _ in range(COLLECTIVES):
            dist.all_reduce(x)
        torch.cuda.synchronize()
        return time.monotonic() - begin
    return call


def main():
    how, folder = sys.argv[1], Path(sys.argv[2])
    call = {"launches": launches, "collectives": collectives}[how]()
    (folder / "ready").touch()
    wait(folder / "go")
    took = call()
    (folder / "done.part").write_text(f"{took}\n")
    (folder / "done.part").rename(folder / "done")
    wait(folder / "end")


if __name__ == "__main__":
    main()
