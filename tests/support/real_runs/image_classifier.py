#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A training script in the shape of the PyTorch examples: meters, checkpoints per epoch, --resume that goes on without
one when there is none. One process, images made up so that there is something to learn. Driven by
tests/replay/real_runs.py; the failures are real ones (a checkpoint of another width, a file cut short, a full disk, a
data loader's worker killed from outside).
"""
import argparse
import os
import signal
import sys
import time

import torch
import torchvision.transforms as transforms
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

CLASSES = 6


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=640)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--width", type=int, default=16, help="channels of the first layer")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--print-freq", type=int, default=5)
    parser.add_argument("--save", default="checkpoint.pth.tar", help="empty = none")
    parser.add_argument("--resume", default="", help="checkpoint to go on from")
    parser.add_argument("--bar", action="store_true", help="a progress bar in place of lines")
    parser.add_argument("--kill-worker-at", type=int, default=-1, help="sample index")
    parser.add_argument("--crash-in-epoch", type=int, default=-1, help="unless resumed")
    return parser.parse_args()


class Tinted(Dataset):
    """Noise with a tint: the class is the tint."""

    def __init__(self, samples, seed, kill_at=-1):
        self.generator = torch.Generator().manual_seed(seed)
        self.tints = torch.rand(CLASSES, 3, 1, 1, generator=torch.Generator().manual_seed(3))
        self.samples = samples
        self.kill_at = kill_at
        self.normalize = transforms.Normalize([0.5] * 3, [0.25] * 3)

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        if index == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory is short
        generator = torch.Generator().manual_seed(index)
        label = index % CLASSES
        image = 0.7 * torch.rand(3, 16, 16, generator=generator) + 0.3 * self.tints[label]
        return self.normalize(image), label


class Meter:
    def __init__(self, name, form):
        self.name, self.form, self.value, self.sum, self.count = name, form, 0.0, 0.0, 0

    def update(self, value):
        self.value = value
        self.sum += value
        self.count += 1

    def __str__(self):
        return f"{self.name} {self.value:{self.form}} ({self.sum / self.count:{self.form}})"


def build(width):
    return nn.Sequential(nn.Conv2d(3, width, 3, stride=2), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, stride=2), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, CLASSES))


def resume(args, model, optimizer):
    """The epoch to begin with."""
    if not args.resume:
        return 0
    if not os.path.isfile(args.resume):
        print(f"=> no checkpoint found at '{args.resume}'")
        return 0
    print(f"=> loading checkpoint '{args.resume}'")
    checkpoint = torch.load(args.resume)
    model.load_state_dict(checkpoint["state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    print(f"=> loaded checkpoint '{args.resume}' (epoch {checkpoint['epoch']})")
    return checkpoint["epoch"]


def train_epoch(args, epoch, loader, model, optimizer, criterion):
    meters = [Meter("Time", "6.3f"), Meter("Data", "6.3f"), Meter("Loss", ".4e"), Meter("Acc@1", "6.2f")]
    bar = tqdm(loader, desc=f"Epoch {epoch}") if args.bar else loader
    end = time.monotonic()
    for index, (images, labels) in enumerate(bar):
        meters[1].update(time.monotonic() - end)
        if epoch == args.crash_in_epoch and not args.resume and index == len(loader) // 2:
            raise RuntimeError(f"sample list of shard {index} is inconsistent")
        output = model(images)
        loss = criterion(output, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meters[2].update(loss.item())
        meters[3].update(100.0 * (output.argmax(1) == labels).float().mean().item())
        meters[0].update(time.monotonic() - end)
        end = time.monotonic()
        if args.bar:
            bar.set_postfix(loss=f"{loss.item():.4f}")
        elif index % args.print_freq == 0:
            width = len(str(len(loader)))
            print("\t".join([f"Epoch: [{epoch}][{index:{width}d}/{len(loader)}]", *map(str, meters)]))


def main():
    args = parse_arguments()
    torch.manual_seed(5)
    torch.set_num_threads(1)
    model = build(args.width)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    first = resume(args, model, optimizer)
    # A batch in shared files outlives its worker; one in descriptors may be lost with it, which is another failure.
    torch.multiprocessing.set_sharing_strategy("file_system")
    loader = DataLoader(Tinted(args.samples, 1, args.kill_worker_at), args.batch_size, shuffle=True,
                        num_workers=args.workers, drop_last=True)
    for epoch in range(first, args.epochs):
        train_epoch(args, epoch, loader, model, optimizer, criterion)
        if args.save:
            torch.save({"epoch": epoch + 1, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}, args.save)
            print(f"=> saved checkpoint '{args.save}' (epoch {epoch + 1})", file=sys.stderr if args.bar else sys.stdout)


if __name__ == "__main__":
    main()
