#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A plain PyTorch training script, as small as one that is still real: a classifier trained with
DistributedDataParallel over gloo on a JSON Lines file. Started by torchrun_shim.py, driven by
tests/replay/real_runs.py, whose table says which arguments make which failure; most failures are
real inputs (a missing file, a broken line, a huge learning rate), the rest is --fail-*.
"""
import argparse
import ctypes
import datetime
import importlib
import json
import os
import signal
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="train.jsonl")
    parser.add_argument("--vocab", help="optional JSON file of class names")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--warmup", type=int, default=0, help="steps of a linear warm-up of the learning rate")
    parser.add_argument("--clip", type=float, default=0.0, help="gradient norm, 0 = no clipping")
    parser.add_argument("--optimizer", default="sgd")
    parser.add_argument("--logger", help="module of an experiment tracker")
    parser.add_argument("--log-every", type=int, default=5, help="0 = print nothing")
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--step-sleep", type=float, default=0.0, help="seconds, to make a step slower")
    parser.add_argument("--store", help="HOST:PORT of the store, when it is not the launcher's")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds, of the process group")
    parser.add_argument("--fail-at", type=int, default=-1, help="step")
    parser.add_argument("--fail-rank", type=int, default=1)
    parser.add_argument("--fail-how", choices=["raise", "kill", "segv"], default="raise")
    return parser.parse_args()


class JsonLines(Dataset):
    def __init__(self, path, classes):
        with open(path, encoding="utf-8") as lines:
            self.lines = lines.readlines()
        self.classes = classes

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        record = json.loads(self.lines[index])
        label = record["y"]
        if not 0 <= label < self.classes:
            raise ValueError(f"label {label} of sample {index} is not one of {self.classes} classes")
        return torch.tensor(record["x"], dtype=torch.float32), label


def build_optimizer(name, parameters, lr):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=lr, momentum=0.9)
    if name == "adam":
        return torch.optim.Adam(parameters, lr=lr)
    raise ValueError(f"unknown optimizer '{name}', expected one of: sgd, adam")


def fail(how, step):
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "segv":
        ctypes.string_at(0)  # a null pointer, as a broken extension module would read it
    raise RuntimeError(f"batch of step {step} has an empty mask")


def init_process_group(args):
    if args.store:
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = args.store.rsplit(":", 1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=args.timeout))


def train(args):
    rank = int(os.environ["RANK"])
    classes = 8
    if args.vocab:
        with open(args.vocab, encoding="utf-8") as file:
            classes = len(json.load(file))
    if args.logger:
        importlib.import_module(args.logger)
    if rank == 0 and args.log_every:
        print(f"initializing process group: backend=gloo world_size={os.environ['WORLD_SIZE']}")
    init_process_group(args)

    torch.manual_seed(1234)
    dataset = JsonLines(args.data, classes)
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler, drop_last=True)
    model = nn.Sequential(nn.Linear(16, args.hidden), nn.ReLU(), nn.Linear(args.hidden, classes))
    model = DistributedDataParallel(model)
    optimizer = build_optimizer(args.optimizer, model.parameters(), args.lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: min(1.0, (done + 1) / args.warmup) if args.warmup else 1.0)
    criterion = nn.CrossEntropyLoss()
    parameters = sum(p.numel() for p in model.parameters())
    if rank == 0 and args.log_every:
        print(f"model: {parameters} parameters, {len(dataset)} samples, {args.steps} steps")

    step = 0
    epoch = 0
    while step < args.steps:
        sampler.set_epoch(epoch)
        for features, labels in loader:
            begin = time.monotonic()
            step += 1
            if step == args.fail_at and rank == args.fail_rank:
                fail(args.fail_how, step)
            optimizer.zero_grad()
            loss = criterion(model(features), labels)
            loss.backward()
            if args.clip:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            lr = optimizer.param_groups[0]["lr"]
            optimizer.step()
            schedule.step()
            time.sleep(args.step_sleep)
            if rank == 0 and args.log_every and (step % args.log_every == 0 or step == args.steps):
                seconds = time.monotonic() - begin
                print(f"step {step} loss {loss.item():.4f} lr {lr:g} step_time {seconds:.3f}s")
            if rank == 0 and args.save_every and step % args.save_every == 0:
                torch.save({"step": step, "model": model.state_dict()}, "checkpoint.pt")
                if args.log_every:
                    print(f"saved checkpoint to checkpoint.pt at step {step}")
            if step >= args.steps:
                break
        epoch += 1
    if rank == 0 and args.log_every:
        print("training finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(parse_arguments())
