#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""torchrun for Debian 12, whose torch 1.13 is older than its Python 3.11: there, converting a flag
enum from a numeric string returns None, and torchrun ends with an AttributeError before it starts.
"""
import importlib.util
import sys

if importlib.util.find_spec("torch") is None:
    sys.exit("torchrun_shim: torch is missing; apt-get install python3-torch")

from torch.distributed.elastic.multiprocessing.api import Std

convert = Std.from_str
Std.from_str = classmethod(lambda cls, text: Std(int(text)) if text.isdigit() else convert(text))

from torch.distributed.run import main

main()
