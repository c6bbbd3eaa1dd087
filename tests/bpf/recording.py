# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What a recording holds of processes, read from its bytes: protobuf's wire format and the tags of recording.proto."""
from collections import namedtuple
from pathlib import Path

# Tags of recording.proto's Observation.
START, EXIT, SIGNAL, KERNEL, EVENT = 14, 15, 16, 19, 21

# detectors/model/event_types.inc
CONNECT, LISTEN, RESOLVE = 1, 2, 3
FILE_ERROR, FILE_MISSING, CHECKPOINT_WRITTEN, CHECKPOINT_READ = 10, 11, 12, 13

Exit = namedtuple("Exit", "pid wait_status known core")
Signal = namedtuple("Signal", "pid signo code sender comm uid cgroup")
Start = namedtuple("Start", "pid parent uid comm argv environment cgroup complete")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Field number -> its values, in order."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        found.setdefault(key >> 3, []).append(value)
    return found


def frames(data):
    at = 0
    while at < len(data):
        try:
            length, begin = varint(data, at)
        except IndexError:
            return
        if begin + length > len(data):
            return  # being written
        yield data[begin:begin + length]
        at = begin + length


def number(message, tag):
    value = message.get(tag, [0])[0]
    return value - (1 << 64) if value >> 63 else value


def text(message, tag):
    return message.get(tag, [b""])[0].decode()


def pid_of(message, tag):
    return number(fields(message[tag][0]), 1) if tag in message else 0


def observations(folder, tag):
    # The lane of facts; the bulk lane holds them again, in their place among the rest.
    for path in sorted(Path(folder).glob("facts*.rec")):
        for number_of_frame, frame in enumerate(frames(path.read_bytes())):
            if number_of_frame == 0:
                continue  # the header
            observation = fields(frame)
            if tag in observation:
                yield fields(observation[tag][0])


def exits(folder):
    return [Exit(pid_of(m, 1), number(m, 2), bool(number(m, 3)), bool(number(m, 4))) for m in observations(folder, EXIT)]


def signals(folder):
    return [Signal(pid_of(m, 1), number(m, 2), number(m, 3), pid_of(m, 4), text(m, 5), number(m, 6), text(m, 7))
            for m in observations(folder, SIGNAL)]


def starts(folder):
    found = []
    for m in observations(folder, START):
        pairs = [fields(pair) for pair in m.get(6, [])]
        found.append(Start(pid_of(m, 1), pid_of(m, 2), number(m, 3), text(m, 4), [a.decode() for a in m.get(5, [])],
                           {text(pair, 1): text(pair, 2) for pair in pairs}, text(m, 7), bool(number(m, 9))))
    return found


def events(folder, kind):
    """Of the events of a kind: what they say by name, texts and numbers."""
    found = []
    for m in observations(folder, EVENT):
        if number(m, 3) != kind:
            continue
        texts = {text(pair, 1): text(pair, 2) for pair in map(fields, m.get(5, []))}
        numbers = {text(pair, 1): number(pair, 2) for pair in map(fields, m.get(6, []))}
        found.append((texts, numbers))
    return found
