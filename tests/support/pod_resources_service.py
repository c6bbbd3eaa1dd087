# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the kubelet's pod-resources service: on a Unix socket it answers each call of gRPC with the pods that it was told.

HTTP/2 as far as one client with one call on a connection needs it; compared once with grpc 1.51, which curl reads the same.
"""
import os
import socket
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def frame(kind, flags, stream, content=b""):
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content


def header(name, value):
    """As HPACK writes one that nobody remembers."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def field(number, content):
    """Of a protobuf message; shorter than 2^14 bytes."""
    content = content.encode() if isinstance(content, str) else content
    size = len(content)
    return bytes([number << 3 | 2]) + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + content


class PodResources:
    def __init__(self, path):
        self.path, self.body, self.status = path, b"", b"0"
        self.requests = []  # bodies
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def say(self, *pods):
        """pods: (namespace, name, container, resource, [device ids])"""
        self.body = b"".join(field(1, field(1, name) + field(2, space) + field(3, field(1, container) + field(
            2, field(1, resource) + b"".join(field(2, device) for device in devices)))) for space, name, container, resource, devices in pods)

    def close(self):
        if self.server:
            self.server.shutdown(socket.SHUT_RDWR)
            self.server.close()
            os.unlink(self.path)
        self.server = None

    def serve(self):
        server = self.server
        while True:
            try:
                client = server.accept()[0]
            except OSError:
                return
            with client, client.makefile("rb") as coming:
                try:
                    self.answer(client, coming)
                except OSError:
                    pass

    def answer(self, client, coming):
        if coming.read(len(PREFACE)) != PREFACE:
            return
        client.sendall(frame(SETTINGS, 0, 0))
        body = b""
        while head := coming.read(9):
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream = int.from_bytes(head[5:], "big")
            content = coming.read(size)
            if kind == SETTINGS and not flags & ACK:
                client.sendall(frame(SETTINGS, ACK, 0))
            body += content if kind == DATA else b""
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                self.requests.append(body)
                message = b"\0" + struct.pack(">I", len(self.body)) + self.body
                client.sendall(frame(HEADERS, END_HEADERS, stream, b"\x88" + header(b"content-type", b"application/grpc")) +
                               frame(DATA, 0, stream, message) +
                               frame(HEADERS, END_HEADERS | END_STREAM, stream, header(b"grpc-status", self.status)))
