# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What ranks do with files, seen by programs in the real kernel: real PyTorch, real file systems, no wrapper, no text.

Full file systems are tmpfs of a few MiB in a mount namespace of the rank's own.
"""
import os
import re
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import recording  # noqa: E402
from network_test import NetworkTest, has_torch  # noqa: E402

# Trains a little, then saves, as they are written. It prints nothing that tells of it.
SAVE = """
import os, sys, time, torch
model = torch.nn.Linear(512, int(os.environ.get("ROWS", "512")))
torch.save(model.state_dict(), os.environ["CHECKPOINT"])
"""
# Goes on from a checkpoint, with other weights beside it.
RESUME = """
import os, sys, torch
path = os.environ["CHECKPOINT"]
if os.path.isfile(path):
    torch.load(path)
os.path.isfile(os.environ["OTHER"])
try:
    open(os.environ["OTHER"], "rb")
except OSError:
    pass
import json, decimal, xml.dom  # looked for in many places
sys.exit(2)
"""
# A log that cannot be written is outlived; what ends the run is something else.
OUTLIVES = """
import os, sys, time
for _ in range(20):
    try:
        with open("/mnt/full/train.log", "a") as log:
            log.write("x" * 65536)
    except OSError:
        pass
time.sleep(14)
sys.exit(6)
"""
# Workers hand batches over through shared memory.
SHARED = """
import torch
from torch.utils.data import DataLoader, Dataset
class Images(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return torch.zeros(3, 256, 256)
if __name__ == "__main__":
    for batch in DataLoader(Images(), batch_size=16, num_workers=2):
        pass
"""
TINY = "mount -t tmpfs -o size={size} tmpfs {at}"


class StorageTest(NetworkTest):
    def alone(self, program, mounts="", **variables):
        """A rank 0 of 1 with mounts of its own."""
        namespace = "mkdir -p /mnt/full; " + mounts if mounts else ""
        return self.rank_of_two(program, RANK="0", WORLD_SIZE="1", mounts=namespace, **variables)

    def storage(self, *flags):
        if not has_torch():
            self.skipTest("needs python3-torch")
        daemon = self.daemon(*flags)
        self.assertTrue(self.up(daemon, "io"), daemon.text())
        return daemon

    def told(self, daemon, verdict, kind):
        return recording.events_of(self.recorded(daemon, verdict), kind)


class Full(StorageTest):
    def test_what_ended_the_run_and_what_it_outlived(self):
        daemon = self.storage()
        full = TINY.format(size="300k", at="/mnt/full")
        cases = {
            "checkpoint": self.alone(SAVE, full, CHECKPOINT="/mnt/full/model.pt", ROWS="4096"),
            "outlived": self.alone(OUTLIVES, full),
            "shm": self.alone(SHARED, TINY.format(size="1m", at="/dev/shm")),
        }
        for _, process in cases.values():
            process.wait(100)
        with self.subTest("checkpoint on a full tmpfs"):
            job, process = cases["checkpoint"]
            verdict = daemon.verdict(job)
            self.assertNotEqual(process.returncode, 0)
            self.assertEqual((verdict["code"], verdict["sub"]), ("X21", "full"), self.said(job))
            self.shown(verdict, "model.pt (tmpfs) failed with ENOSPC")
            self.assertEqual(verdict["ranks"], [0])
            print(f"died with {process.returncode}:", verdict["shows"][0]["text"], file=sys.stderr)
        with self.subTest("a log that cannot be written"):
            job, process = cases["outlived"]
            verdict = daemon.verdict(job)
            self.assertEqual(process.returncode, 6)
            self.assertNotEqual(verdict["code"], "X21")
            failures = self.told(daemon, verdict, recording.FILE_ERROR)
            self.assertTrue(any(texts["name"] == "train.log" for texts, _ in failures), failures)
        with self.subTest("shared memory full"):
            job, process = cases["shm"]
            verdict = daemon.verdict(job)
            self.assertEqual((verdict["code"], verdict["sub"], verdict["signal"]), ("A2", "shm", "SIGBUS"), self.said(job))
            self.shown(verdict, "got a bus error")


class Failing(StorageTest):
    """A server that refuses what is written: a real file system, whose errors reach torch.save as any other's do."""

    def test_each_error_is_named(self):
        daemon = self.storage()
        at = self.odd_files()
        cases = {error: self.alone(SAVE, CHECKPOINT=str(at / error / "model.pt")) for error in ("EIO", "EDQUOT", "ESTALE")}
        for _, process in cases.values():
            process.wait(100)
        for error, sub in (("EIO", "io_error"), ("EDQUOT", "full"), ("ESTALE", "hang")):
            with self.subTest(error):
                job, process = cases[error]
                verdict = daemon.verdict(job)
                self.assertNotEqual(process.returncode, 0)
                self.assertEqual((verdict["code"], verdict["sub"]), ("X21", sub), self.said(job))
                self.shown(verdict, f"model.pt (fuse) failed with {error}")
                self.assertEqual(verdict["ranks"], [0])


class Checkpoints(StorageTest):
    def test_bytes_agree_with_the_files_and_with_strace(self):
        daemon = self.storage()
        path = Path(self.folder) / "last.pt"
        job, process = self.alone(SAVE, CHECKPOINT=str(path))
        self.assertEqual(process.wait(60), 0)
        verdict = daemon.verdict(job)
        written = self.told(daemon, verdict, recording.CHECKPOINT_WRITTEN)
        self.assertEqual([(texts["name"], numbers["bytes"], numbers["complete"]) for texts, numbers in written],
                         [("last.pt", path.stat().st_size, 1)])
        other = str(Path(self.folder) / "other.pt")
        traced = shutil.which("strace") is not None
        job, process = self.rank_of_two(RESUME, RANK="0", WORLD_SIZE="1", CHECKPOINT=str(path), OTHER=other, traced=traced,
                                        calls="openat,read,close,newfstatat")
        self.assertEqual(process.wait(60), 2)
        verdict = daemon.verdict(job)
        read = self.told(daemon, verdict, recording.CHECKPOINT_READ)
        self.assertTrue(read, "a checkpoint was read")
        size = path.stat().st_size
        for texts, numbers in read:
            self.assertEqual((texts["name"], numbers["size"]), ("last.pt", size))
        self.assertGreaterEqual(max(numbers["bytes"] for _, numbers in read), size // 2)
        missing = self.told(daemon, verdict, recording.FILE_MISSING)
        self.assertEqual({texts["name"] for texts, _ in missing}, {"other.pt"}, "nothing that an import looked for")
        if not traced:
            self.skipTest("needs strace for the second opinion")
        trace = (Path(self.folder) / "trace").read_text()
        looked = len(re.findall(r'(?:newfstatat|openat)\(.*other\.pt".*ENOENT', trace))
        self.assertEqual(sum(numbers["times"] for _, numbers in missing), looked)
        self.assertGreater(trace.count("ENOENT"), looked + 20, "an import looks for much")


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
