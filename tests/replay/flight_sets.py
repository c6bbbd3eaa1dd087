#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Dumps of PyTorch's Flight Recorder, of whole jobs, judged without a live rank.

A small simulator runs a training step in tensor, pipeline and data parallelism: each rank enqueues its operations in order and runs a few
ahead of its GPU; an operation completes when all members have entered it and what came before it has completed. One rank is made to stand,
to send another size, to call another operation. What stands then is written as PyTorch writes it (torch/csrc/distributed/c10d/FlightRecorder:
a pickle of protocol 2 for each rank, `pg_status` by a number local to the process, `pg_config` by the group's name, sends and receives
numbered by themselves, a ring of the newest entries), and `rankscope classify --job` must name the rank.

    flight_sets.py [--seeds N]     exits with 1 where a set is judged wrongly
"""
import argparse
import json
import os
import pickle
import random
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

BINARY = os.environ.get("RANKSCOPE_BINARY", "build/rankscope")
BEGIN_NS = 1_770_000_000_000_000_000
DEPTH = 4  # operations that a rank runs ahead of its GPU
RING = 60  # entries that the recorder keeps


@dataclass
class Op:
    group: str
    name: str
    sizes: list
    peer: int = -1  # of a send or a receive: its place in the group
    batch: bool = False


@dataclass
class Rank:
    program: list
    stands_at: int = 10**9  # enqueues nothing from here on
    gpu_stands_at: int = 10**9  # its GPU executes nothing from here on
    enqueued: int = 0
    completed: int = 0
    offsets: dict = field(default_factory=dict)  # group -> where its numbers begin
    names: dict = field(default_factory=dict)  # group -> its own name of it


class Job:
    def __init__(self, tp, pp, dp, steps, rng):
        self.size = tp * pp * dp
        self.groups = {"0": (list(range(self.size)), "default_pg")}
        ranks = [(d, p, t) for p in range(pp) for d in range(dp) for t in range(tp)]
        self.at = {place: rank for rank, place in enumerate(ranks)}
        number = 1

        def add(kind, members):
            nonlocal number
            if len(members) > 1:
                self.groups[str(number)] = (sorted(members), kind)
                number += 1

        for p in range(pp):
            for d in range(dp):
                add("tp", [self.at[d, p, t] for t in range(tp)])
        for d in range(dp):
            for t in range(tp):
                add("pp", [self.at[d, p, t] for p in range(pp)])
        for p in range(pp):
            for t in range(tp):
                add("dp", [self.at[d, p, t] for d in range(dp)])
        self.ranks = [Rank(self._program(rank, place, pp, steps)) for rank, place in enumerate(ranks)]
        self.rng = rng

    def group_of(self, rank, kind):
        for name, (members, description) in self.groups.items():
            if description == kind and rank in members:
                return name
        return None

    def _program(self, rank, place, pp, steps):
        tensor, stages, data = (self.group_of(rank, kind) for kind in ("tp", "pp", "dp"))
        program = [Op("0", "nccl:all_reduce_barrier", [[1]])]
        stage = place[1]
        for step in range(steps):
            for _ in range(2):  # micro-batches
                if stages and stage > 0:
                    program.append(Op(stages, f"nccl:recv {stage}<-{stage - 1}", [[512, 64]], stage - 1))
                if tensor:
                    program.append(Op(tensor, "nccl:all_reduce", [[512, 64]]))
                    program.append(Op(tensor, "nccl:all_reduce", [[512, 64]]))
                if stages and stage < pp - 1:
                    program.append(Op(stages, f"nccl:send {stage}->{stage + 1}", [[512, 64]], stage + 1))
            if data:
                program.append(Op(data, "nccl:_reduce_scatter_base", [[8192]]))
                program.append(Op(data, "nccl:_all_gather_base", [[2048]]))
            if step % 3 == 2:
                program.append(Op("0", "nccl:all_reduce", [[1]]))
        return program

    def entered(self, rank):
        return self.ranks[rank].program[:self.ranks[rank].enqueued]

    def _number(self, rank, index):
        op = self.ranks[rank].program[index]
        same = [o for o in self.ranks[rank].program[:index] if o.group == op.group and (o.peer >= 0) == (op.peer >= 0)
                and (op.peer < 0 or o.name == op.name)]
        return len(same)

    def _may_complete(self, rank, index):
        op = self.ranks[rank].program[index]
        members = self.groups[op.group][0]
        if op.peer >= 0:
            other = members[op.peer]
            wanted = self._number(rank, index)
            own = members.index(rank)
            matching = [o for o in self.entered(other) if o.group == op.group and o.peer == own and o.name[5:9] != op.name[5:9]]
            return len(matching) > wanted
        wanted = self._number(rank, index)
        for member in members:
            theirs = [o for o in self.entered(member) if o.group == op.group and o.peer < 0]
            if len(theirs) <= wanted:
                return False
            if theirs[wanted].name != op.name or theirs[wanted].sizes != op.sizes:
                return False
            if self._place(member, op.group, wanted) >= self.ranks[member].gpu_stands_at:
                return False
        return True

    def _place(self, rank, group, number):
        """Where in its program a rank enters the collective of this number in the group."""
        seen = -1
        for index, op in enumerate(self.ranks[rank].program):
            if op.group == group and op.peer < 0:
                seen += 1
                if seen == number:
                    return index
        return 10**9

    def run(self):
        moved = True
        while moved:
            moved = False
            for number, rank in enumerate(self.ranks):
                while (rank.enqueued < len(rank.program) and rank.enqueued < rank.stands_at
                       and rank.enqueued - rank.completed < DEPTH):
                    rank.enqueued += 1
                    moved = True
                while rank.completed < rank.enqueued and rank.completed < rank.gpu_stands_at \
                        and self._may_complete(number, rank.completed):
                    rank.completed += 1
                    moved = True

    def dump(self, number, age_s, timed):
        rank = self.ranks[number]
        local = {name: index for index, (name, (members, _)) in enumerate(self.groups.items()) if number in members}
        entries, collective, exchange, newest, done = [], {}, {}, {}, {}
        for index, op in enumerate(self.entered(number)):
            members, description = self.groups[op.group]
            name = rank.names.get(op.group, op.group)
            begin = rank.offsets.get(op.group, 0)
            if op.peer >= 0:
                exchange[op.group] = exchange.get(op.group, 0) + 1
                sequence = exchange[op.group]
            else:
                collective[op.group] = collective.get(op.group, begin) + 1
                sequence = collective[op.group]
            completed = index < rank.completed
            newest[op.group] = sequence
            if completed:
                done[op.group] = sequence
            # Of what is in flight the first has been started, where all have come.
            started = timed and index == rank.completed and index < rank.gpu_stands_at
            entries.append({
                "record_id": index, "pg_id": local[op.group], "process_group": (name, description),
                "collective_seq_id": collective.get(op.group, begin), "p2p_seq_id": exchange.get(op.group, 0), "op_id": index + 1,
                "profiling_name": op.name, "time_created_ns": BEGIN_NS + index * 3_000_000,
                "input_sizes": op.sizes, "output_sizes": op.sizes, "input_dtypes": ["BFloat16"], "output_dtypes": ["BFloat16"],
                "state": "completed" if completed else "started" if started else "scheduled",
                "time_discovered_started_ns": None, "time_discovered_completed_ns": BEGIN_NS if completed else None,
                "retired": completed, "timeout_ms": 600000, "is_p2p": op.peer >= 0,
                "frames": [{"name": "train_step", "filename": "/job/train.py", "line": 118}],
            })
        config = {rank.names.get(name, name): {"name": rank.names.get(name, name), "desc": description,
                                               "ranks": str(members)}
                  for name, (members, description) in self.groups.items() if number in members}
        status = {str(local[name]): {"last_enqueued_collective": newest[name], "last_started_collective": -1,
                                     "last_completed_collective": done.get(name, -1)} for name in newest}
        content = {"version": "2.10", "nccl_version": "2.27.5", "pg_config": config,
                   "pg_status": {int(k): v for k, v in status.items()}, "entries": entries[-RING:]}
        last = BEGIN_NS + max((i for i in range(len(rank.program))), default=0) * 3_000_000
        return content, last / 1e9 + age_s

    def write(self, folder, without=(), age_s=900.0, timed=False, as_json=False, prefix="nccl_trace_rank_"):
        for number in range(self.size):
            if number in without:
                continue
            content, written = self.dump(number, age_s, timed)
            path = folder / f"{prefix}{number}"
            path.write_bytes(json.dumps(content).encode() if as_json else pickle.dumps(content, protocol=2))
            os.utime(path, (written, written))


def classify(folder):
    result = subprocess.run([BINARY, "classify", "--job", "--format", "json", str(folder)], capture_output=True, text=True, timeout=60,
                            check=False)
    if result.returncode != 0:
        raise AssertionError(f"classify: exit {result.returncode}: {result.stdout}{result.stderr}")
    return json.loads(result.stdout)


def shape(rng):
    return rng.choice([(2, 2, 2), (2, 1, 4), (1, 2, 4), (4, 2, 2), (2, 4, 2), (1, 1, 8), (1, 4, 1), (2, 4, 4)])


def make(rng, steps=12):
    return Job(*shape(rng), steps, rng)


def middle(rng, job, number):
    return rng.randrange(20, len(job.ranks[number].program) - 8)


def collective_at(job, number, at):
    """The next collective of a rank, from a place in its program on, whose group has more than two members if any has."""
    program = job.ranks[number].program
    places = [i for i in range(at, len(program)) if program[i].peer < 0]
    return next((i for i in places if len(job.groups[program[i].group][0]) > 2), None)


# Each returns what the verdict must be: (code, sub or None, ranks or None).
def stands(rng, job, folder):
    rank = rng.randrange(job.size)
    job.ranks[rank].stands_at = middle(rng, job, rank)
    job.run()
    job.write(folder, as_json=rng.random() < 0.2, prefix=rng.choice(["nccl_trace_rank_", "trace_", "comm_lib_trace_rank_"]))
    return "C2", "absent_rank", [rank]


def stands_in_a_pipeline_alone(rng, job, folder):
    """Nobody waits in a collective: all that stands are sends and receives."""
    return stands(rng, Job(1, rng.choice([3, 4, 6]), 1, 12, rng), folder)


def never_comes(rng, job, folder):
    """A group that is used for the first time; one rank does not come to it."""
    job = Job(*rng.choice([(2, 1, 4), (1, 1, 8), (4, 1, 2)]), 12, rng)
    rank = rng.randrange(job.size)
    members = sorted(rng.sample([r for r in range(job.size) if r != rank], min(3, job.size - 1)) + [rank])
    job.groups["77"] = (members, "experts")
    at = 15
    for member in members:
        job.ranks[member].program[at:at] = [Op("77", "nccl:all_to_all", [[256]])] * 2
    job.ranks[rank].stands_at = at
    job.run()
    job.write(folder)
    return "C2", "absent_rank", [rank]


def stands_with_offsets(rng, job, folder):
    """In some groups some ranks count from another beginning, and in others each rank has its own name for the group."""
    for number, rank in enumerate(job.ranks):
        for name, (members, kind) in job.groups.items():
            if number in members and kind == "dp" and number == members[-1]:
                rank.offsets[name] = 40
            if number in members and kind == "tp":
                rank.names[name] = "tp_of_" + str(number)
            if number in members and kind == "pp":
                rank.names[name] = "2"  # each rank counts its own groups
    return stands(rng, job, folder)


def other_size(rng, job, folder):
    rank = rng.randrange(job.size)
    at = collective_at(job, rank, middle(rng, job, rank) - 8)
    if at is None:
        return None
    op = job.ranks[rank].program[at]
    job.ranks[rank].program[at] = Op(op.group, op.name, [[size + 1 for size in op.sizes[0]]])
    job.run()
    job.write(folder)
    return "X10", "size", [rank]


def other_operation(rng, job, folder):
    rank = rng.randrange(job.size)
    at = collective_at(job, rank, middle(rng, job, rank) - 8)
    if at is None:
        return None
    op = job.ranks[rank].program[at]
    job.ranks[rank].program[at] = Op(op.group, "nccl:broadcast", op.sizes)
    job.run()
    job.write(folder)
    return "X10", "op", [rank]


def gpu_stands(rng, job, folder):
    """Kernels are timed: all have entered it, and one GPU has not started it."""
    job = Job(1, 1, 8, 12, rng)
    rank = rng.randrange(job.size)
    job.ranks[rank].gpu_stands_at = middle(rng, job, rank)
    job.run()
    job.write(folder, timed=True)
    return "C2", "absent_rank", [rank]


def without_the_dump(rng, job, folder):
    """The one that stands has written nothing: nobody else is named for it."""
    rank = rng.randrange(job.size)
    job.ranks[rank].stands_at = middle(rng, job, rank)
    job.run()
    job.write(folder, without=(rank,))
    return "C2", None, []


def goes_on(rng, job, folder):
    """Somebody asks a run for its dumps that goes on: what is in flight is milliseconds old. At most a suspicion."""
    for number, rank in enumerate(job.ranks):
        rank.stands_at = len(rank.program) - 3 - number % 2
    job.run()
    job.write(folder, age_s=0.2)
    return "?", None, None


def is_over(rng, job, folder):
    """Everything has completed."""
    job.run()
    job.write(folder)
    return "!C2", None, None


CASES = [stands, stands_in_a_pipeline_alone, never_comes, stands_with_offsets, other_size, other_operation, gpu_stands, without_the_dump,
         goes_on, is_over]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    wrong, judged = [], 0
    for case in CASES:
        if options.only and case.__name__ != options.only:
            continue
        for seed in range(options.seeds):
            rng = random.Random(f"{case.__name__} {seed}")
            folder = Path(tempfile.mkdtemp(prefix="flight_set_"))
            job = make(rng)
            wanted = case(rng, job, folder)
            if wanted is None:
                continue
            code, sub, ranks = wanted
            verdict = classify(folder)
            judged += 1
            if code == "?":
                good = verdict["confidence"] <= 0.5
            else:
                good = verdict["code"] != code[1:] if code.startswith("!") else verdict["code"] == code
            good = good and (sub is None or verdict["sub"] == sub) and (ranks is None or verdict["ranks"] == ranks)
            if not good:
                wrong.append(f"{case.__name__} {seed} ({folder}): {verdict['code']} {verdict['sub']} {verdict['ranks']}, wanted {wanted}; "
                             + " | ".join(s if isinstance(s, str) else s.get("text", str(s)) for s in verdict["shows"][:3]))
            elif not options.keep:
                subprocess.run(["rm", "-r", str(folder)], check=True)
    print("\n".join([*wrong, f"{judged - len(wrong)} of {judged} sets exact"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
