# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A state directory with many kept verdicts, each of them a real one's under another job's id."""
from pathlib import Path

SEAL = b"\xba\x3f\x08"  # before it the checksum of exporter/daemon/kept_file.h; without one a file is an older build's
SEAL_BYTES = len(SEAL) + 8


def name(number):
    """Before those of whatever else runs on the machine."""
    return f"0-kept-{number:06}"


def fill(state, count, job):
    """Multiplies the job's verdict that a daemon, which is gone, has left in `state`; all others are removed."""
    folder = Path(state) / "verdicts"
    message = (folder / f"{job}.pb").read_bytes()
    for old in folder.iterdir():
        old.unlink()
    if message.startswith(SEAL):
        message = message[SEAL_BYTES:]
    assert message[0] == 0x0A and message[1] < 0x80, "job_id is the first field"
    rest = message[2 + message[1]:]
    for number in range(count):
        kept = name(number).encode()
        (folder / f"{kept.decode()}.pb").write_bytes(b"\x0a" + bytes([len(kept)]) + kept + rest)
