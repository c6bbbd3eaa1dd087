#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A real file system, of FUSE, whose files are slow or fail as those of a bad server do.

    odd_files.py MOUNTPOINT      until it is unmounted; prints "ready" once it is mounted

shard-DELAY   64 MiB of zeros, each read of which takes DELAY milliseconds; nothing of it is cached
ERRNO         a directory, in which every write fails with this error: EIO, EDQUOT, ESTALE
"""
import errno
import re
import stat
import sys
import time

from fusepy import FUSE, FuseOSError, Operations

SHARD_BYTES = 64 << 20


class OddFiles(Operations):
    def __init__(self):
        self.written = {}

    def init(self, path):
        print("ready", flush=True)

    def getattr(self, path, fh=None):
        times = {name: time.time() for name in ("st_atime", "st_mtime", "st_ctime")}
        if path == "/" or hasattr(errno, path[1:]):
            return dict(times, st_mode=stat.S_IFDIR | 0o755, st_nlink=2)
        if re.fullmatch(r"/shard-\d+", path):
            return dict(times, st_mode=stat.S_IFREG | 0o644, st_nlink=1, st_size=SHARD_BYTES)
        if path in self.written:
            return dict(times, st_mode=stat.S_IFREG | 0o644, st_nlink=1, st_size=0)
        raise FuseOSError(errno.ENOENT)

    def create(self, path, mode, fi=None):
        self.written[path] = True
        return 0

    def open(self, path, flags):
        return 0

    def truncate(self, path, length, fh=None):
        pass

    def write(self, path, data, offset, fh):
        raise FuseOSError(getattr(errno, path.split("/")[1]))

    def read(self, path, size, offset, fh):
        time.sleep(int(path.rsplit("-", 1)[1]) / 1000)
        return bytes(min(size, SHARD_BYTES - offset))


if __name__ == "__main__":
    FUSE(OddFiles(), sys.argv[1], foreground=True, direct_io=True, allow_other=True)
