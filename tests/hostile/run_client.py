# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The wrappers' side of the run socket, byte by byte: what an attacker writes instead of `rankscope run`.

It stands alone, so that it can be run as another user from a copy: see exporter/run/protocol.h and detectors/proto/recording.proto.
"""
import array
import os
import socket
import struct
import sys
import time


def varint(number):
    out = b""
    while True:
        byte, number = number & 0x7F, number >> 7
        out += bytes([byte | (0x80 if number else 0)])
        if not number:
            return out


def field(tag, value):
    if isinstance(value, int):
        return varint(tag << 3) + varint(value & (1 << 64) - 1)
    value = value.encode() if isinstance(value, str) else value
    return varint(tag << 3 | 2) + varint(len(value)) + value


def frame(message):
    return varint(len(message)) + message


def key(process):
    return field(1, process[0]) + field(2, process[1])


def own_key(pid="self"):
    stat = open(f"/proc/{pid}/stat").read()
    return int(stat.split()[0]), int(stat.rpartition(")")[2].split()[19])


BEGIN, END, CLOSED, LOST, DISOWNED = range(1, 6)


class Recording:
    """One segment, written by hand."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.path = os.path.join(folder, "bulk-00000001.rec")
        self.seq = 0
        self.write(frame(field(1, 1) + field(2, "x")))

    def write(self, data):
        with open(self.path, "ab") as file:
            file.write(data)

    def observation(self, kind, message):
        self.seq += 1
        return frame(field(1, time.monotonic_ns()) + field(2, self.seq) + field(kind, message))

    def tell(self, kind, message):
        self.write(self.observation(kind, message))

    def mark(self, job, what, root=(0, 0), status=None, uid=None):
        message = field(1, job) + field(2, what) + field(3, "train") + field(7, key(root))
        if status is not None:
            message += field(4, status) + field(9, 1)
        if uid is not None:
            message += field(12, uid)
        self.tell(13, message)

    def line_of(self, job, text, offset=0, stream=1):
        return self.observation(17, field(1, stream) + field(2, "stdout") + field(3, job) + field(5, offset) + field(6, text)
                                + field(8, 1))

    def line(self, job, text, offset=0, stream=1):
        self.write(self.line_of(job, text, offset, stream))

    def start(self, job, process, uid=0, cgroup=""):
        self.tell(14, field(1, key(process)) + field(3, uid) + field(7, cgroup) + field(9, 1) + field(12, job))

    def exit(self, process, status):
        self.tell(15, field(1, key(process)) + field(2, status) + field(3, 1))


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(path)
        self.socket.settimeout(60)

    def send(self, data, fds=()):
        self.socket.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])

    def hello(self, job, folder, root=(0, 0), log=None, life=None, streams=(), version=1):
        """`folder`, `log`: paths, or descriptors."""
        fds = [folder if isinstance(folder, int) else os.open(folder, os.O_RDONLY | os.O_DIRECTORY)]
        if log is None:
            log = os.path.join(os.getcwd(), f"log-{os.getpid()}")
        fds.append(log if isinstance(log, int) else os.open(log, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600))
        if life is None:
            life, self.life = os.pipe()
        fds += [life, *streams]
        bits = (1 << len(streams)) - 1
        self.send(struct.pack("=B3xIIiq128s", ord("H"), version, bits, root[0], root[1], job.encode()), fds)

    def wake(self):
        self.send(b"W")

    def end(self):
        self.send(b"E")

    def answer(self):
        """The first byte that comes, or b"" when the daemon has closed the connection."""
        try:
            return self.socket.recv(1024)[:1]
        except ConnectionResetError:
            return b""

    def refused(self):
        return self.answer() == b""


def done(*words):
    """Tells the test that all this has happened; then it stays until it is killed."""
    print(*words, flush=True)
    sys.stdin.read()
