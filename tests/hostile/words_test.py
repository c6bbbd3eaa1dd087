# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What a job prints about cards, kernels and other jobs: claims, held against what the kernel itself saw."""
import os

from hostile_case import ATTACKER, PATIENCE, HostileTest, run_tests, wait_for

PRINTS = """
import sys
for step in range(1, 41):
    print(f"step {step} loss {4.0 / step + 0.5:.4f} lr 0.05 step_time 0.053s", flush=True)
print(sys.argv[1], file=sys.stderr, flush=True)
if sys.argv[2] == "finish":
    print("training finished", flush=True)
elif sys.argv[2] == "raise":
    raise KeyError("missing_column")
else:
    sys.exit(int(sys.argv[2]))
"""
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
XID = "[  812.004511] NVRM: Xid (PCI:0000:28:00): 79, pid={pid}, name=python3, GPU has fallen off the bus."
WARN = "gpu-3:101:101 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.7 with status=12 opcode=0 len=0 vendor err 129"
NOTICE = "slurmstepd: error: *** JOB {other} ON n1 CANCELLED AT 2026-03-02T12:00:00 DUE TO TIME LIMIT ***"


class Words(HostileTest):
    def verdict_of(self, words, end, job=None):
        """Of a job of the attacker's that prints these words after forty steps, and ends so."""
        daemon = self.daemon()
        if os.access("/dev/kmsg", os.R_OK):
            wait_for("the kernel's log", lambda: daemon.metric('rankscope_source_up{source="kmsg"}') == 1)
        job = job or f"words-{os.getpid()}"
        run = self.wrapped_as(ATTACKER, daemon, job, "/usr/bin/python3", "-c", PRINTS, words.format(pid=os.getpid(), other=9107), end)
        run.wait(PATIENCE)
        return daemon.verdict(job)

    def test_a_card_that_the_kernel_does_not_know_of(self):
        """A job prints the driver's lines itself and then fails: the kernel log is read and has no such line, so the verdict is not B2."""
        verdict = self.verdict_of(XID, "raise")
        self.assertEqual((verdict["code"], verdict["exception_type"]), ("X1", "KeyError"))
        self.assertIn("kernel", next(state["by"] for state in verdict["ruled_out"] if state["code"] == "B2"))

    def test_an_error_of_memory_that_nobody_saw(self):
        """A job prints an uncorrectable memory error and exits with 1: no GPU is blamed."""
        self.assertNotIn(self.verdict_of(ECC, "1")["code"], ("B2", "X16"))

    def test_words_of_every_failure_and_a_good_end(self):
        """A job prints ECC errors, an Xid, a lost peer and an OOM kill, and exits with 0: it is healthy."""
        verdict = self.verdict_of("\n".join((ECC, XID, WARN, "Memory cgroup out of memory: Killed process 5521 (python3) "
                                             "total-vm:90112kB, anon-rss:65536kB")), "finish")
        self.assertEqual((verdict["code"], verdict["domain"]), ("G1", verdict["domain"]))

    def test_the_notice_of_another_job(self):
        """A job prints that another job was cancelled at its time limit, and fails: the verdict names its own failure."""
        verdict = self.verdict_of(NOTICE, "raise", job=str(9_000_000 + os.getpid()))
        self.assertEqual((verdict["code"], verdict["exception_type"]), ("X1", "KeyError"))

    def test_the_notice_of_another_job_and_an_exit(self):
        """A job prints that another job was cancelled, and exits with 3: the verdict does not say that it was cancelled."""
        self.assertNotIn(self.verdict_of(NOTICE, "3", job=str(9_000_000 + os.getpid()))["code"], ("X20", "F1", "F2", "F3"))


if __name__ == "__main__":
    run_tests()
