#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A small training loop in which something goes wrong for real: mishaps.py NAME [--at STEP] [--steps N] [--form FORM].

No message is imitated: each mishap is the misuse itself, and Python, PyTorch, the C library or the kernel say what they
say. Without --at it happens before the first step. FORM is how the loop prints: keys, iter, epoch, json or none.
"""
import argparse
import configparser
import csv
import ctypes
import importlib
import json
import mmap
import os
import resource
import signal
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


def missing_module():
    importlib.import_module("fused_layer_norm_cuda")


def missing_name():
    exec("from torch.optim import ScheduleFreeAdamW")  # a name of a newer release


def missing_shared_library():
    ctypes.CDLL("libcudart.so.12")


def no_cuda():
    torch.zeros(8, device="cuda")


def missing_key_in_config():
    config = {"optimizer": {"name": "adamw", "lr": 3e-4}}
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=config["optimizer"]["learning_rate"])


def text_for_number_in_config():
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr="0.1")


def unknown_argument_of_constructor():
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=1e-3, fused_eps=1e-8)


def negative_learning_rate():
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=-0.1)


def broken_config_file():
    with open("train.ini", "w", encoding="utf-8") as file:
        file.write("lr = 0.1\nbatch_size = 32\n")
    configparser.ConfigParser().read("train.ini")


def unknown_command_line_argument():
    argparse.ArgumentParser(prog="pretrain.py").parse_args(["--micro-batch", "4"])


def missing_file():
    with open("data/shard_00017.bin", "rb") as file:
        file.read()


def missing_weights():
    torch.load("weights/encoder_base.pt")


def no_permission():
    with open("secret_tokens.bin", "wb") as file:
        file.write(b"x")
    os.chmod("secret_tokens.bin", 0)
    os.setresuid(65534, 65534, 65534)
    with open("secret_tokens.bin", "rb") as file:
        file.read()


def empty_dataset():
    DataLoader(TensorDataset(torch.zeros(0, 4)), batch_size=4, shuffle=True)


def text_in_a_column_of_numbers():
    with open("table.csv", "w", encoding="utf-8") as file:
        file.write("x,y\n0.1,1\nn/a,0\n")
    with open("table.csv", encoding="utf-8") as file:
        [[float(cell) for cell in row.values()] for row in csv.DictReader(file)]


def broken_encoding():
    with open("corpus.txt", "wb") as file:
        file.write(b"caf\xe9 au lait\n" * 9)
    with open("corpus.txt", encoding="utf-8") as file:
        file.read()


def half_a_json_line():
    json.loads('{"prompt": "Name three rivers", "completion": "Elbe, Od')


def more_than_the_machine_has():
    torch.empty(1 << 46, dtype=torch.float32)


def memory_limit():
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    held = []
    while True:
        held.append(bytearray(256 << 20))


def missing_key():
    sample = {"tokens": [1, 2], "mask": [1, 1]}
    return sample["labels"]


def index_out_of_range():
    return list(range(1000))[1024]


def label_out_of_range():
    nn.CrossEntropyLoss()(torch.zeros(2, 8), torch.tensor([3, 8]))


def token_out_of_vocabulary():
    nn.Embedding(100, 8)(torch.tensor([[5, 100]]))


def division_by_zero():
    tokens = []
    return 1.0 / len(tokens)


def shape_mismatch():
    nn.Linear(64, 8)(torch.zeros(4, 63))


def stack_of_unequal():
    torch.stack([torch.zeros(3, 16), torch.zeros(3, 17)])


def dtype_mismatch():
    nn.Linear(8, 8)(torch.zeros(2, 8, dtype=torch.float64))


def backward_twice():
    loss = (torch.ones(2, requires_grad=True) ** 2).sum()
    loss.backward()
    loss.backward()


def no_gradient():
    torch.ones(2).sum().backward()


def failed_assertion():
    attention = torch.full((4,), 0.3)
    assert float(attention.sum()) <= 1.0, "attention weights do not sum to one"


def not_implemented():
    class Head(nn.Module):
        pass

    Head()(torch.zeros(1))


def endless_recursion():
    def fold(tree):
        return fold([tree])

    fold([])


def unhashable():
    return {torch.Size([2]): 1}[[2]]


class Failing(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == 37:
            raise OSError(f"image {index} is truncated (12 bytes not processed)")
        return torch.zeros(3)


def failing_worker():
    for _ in DataLoader(Failing(), batch_size=4, num_workers=2):
        pass


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def segmentation_fault():
    ctypes.string_at(0)


def aborted():
    ctypes.CDLL(None).abort()


def bus_error():
    with open("shard.bin", "wb+") as file:
        file.truncate(1 << 20)
        view = mmap.mmap(file.fileno(), 1 << 20)
        file.truncate(0)  # somebody rewrites the file below us
        return view[4096]


def heap_corruption():
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    block = ctypes.c_void_p(libc.malloc(64))
    libc.free(block)
    libc.free(block)


def floating_point_exception():
    os.kill(os.getpid(), signal.SIGFPE)


def terminated():
    os.kill(os.getpid(), signal.SIGTERM)


def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)


def disk_full():
    with open("/dev/full", "wb") as file:
        file.write(b"x" * (1 << 20))


def disk_full_at_save():
    torch.save({"w": torch.zeros(1 << 16)}, "/dev/full")


def quiet_exit():
    sys.exit(3)


def said_and_left():
    print("error: tokenizer directory is empty, giving up", file=sys.stderr)
    sys.exit(1)


def caught():
    try:
        torch.stack([torch.zeros(2), torch.zeros(3)])
    except RuntimeError:
        import traceback
        traceback.print_exc()
        print("skipping this batch")


def nothing():
    pass


def show(form, step, steps, loss, lr):
    if form == "keys":
        print(f"step {step} loss {loss:.4f} lr {lr:.2e}")
    elif form == "iter":
        print(f"iter {step}: loss {loss:.4f}, time 12.3ms")
    elif form == "epoch":
        print(f"Epoch {step // 20 + 1}/{steps // 20 + 1}, Step {step}, Loss: {loss:.4f}")
    elif form == "json":
        print(json.dumps({"step": step, "loss": round(loss, 4), "learning_rate": lr}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mishap")
    parser.add_argument("--at", type=int, default=0)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--form", default="keys")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--grow", type=float, default=1.0, help="of the learning rate, each step")
    args = parser.parse_args()
    mishap = globals()[args.mishap]
    torch.manual_seed(11)
    if args.at == 0:
        mishap()
    weights = torch.randn(24, 5)
    model = nn.Sequential(nn.Linear(24, 48), nn.Tanh(), nn.Linear(48, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.8)
    for step in range(1, args.steps + 1):
        inputs = torch.randn(32, 24)
        loss = nn.functional.cross_entropy(model(inputs), (inputs @ weights).argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= args.grow
        if step % args.every == 0:
            show(args.form, step, args.steps, loss.item(), optimizer.param_groups[0]["lr"])
        if step == args.at:
            mishap()
    if args.form != "none":
        print("training complete")


if __name__ == "__main__":
    main()
