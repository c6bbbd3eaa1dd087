# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A RAS service as NCCL's (2.24 and later, src/ras/client_support.cc): commands line by line, a report that ends with the
connection. It tells of four ranks, one of which has launched an operation less; FOLDER/pid_RANK has the process of a rank."""
import json
import os
import socket
import threading
import time


def process_of(folder, rank):
    try:
        return int(open(f"{folder}/pid_{rank}").read())
    except (OSError, ValueError):
        return os.getpid() + rank


def report(folder):
    ranks = [{"rank": rank, "host": "127.0.0.1", "pid": process_of(folder, rank), "cuda_dev": rank, "nvml_dev": rank,
              "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
                         "abort_flag": False},
              "collective_counts": {"Broadcast": 1, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0,
                                    "AllReduce": 11 if rank == 2 else 12}} for rank in range(4)]
    return json.dumps({
        "nccl_version": "2.28.9", "cuda_runtime_version": 12080, "cuda_driver_version": 12080, "timestamp": "now",
        "communicators_count": 1,
        "communicators": [{"hash": "0x27a079b828ff1a75", "secondary_hash": "0x1:0x2", "size": 4, "ranks_count": 4,
                           "missing_ranks_count": 0, "ranks": ranks, "missing_ranks": []}],
        "ras": {"collection_time_sec": 0.002, "timeouts_count": 0}})


def answer(connection, folder, manner):
    if manner == "silent":
        time.sleep(3600)
    with connection, connection.makefile("rw", newline="\n") as lines, open(f"{folder}/questions", "a") as log:
        for line in lines:
            log.write(line)
            if line.startswith("CLIENT PROTOCOL"):
                lines.write("SERVER PROTOCOL 2\n")
            elif line.startswith(("TIMEOUT", "SET FORMAT")):
                lines.write("OK\n")
            elif line.startswith("VERBOSE STATUS"):
                lines.write(report(folder))
                lines.flush()
                break
            else:
                lines.write("ERROR: Unknown command\n")
            lines.flush()


def serve(port, folder, manner):
    """`manner`: json, or silent: the connection is taken and nothing is said. Whoever asks, and however slowly, holds up
    nobody else."""
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, folder, manner), daemon=True).start()
