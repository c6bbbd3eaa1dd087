# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A disk that is slow or hangs: `slow_disk.py BACKING MOUNT CONTROL` passes all on to BACKING. What changes or syncs the disk takes
as many seconds as the file CONTROL says, and waits for as long as the file CONTROL.hang is there."""
import errno
import os
import sys
import time

import fusepy


class SlowDisk(fusepy.Operations):
    def __init__(self, backing, control):
        self.backing, self.control = backing, control

    def real(self, path):
        return self.backing + path

    def wait(self):
        try:
            with open(self.control) as file:
                time.sleep(float(file.read() or 0))
        except (OSError, ValueError):
            pass
        while os.path.exists(self.control + ".hang"):
            time.sleep(0.02)

    def access(self, path, mode):
        if not os.access(self.real(path), mode):
            raise fusepy.FuseOSError(errno.EACCES)

    def getattr(self, path, fh=None):
        info = os.lstat(self.real(path))
        return {key: getattr(info, key) for key in ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size",
                                                    "st_uid", "st_blocks")}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self.real(path))]

    def statfs(self, path):
        info = os.statvfs(self.real(path))
        return {key: getattr(info, key) for key in ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files",
                                                    "f_flag", "f_frsize", "f_namemax")}

    def open(self, path, flags):
        return os.open(self.real(path), flags)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def release(self, path, fh):
        os.close(fh)

    def create(self, path, mode, fi=None):
        self.wait()
        return os.open(self.real(path), os.O_RDWR | os.O_CREAT, mode)

    def write(self, path, data, offset, fh):
        self.wait()
        return os.pwrite(fh, data, offset)

    def truncate(self, path, length, fh=None):
        self.wait()
        os.truncate(self.real(path), length)

    def fsync(self, path, datasync, fh):
        self.wait()
        os.fsync(fh)

    def fsyncdir(self, path, datasync, fh):
        self.wait()

    def mkdir(self, path, mode):
        self.wait()
        os.mkdir(self.real(path), mode)

    def rmdir(self, path):
        self.wait()
        os.rmdir(self.real(path))

    def unlink(self, path):
        self.wait()
        os.unlink(self.real(path))

    def rename(self, old, new):
        self.wait()
        os.rename(self.real(old), self.real(new))

    def chmod(self, path, mode):
        os.chmod(self.real(path), mode)

    def chown(self, path, uid, gid):
        os.chown(self.real(path), uid, gid)

    def utimens(self, path, times=None):
        os.utime(self.real(path), times)


if __name__ == "__main__":
    fusepy.FUSE(SlowDisk(sys.argv[1], sys.argv[3]), sys.argv[2], foreground=True, big_writes=True)
