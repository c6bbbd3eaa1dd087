# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What a recording holds of processes, read from its bytes: protobuf's wire format and the tags of recording.proto."""
import struct
from collections import namedtuple
from pathlib import Path

# Tags of recording.proto's Observation.
START, EXIT, SIGNAL, LINE, SAMPLES, KERNEL, EVENT = 14, 15, 16, 17, 18, 19, 21

# detectors/model/event_types.inc
CONNECT, LISTEN, RESOLVE = 1, 2, 3
FILE_ERROR, FILE_MISSING, CHECKPOINT_WRITTEN, CHECKPOINT_READ = 10, 11, 12, 13

Exit = namedtuple("Exit", "pid wait_status known core")
Signal = namedtuple("Signal", "pid signo code sender comm uid cgroup")
Line = namedtuple("Line", "stream name job writer offset text end redactions lost_before rank local_rank")
Start = namedtuple("Start", "pid parent uid comm argv environment cgroup complete")
Event = namedtuple("Event", "pid type text number")


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


def observations(folder, tag, lane="facts"):
    # The lane of facts; the bulk lane holds them again, in their place among the rest.
    for path in sorted(Path(folder).glob(f"{lane}*.rec")):
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


def lines(folder):
    return [Line(number(m, 1), text(m, 2), text(m, 3), pid_of(m, 4), number(m, 5), m.get(6, m.get(7, [b""]))[0], number(m, 8),
                 number(m, 10), number(m, 11), number(m, 12) - 1, number(m, 13) - 1)
            for m in observations(folder, LINE, "bulk")]


def streams(folder):
    """Name of each stream -> its bytes as they were written; where bytes were lost, as many zeros."""
    found = {}
    for line in lines(folder):
        said = found.setdefault(line.name, bytearray())
        said.extend(b"\0" * (line.offset - len(said)))
        said.extend(line.text + {1: b"\n", 2: b"\r"}.get(line.end, b""))
    return {name: bytes(said) for name, said in found.items()}


def samples(folder):
    """pid -> signal -> values in the order of their times, from the lane that holds everything."""
    found = {}
    for path in sorted(Path(folder).glob("bulk-*.rec")):
        for number_of_frame, frame in enumerate(frames(path.read_bytes())):
            observation = fields(frame) if number_of_frame else {}
            if SAMPLES not in observation:
                continue
            batch = fields(observation[SAMPLES][0])
            signals, values = packed(batch.get(10, []), varint), packed(batch.get(13, []), double)
            of_process = found.setdefault(pid_of(batch, 2), {})
            for signal, value in zip(signals, values):
                of_process.setdefault(signal, []).append(value)
    return found


def double(data, at):
    return struct.unpack_from("<d", data, at)[0], at + 8


def packed(values, take):
    """A repeated field, packed or not."""
    found = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            one, at = take(value, at)
            found.append(one)
    return found


def events(folder):
    return [Event(pid_of(m, 2), number(m, 3), {text(f, 1): text(f, 2) for f in map(fields, m.get(5, []))},
                  {text(f, 1): number(f, 2) for f in map(fields, m.get(6, []))}) for m in observations(folder, EVENT)]


def events_of(folder, kind):
    """Of the events of a kind: what they say by name, texts and numbers."""
    found = []
    for m in observations(folder, EVENT):
        if number(m, 3) != kind:
            continue
        texts = {text(pair, 1): text(pair, 2) for pair in map(fields, m.get(5, []))}
        numbers = {text(pair, 1): number(pair, 2) for pair in map(fields, m.get(6, []))}
        found.append((texts, numbers))
    return found
