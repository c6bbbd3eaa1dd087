# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A FUSE file system in the kernel's own protocol (include/uapi/linux/fuse.h, 7.31), without a library: one folder, in which any
name that is looked up is a file that all may write. It answers until it is told to hang; from then on it takes each request and
answers none, so that whoever asks waits for as long as it likes, and no signal ends that.

    hanging_file_system.py FOLDER UID HANGS LOG     mounts on FOLDER, writes LOG.ready when it is there, hangs once HANGS exists,
                                                    and writes each request that it leaves unanswered into LOG
"""
import ctypes
import errno
import os
import struct
import sys

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FLUSH, INIT, OPENDIR, CREATE, INTERRUPT, BATCH_FORGET = \
    1, 2, 3, 4, 14, 15, 16, 17, 18, 25, 26, 27, 35, 36, 42
ROOT, FILE = 1, 2


def attributes(node, uid):
    mode = 0o040777 if node == ROOT else 0o100666
    return struct.pack("<QQQQQQIIIIIIIIII", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, uid, uid, 0, 4096, 0)


def answer(operation, node, body, uid):
    entry = struct.pack("<QQQQII", FILE, 0, 0, 0, 0, 0) + attributes(FILE, uid)
    opened = struct.pack("<QII", 7, 0, 0)
    if operation == INIT:
        return struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 16, 12, 65536, 1, 16, 0, *[0] * 8)
    if operation == LOOKUP:
        return entry
    if operation in (GETATTR, SETATTR):
        return struct.pack("<QII", 0, 0, 0) + attributes(node, uid)
    if operation in (OPEN, OPENDIR):
        return opened
    if operation == CREATE:
        return entry + opened
    if operation == WRITE:
        return struct.pack("<II", struct.unpack_from("<QQI", body)[2], 0)
    if operation == READ:
        return b"of fuse\n"
    if operation == STATFS:
        return struct.pack("<QQQQQIIII6I", 1, 1, 1, 1, 1, 4096, 255, 4096, 0, *[0] * 6)
    return b"" if operation in (RELEASE, FLUSH) else None


def main(folder, uid, hangs, log):
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id={uid},group_id={uid},allow_other"
    if libc.mount(b"attack", folder.encode(), b"fuse", 0, options.encode()) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    ready = False
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError:
            return  # taken away
        _, operation, unique, node, _, _, asker, _ = struct.unpack_from("<IIQQIIII", request)
        if operation in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        if operation != INIT and os.path.exists(hangs):
            with open(log, "a") as unanswered:
                unanswered.write(f"{operation} {asker}\n")
            continue
        body = answer(operation, node, request[40:], int(uid))
        error = 0 if body is not None else -errno.ENOSYS
        os.write(device, struct.pack("<IiQ", 16 + len(body or b""), error, unique) + (body or b""))
        if not ready:
            ready = True
            open(log + ".ready", "w").close()


if __name__ == "__main__":
    main(*sys.argv[1:])
