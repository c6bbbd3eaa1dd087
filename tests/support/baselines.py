#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What people do without rankscope, as classifiers: text and exit code -> family code.

    baselines.py exit_code|keywords|first_regex FILE [EXIT_CODE]      prints the code

None of them reads phases, causes or attempts; that is the point of comparing.
"""
import re
import sys

KEYWORDS = {
    "B1": ["CUDA out of memory", "OutOfMemoryError", "CUBLAS_STATUS_ALLOC_FAILED"],
    "A2": ["SIGKILL", "SIGSEGV", "SIGBUS", "Killed", "Segmentation fault", "oom-kill", "oom_kill", "core dumped"],
    "B2": ["Xid", "uncorrectable ECC", "fallen off the bus", "CUDA error: unspecified launch failure"],
    "C1": ["DistNetworkError", "client socket has timed out", "Connection refused", "RendezvousTimeoutError"],
    "C2": ["Watchdog caught collective operation timeout", "NCCL timeout", "Timed out waiting"],
    "X5": ["unhandled system error", "NET/IB", "NET/OFI", "transport retry counter exceeded"],
    "E1": ["nan", "NaN", "diverged", "overflow"],
    "E2": ["size mismatch for", "Missing key(s) in state_dict", "PytorchStreamReader", "will start from random"],
    "F1": ["NODE_FAIL", "DUE TO NODE FAILURE"],
    "F2": ["DUE TO PREEMPTION", "DUE TO JOB REQUEUE", "preempted"],
    "F3": ["DUE TO TIME LIMIT", "walltime"],
    "X20": ["CANCELLED AT", "KeyboardInterrupt", "SIGTERM", "Terminated"],
    "X21": ["No space left on device", "Disk quota exceeded", "PytorchStreamWriter"],
    "A1": ["ModuleNotFoundError", "ImportError", "FileNotFoundError", "unrecognized arguments", "PermissionError",
           "not found", "Invalid", "No such file"],
    "X1": ["Traceback (most recent call last)", "RuntimeError", "ValueError", "KeyError", "IndexError", "AssertionError"],
}

# In the order in which runbooks list them: the specific first, the traceback last.
PATTERNS = [(code, re.compile("|".join(map(re.escape, KEYWORDS[code]))))
            for code in ("B2", "B1", "F1", "F2", "F3", "X21", "C2", "C1", "X5", "E2", "A2", "X20", "A1", "X1")]
PATTERNS.append(("E1", re.compile(r"loss\W{1,3}nan\b", re.I)))


def exit_code(_text, code):
    if code in (None, 0):
        return "G1"
    return {130: "X20", 143: "X20"}.get(code, "A2" if code > 128 else "X1")


def keywords(text, _code):
    """The family with the most keywords in the text; order and place do not matter."""
    hits = {code: sum(text.count(word) for word in words) for code, words in KEYWORDS.items()}
    best = max(hits, key=hits.get)
    return best if hits[best] else "G1"


def first_regex(text, _code):
    """The first pattern of the list that occurs anywhere."""
    return next((code for code, pattern in PATTERNS if pattern.search(text)), "G1")


BASELINES = {function.__name__: function for function in (exit_code, keywords, first_regex)}


def main(name, path, code=None):
    with open(path, encoding="utf-8", errors="replace") as file:
        print(BASELINES[name](file.read(), int(code) if code else None))


if __name__ == "__main__":
    main(*sys.argv[1:])
