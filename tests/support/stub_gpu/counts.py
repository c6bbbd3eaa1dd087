# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What the stub libraries counted of themselves (counts.h): {pid: {"cuLaunchKernel": 1200, "cuMemAlloc.bytes": ...}}."""
import struct
from collections import defaultdict
from pathlib import Path

ROW = struct.Struct("<56sQ")


def read(folder):
    counts = defaultdict(dict)
    for path in Path(folder).glob("*.stub_*"):
        data = path.read_bytes()
        for name, count in ROW.iter_unpack(data[:len(data) // ROW.size * ROW.size]):
            if name := name.rstrip(b"\0").decode():
                counts[int(path.name.split(".")[0])][name] = count
    return dict(counts)
