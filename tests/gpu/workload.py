# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Training on one real GPU as small as one that is still real, gone wrong as it is told: workload.py HOW"""
import sys
import time

import torch
from torch import nn

SIZE = 4096
BEYOND = "extern \"C\" __global__ void beyond(float* p) { p[1ll << 38] = 1; }"


def spin_kernels():
    """One block for each of a few multiprocessors that only waits: what a collective's kernel does on the card."""
    streams = [torch.cuda.Stream() for _ in range(16)]
    while True:
        for stream in streams:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200_000_000)  # clock cycles, in a kernel of one block
        torch.cuda.synchronize()


def main():
    how = sys.argv[1]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(SIZE, SIZE), nn.GELU(), nn.Linear(SIZE, SIZE), nn.GELU(), nn.Linear(SIZE, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(2048, SIZE, device="cuda")
    target = x[:, :1].clone()
    kept = []
    for step in range(1, 1_000_000):
        begin = time.monotonic()
        if how == "starved":
            time.sleep(0.5)  # what it waits for is not there yet
        for _ in range(1 if how == "starved" else 20):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), target)
            loss.backward()
            optimizer.step()
        print(f"step {step} loss {loss.item():.4f} lr 0.01 step_time {time.monotonic() - begin:.3f}s", flush=True)
        if how == "healthy" and step == 300:
            print("training finished", flush=True)
            return
        if how == "leak" and step > 60:
            kept.append(torch.empty(torch.cuda.get_device_properties(0).total_memory // 60, dtype=torch.uint8, device="cuda"))
            time.sleep(0.7)
        if how == "oversize" and step == 20:
            torch.empty(2 * torch.cuda.get_device_properties(0).total_memory, dtype=torch.uint8, device="cuda")
        if how == "fragmentation" and step == 20:
            # Every second block is given back: half of the card is free, and no two neighbours of it.
            block = 24 << 20
            blocks = []
            while torch.cuda.mem_get_info()[0] > 4 * block:
                blocks.append(torch.empty(block, dtype=torch.uint8, device="cuda"))
            del blocks[::2]
            torch.empty(len(blocks) * block // 2, dtype=torch.uint8, device="cuda")
        if how == "idle" and step == 60:
            while True:
                time.sleep(3600)
        if how == "spin" and step == 60:
            spin_kernels()
        if how == "illegal" and step == 20:
            torch.cuda._compile_kernel(BEYOND, "beyond")(grid=(1, 1, 1), block=(1, 1, 1), args=[x])
        if how == "assertion" and step == 20:
            nn.functional.embedding(torch.tensor([SIZE], device="cuda"), x[:, :8])  # the row after the last
        if how == "save_storm" and step % 2 == 0:
            print(f"saving checkpoint to checkpoint-{step}.pt", flush=True)
            torch.save({"model": model.state_dict(), "kept": torch.zeros(1 << 28)}, f"checkpoint-{step % 4}.pt")
            print("checkpoint saved", flush=True)


main()
