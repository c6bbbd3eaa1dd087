#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks that train in Python on the stand-ins for CUDA and NCCL, one of which fails at a step: the kinds of fault that NVIDIA's
resiliency extension injects into real jobs (nvidia_resiliency_ext, shared_utils/inject_fault.py).

    injected_trainer.py RANKS STEPS KIND RANK STEP     KIND: none, or a key of FAULTS

Without RANK in the environment it is their launcher: when a rank fails, it ends the others with SIGTERM and exits with 1.
"""
import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
import time

RANKS, STEPS, KIND, CULPRIT, AT = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
STEP_S, LAUNCHES = 0.2, 20


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


def launch():
    ranks = []
    for rank in range(RANKS):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_WORLD_SIZE=str(RANKS),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT="29500", INJECTED_ID=f"{os.getpid()}")
        ranks.append(subprocess.Popen([sys.executable, "-u", *sys.argv], env=environment))
    while all(rank.poll() is None for rank in ranks):
        time.sleep(0.05)
    failed = False
    while any(rank.poll() is None for rank in ranks):
        if any(rank.poll() not in (None, 0) for rank in ranks) and not failed:
            failed = True
            time.sleep(1)  # an elastic launcher looks from time to time
            for rank in ranks:
                if rank.poll() is None:
                    rank.terminate()
        time.sleep(0.05)
    sys.exit(int(failed or any(rank.returncode for rank in ranks)))


if "RANK" not in os.environ:
    launch()

RANK = int(os.environ["RANK"])
FOLDER = os.environ["STUB_GPU_LIBRARIES"]
CUDA, RUNTIME, NCCL = (ctypes.CDLL(f"{FOLDER}/{name}", mode=ctypes.RTLD_GLOBAL)
                       for name in ("libcuda.so.1", "libcudart.so.12", "libnccl.so.2"))
NCCL.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]
NCCL.ncclAllReduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p,
                               ctypes.c_void_p]
RUNTIME.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
RUNTIME.cudaStreamSynchronize.argtypes = [ctypes.c_void_p]
CUDA.stubGpuEnqueue.argtypes = [ctypes.c_void_p, ctypes.c_int64]


class InjectedException(Exception):
    pass


def check(result):
    if result != 0:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\n"
                           "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
                           "might be incorrect.")


def exception():
    raise InjectedException("an exception in the workload")


def asynchronous():
    main = threading.main_thread().ident
    threading.Thread(target=lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(main), ctypes.py_object(InjectedException))).start()
    for _ in range(100):
        time.sleep(0.01)


def handler():
    signal.signal(signal.SIGUSR1, lambda number, frame: exception())
    os.kill(os.getpid(), signal.SIGUSR1)


def lock_held():
    ctypes.PyDLL(None).sleep(10 ** 6)  # a foreign function that does not release the interpreter's lock


FAULTS = {
    "gpu_sleep": lambda: CUDA.stubGpuEnqueue(None, 10 ** 15),
    "gpu_error": lambda: CUDA.stubGpuFault(700),
    "sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: ctypes.string_at(8),
    "lock_gil": lock_held,
    "abort": os.abort,
    "workload_exception": exception,
    "async_exception": asynchronous,
    "sigterm": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "sigint": lambda: os.kill(os.getpid(), signal.SIGINT),
    "sigstop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "handler_exception": handler,
}


def communicator():
    path = f"/dev/shm/injected-{os.environ['INJECTED_ID']}"
    unique = UniqueId()
    if RANK == 0:
        NCCL.ncclGetUniqueId(ctypes.byref(unique))
        with open(path + ".next", "wb") as file:
            file.write(bytes(unique))
        os.rename(path + ".next", path)
    else:
        while not os.path.exists(path):
            time.sleep(0.02)
        with open(path, "rb") as file:
            unique = UniqueId.from_buffer_copy(file.read())
    comm = ctypes.c_void_p()
    check(NCCL.ncclCommInitRank(ctypes.byref(comm), RANKS, unique, RANK))
    if RANK == 0:
        os.unlink(path)
    return comm


def train_step(comm, step):
    began = time.monotonic()
    if KIND in FAULTS and RANK == CULPRIT and step == AT:
        FAULTS[KIND]()
    for _ in range(LAUNCHES):
        check(RUNTIME.cudaLaunchKernel(None, Dim3(1, 1, 1), Dim3(1, 1, 1), None, 0, None))
    check(NCCL.ncclAllReduce(None, None, 1 << 20, 7, 0, comm, None))
    check(RUNTIME.cudaStreamSynchronize(None))
    time.sleep(max(0, STEP_S - (time.monotonic() - began)))
    return time.monotonic() - began


def main():
    check(RUNTIME.cudaSetDevice(RANK))
    comm = communicator()
    if RANK == 0:
        print(f"training starts: {RANKS} ranks", flush=True)
    noise = random.Random(7)
    for step in range(1, STEPS + 1):
        seconds = train_step(comm, step)
        if RANK == 0 and step % 5 == 0:
            print(f"step {step} loss {0.5 + 3 / (1 + 0.02 * step) + noise.gauss(0, 0.02):.4f} lr 0.01 step_time {seconds:.3f}s", flush=True)


main()
