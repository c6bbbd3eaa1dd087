# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Flight Recorder dumps as PyTorch's watchdog writes them, made without PyTorch: the members and their types follow the
form 2.4 (pickle protocol 2, groups named in three places, stack frames shared between entries). Debian's torch has no
recorder, so no dump here comes from one.

    python3 tests/support/flight_dumps.py DIR     writes the fixtures of tests/fixtures/flight_recorder
"""
import json
import pickle
import sys
from pathlib import Path

FRAMES = [{"name": "all_reduce", "filename": "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", "line": 2806},
          {"name": "train_step", "filename": "/job/train.py", "line": 118},
          {"name": "main", "filename": "/job/train.py", "line": 201}]


def operation(record, group, sequence, name="all_reduce", sizes=((4096,),), state="completed", p2p=False):
    """`group`: (local id, name, description)."""
    done = state == "completed"
    began = 1_700_000_000_000_000_000 + sequence * 1_000_000
    return {
        "frames": FRAMES, "record_id": record, "pg_id": group[0], "process_group": (group[1], group[2]),
        "collective_seq_id": 0 if p2p else sequence, "p2p_seq_id": sequence if p2p else 0, "op_id": sequence,
        "profiling_name": f"nccl:{name}", "time_created_ns": began,
        "input_sizes": [list(size) for size in sizes], "input_dtypes": ["Float"] * len(sizes),
        "output_sizes": [list(size) for size in sizes], "output_dtypes": ["Float"] * len(sizes), "state": state,
        "time_discovered_started_ns": None, "time_discovered_completed_ns": began + 500_000 if done else None,
        "retired": done, "timeout_ms": 600000, "is_p2p": p2p,
    }


def dump(groups, entries, version="2.4"):
    """`groups`: {(local id, name, description): (members, enqueued, completed)}."""
    return {
        "version": version, "nccl_version": "2.21.5",
        "pg_config": {name: {"name": name, "desc": description, "ranks": str(list(members))}
                      for (_, name, description), (members, _, _) in groups.items()},
        "pg_status": {str(local): {"last_enqueued_collective": enqueued, "last_started_collective": -1,
                                   "last_completed_collective": completed}
                      for (local, _, _), (_, enqueued, completed) in groups.items()},
        "entries": entries,
    }


WORLD = (0, "0", "default_pg")


def of_world(ranks, enqueued, completed, history=4, **pending):
    """A rank of one group with a short history: what was enqueued and not completed is scheduled. `pending`: members of the
    operation that comes after the last completed one."""
    entries = []
    for sequence in range(max(1, completed - history + 1), enqueued + 1):
        late = pending if sequence == completed + 1 else {}
        entries.append(operation(len(entries), WORLD, sequence, state="completed" if sequence <= completed else "scheduled", **late))
    return dump({WORLD: (range(ranks), enqueued, completed)}, entries)


def write(path, content):
    path.write_bytes(pickle.dumps(content, protocol=2))


def as_json(content):
    """PyTorch's JSON: the status' numbers are strings, what has no time has 0."""
    content = json.loads(json.dumps(content))
    for status in content["pg_status"].values():
        for key, value in status.items():
            status[key] = str(value)
    for entry in content["entries"]:
        entry.pop("frames")
        entry["time_discovered_started_ns"] = entry["time_discovered_started_ns"] or 0
        entry["time_discovered_completed_ns"] = entry["time_discovered_completed_ns"] or 0
    return json.dumps(content)


class Command:
    def __reduce__(self):
        return (__import__("os").system, ("touch /tmp/never",))


def main(folder):
    for rank in range(4):  # rank 2 never enters 4521; the others wait in it, and have enqueued the next
        behind = rank == 2
        content = of_world(4, 4520 if behind else 4522, 4520)
        write(folder / f"lag_rank_{rank}", content)
        if rank == 1:
            (folder / "lag_rank_1.json").write_text(as_json(content))
    write(folder / "broadcast_rank", of_world(4, 4522, 4520, name="broadcast"))
    write(folder / "hostile", {"entries": [], "version": Command()})
    (folder / "lag_rank_0.protocol4").write_bytes(pickle.dumps(of_world(4, 4522, 4520), protocol=4))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
