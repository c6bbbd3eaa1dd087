# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A file system in user space that stops answering: LOOKUP and OPEN hang for as long as this process lives.

Its argument is the descriptor of /dev/fuse that the mount was made with. linux/fuse.h: headers of 40 and 16 bytes.
"""
import os
import struct
import sys
import time

LOOKUP, GETATTR, OPEN, STATFS, INIT, OPENDIR, READDIR, ACCESS, READDIRPLUS = 1, 3, 14, 17, 26, 27, 28, 34, 44
FORGET, INTERRUPT, BATCH_FORGET = 2, 36, 42
NO_SUCH_CALL = 38


def attributes():
    now = int(time.time())
    return struct.pack("=QQQQQQIIIIIIIIII", 1, 0, 0, now, now, now, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)


def serve(fuse):
    while True:
        request = os.read(fuse, 1 << 20)
        error = 0
        _, opcode, unique = struct.unpack_from("=IIQ", request)
        if opcode == INIT:
            answer = struct.pack("=IIIIHHIIHHIIIHH6I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0, 0, 0, 0, 0, *[0] * 6)[:64]
        elif opcode == GETATTR:
            answer = struct.pack("=QII", 3600, 0, 0) + attributes()
        elif opcode == OPENDIR:
            answer = struct.pack("=QII", 0, 0, 0)
        elif opcode == STATFS:
            answer = bytes(80)
        elif opcode == ACCESS:
            answer = b""
        elif opcode in (LOOKUP, OPEN, READDIR, READDIRPLUS, FORGET, INTERRUPT, BATCH_FORGET):
            continue  # for good
        else:
            error, answer = -NO_SUCH_CALL, b""
        os.write(fuse, struct.pack("=IiQ", 16 + len(answer), error, unique) + answer)


serve(int(sys.argv[1]))
