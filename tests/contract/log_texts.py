# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What a log alone says of who failed first and of how the run ended, each text beside one that reads alike and says less."""
import json

from contract import main, rankscope

STEPS = "".join(f"step {step} loss {3.0 - step / 50:.4f} lr 0.01\n" for step in range(5, 65, 5))
EPOCHS = "".join(f"[1,0]<stdout>:epoch {epoch} loss {3.0 - epoch / 20:.4f}\n" for epoch in range(30))
FAULT = ("n3:101:944 [0] transport/net_ib.cc:1410 NCCL WARN NET/IB : Got completion from peer 10.9.8.7<50112> with status=12 "
         "opcode=0 len=0 vendor err 129 (Send)\nsrun: error: n3: task 14: Aborted (core dumped)\n")
CANCELLED = "slurmstepd: error: *** STEP 71.0 ON n1 CANCELLED AT 2026-03-02T12:00:00 ***\nsrun: error: n1: tasks 0-3: Terminated\n"
STALL = ("[1,0]<stderr>:[2026-03-02 12:01:34.120: W stall_inspector.cc:107] One or more tensors were submitted to be reduced, "
         "gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.\n"
         "[1,0]<stderr>:Missing ranks:\n")
LIMIT = "slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2026-03-02T12:00:00 DUE TO TIME LIMIT ***\n"
HYDRA = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
RAISED = '[1,5]<stderr>:Traceback (most recent call last):\n[1,5]<stderr>:  File "train.py", line 201, in <module>\n' \
         "[1,5]<stderr>:    lr = schedule(step)\n[1,5]<stderr>:UnboundLocalError: local variable 'lr' referenced before assignment\n"

# (what it is, the log, what the verdict has)
CASES = [
    ("srun ends the step for its task", STEPS + FAULT + "srun: Terminating StepId=71.0\n" + CANCELLED,
     {"code": "X5", "disposition": "failed"}),
    ("somebody cancels the step", STEPS + FAULT + CANCELLED, {"code": "X5", "disposition": "cancelled"}),
    ("srun ends another step", STEPS + FAULT + "srun: Terminating StepId=70.0\n" + CANCELLED,
     {"code": "X5", "disposition": "cancelled"}),
    ("Hydra names the rank", STEPS + HYDRA + "=   RANK 6 PID 33190 RUNNING AT n2\n=   KILLED BY SIGNAL: 11 (Segmentation fault)\n",
     {"code": "A2", "ranks": [6]}),
    ("Hydra names no rank", STEPS + HYDRA + "=   KILLED BY SIGNAL: 11 (Segmentation fault)\n", {"code": "A2", "ranks": []}),
    ("Horovod names the missing rank",
     STEPS + STALL + "[1,0]<stderr>:5: [Adam_Allreduce/cond/HorovodAllreduce_grads_14_0 ...]\n" + LIMIT, {"code": "C2", "ranks": [5]}),
    ("Horovod lists tensors", STEPS + STALL + "[1,0]<stderr>:tensors [Adam_Allreduce/HorovodAllreduce_grads_14_0 ...]\n" + LIMIT,
     {"code": "C2", "ranks": []}),
    ("many records in nobody's words", EPOCHS + RAISED, {"code": "X1", "confidence": 0.75, "ranks": [5]}),
    ("few records in nobody's words", EPOCHS[:300] + "\n" + RAISED, {"code": "X1", "confidence": 0.35}),
]


def test_who_failed_and_how_it_ended():
    findings = []
    for what, text, wanted in CASES:
        verdict = json.loads(rankscope("classify", "-", stdin=text).stdout)
        verdict["disposition"] = verdict["disposition"]["kind"]
        findings += [f"{what}: {key} is {verdict[key]!r}, not {value!r}" for key, value in wanted.items() if verdict[key] != value]
    return findings


if __name__ == "__main__":
    main(globals())
