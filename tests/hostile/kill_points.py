# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Runs beside a daemon that is killed at random points, and what its verdicts say afterwards.

A run prints numbered steps and ends in one of four ways, under the wrapper or alone, heard by the kernel. The points are drawn
from a seed. Of each run: whether the verdict is right, whether the gaps are told, and whether it is called exact although fewer
lines were heard than were written.
"""
import dataclasses
import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "serve"))
from serve_test import BINARY, Daemon, wait_for  # noqa: E402

TRAINER = r"""
import os, signal, sys, time
end, steps, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
for step in range(1, steps + 1):
    loss = 4.0 / step + 0.5 if end != "nan" or step < steps // 2 else float("nan")
    print(f"step {step} loss {loss:.4f} lr 0.05 step_time 0.020s", flush=True)
    time.sleep(pause)
if end == "raise":
    raise KeyError("missing_column")
if end == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
"""
PYTHON = "/usr/bin/python3"
ENDS = ("raise", "crash", "healthy", "nan")
WAYS = ("wrapped", "heard")
# What may be said of each end that was seen. An exception that was printed says enough; a plain crash in a gap says nothing.
SEEN = {"raise": {"X1"}, "crash": {"A2"}, "healthy": {"G1"}, "nan": {"E1"}}
UNSEEN = {"raise": {"X1", "U0"}, "crash": {"A2", "U0"}, "healthy": {"G1", "U0"}, "nan": {"E1", "U0"}}


@dataclasses.dataclass
class Run:
    job: str
    way: str
    end: str
    log: Path
    process: subprocess.Popen
    began: float
    ended: float = 0  # when it was seen to have ended
    verdict: dict = None
    heard: float = -1  # lines, as the metrics count them; below zero: not known

    @property
    def written(self):
        return self.log.read_bytes().count(b"\n")


@dataclasses.dataclass
class Outcome:
    runs: int = 0
    kills: int = 0
    right: int = 0
    gaps: int = 0  # runs with a kill in their life
    told: int = 0  # of these, those whose verdict says so
    exact: int = 0
    wrongly_exact: int = 0
    unseen: int = 0  # answered U0: the end was not seen
    whole: int = 0  # runs with a gap of which every line was heard all the same
    wrong: list = dataclasses.field(default_factory=list)

    def add(self, other):
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def text(self):
        return (f"kills {self.kills}, runs {self.runs}: verdicts right {self.right}, gaps told {self.told} of {self.gaps}, "
                f"called exact {self.exact}, of these wrongly {self.wrongly_exact}; end not seen {self.unseen}; "
                f"all lines heard in spite of a gap {self.whole}")


class Round:
    """Some runs side by side, and a daemon that is killed while they run."""

    def __init__(self, folder, number, dice, runs, steps=120, pause=0.02, ways=WAYS):
        self.folder = Path(folder)
        self.dice = dice
        self.steps, self.pause, self.ways = steps, pause, ways
        self.state = str(self.folder / f"state-{number}")
        self.trainer = self.folder / "train.py"
        self.trainer.write_text(TRAINER)
        self.number = number
        self.count = runs
        self.outages = []  # (killed, ready again)
        self.daemon = self.start()

    def start(self):
        daemon = Daemon(self.folder, state=self.state)
        wait_for("the kernel's source of output",
                 lambda: 'rankscope_source_up{source="stdio"} 1' in daemon.get("/metrics")[1] or "wrapped" == "".join(self.ways))
        return daemon

    def launch(self, index):
        which = index + self.count * (self.number - 1)  # every way with every end, whatever fits into a round
        way = self.ways[which % len(self.ways)]
        end = ENDS[(which // len(self.ways)) % len(ENDS)]
        job = f"{self.number}{index:02d}"
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("SLURM_", "RANK", "WORLD_SIZE", "TORCHELASTIC_"))}
        command = [PYTHON, str(self.trainer), end, str(self.steps + self.dice.randrange(40)), str(self.pause)]
        if way == "wrapped":
            directory = self.folder / f"run-{job}"
            command = [BINARY, "run", "--socket", self.daemon.socket, "--job-id", job, "--dir", str(directory), "--", *command]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
            return Run(job, way, end, directory / "log", process, time.monotonic())
        log = self.folder / f"out-{job}"
        environment |= {"SLURM_JOB_ID": job, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "SLURM_PROCID": "0"}
        with open(log, "wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        return Run(job, way, end, log, process, time.monotonic())

    def play(self, kills):
        runs = [self.launch(index) for index in range(self.count)]
        wait_for("the jobs", lambda: all(f'job_id="{run.job}"' in self.daemon.get("/metrics")[1] for run in runs))
        life = self.steps * self.pause
        for _ in range(kills):
            self.sleep(runs, self.dice.uniform(0, 1.6 * life / kills))
            self.kill(runs)
        while any(run.process.poll() is None for run in runs):
            self.sleep(runs, 0.05)
        self.sleep(runs, 0)
        for run in runs:
            self.judge(run)
        return runs

    def sleep(self, runs, seconds):
        until = time.monotonic() + seconds
        while True:
            for run in runs:
                if not run.ended and run.process.poll() is not None:
                    run.ended = time.monotonic()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.01))

    def kill(self, runs):
        killed = time.monotonic()
        self.daemon.kill()
        self.sleep(runs, self.dice.choice((0, 0.1, 0.5)))
        self.daemon = self.start()
        self.outages.append((killed, time.monotonic()))

    def judge(self, run):
        def final():
            found = self.daemon.verdicts().get(run.job)
            if found and found["state"] == "final":
                run.verdict = found
            return run.verdict
        wait_for(f"the final verdict of {run.job} ({run.way}, {run.end}); {self.daemon.text()[-3000:]}", final)
        text = self.daemon.get("/metrics")[1]
        lines = re.findall(rf'^rankscope_log_lines_total{{job_id="{run.job}",stream="[^"]+"}} (\S+)$', text, re.M)
        if lines:
            run.heard = sum(float(value) for value in lines)

    def outcome(self, runs):
        out = Outcome(runs=len(runs), kills=len(self.outages))
        for run in runs:
            quality = run.verdict["data_quality"]
            # A tick is at most a second old when the daemon dies: what came after it is in the gap as well.
            gap = any(killed < run.ended and again > run.began for killed, again in self.outages)
            unseen = any(killed - 1.5 < run.ended < again + 0.5 for killed, again in self.outages)
            told = not quality["exact"] and any("nothing was observed" in note or "while rankscope was not running" in note
                                                for note in quality["notes"])
            wrongly = quality["exact"] and (gap and run.heard < run.written or 0 <= run.heard < run.written)
            allowed = UNSEEN[run.end] if unseen and run.way == "heard" else SEEN[run.end]
            right = run.verdict["code"] in allowed
            out.right += right
            out.gaps += gap
            out.told += gap and told
            out.exact += quality["exact"]
            out.wrongly_exact += wrongly
            out.unseen += run.verdict["code"] == "U0"
            out.whole += gap and run.heard == run.written
            if not right or wrongly or gap and not told:
                out.wrong.append(f"{run.job} {run.way} {run.end}: {run.verdict['code']} {run.verdict['sub']}, exact {quality['exact']}, "
                                 f"{run.heard:g} of {run.written} lines, end {'in a gap' if unseen else 'seen'}, notes "
                                 f"{json.dumps(quality['notes'])}")
        return out


def rounds(folder, seed, kills, runs_in_round, number_of_rounds, report=None, **options):
    """Plays them all; the sum."""
    total = Outcome()
    dice = random.Random(seed)
    for number in range(1, number_of_rounds + 1):
        one = Round(folder, number, dice, runs_in_round, **options)
        try:
            outcome = one.outcome(one.play(kills // number_of_rounds))
        finally:
            one.daemon.stop()
        total.add(outcome)
        if report:
            report(f"round {number}: {outcome.text()}")
            for line in outcome.wrong:
                report("  " + line)
    return total
