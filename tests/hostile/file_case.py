# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The ground for attacks by files: a daemon that reads output and dumps where they lie, because the kernel's source of output is off."""
import itertools
import os
import socket
import subprocess
import sys
from pathlib import Path

from hostile_case import ATTACKER, PATIENCE, VICTIM, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import flight_dumps  # noqa: E402

SECRET = "hunter2-of-"

# Says what it is told on standard error, which is its own file, and waits. Its standard output is the attack.
WAITS = """
import os, sys, time
os.write(2, sys.argv[1].encode() + b" step 1 loss 2.5\\n")
while True:
    time.sleep(60)
"""
# Takes a descriptor from a socket, as standard output.
TAKES = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as other:
    other.connect(sys.argv[1])
    (descriptor,) = socket.recv_fds(other, 1, 1)[1]
os.dup2(descriptor, 1)
os.set_inheritable(1, True)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], sys.argv[3]])
"""


def secret_lines(name):
    return f"step 7 loss 0.25\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: {SECRET}{name}\n"


class Files:
    """For test cases; see together()."""

    EBPF = "off"
    SOURCES = "nccl_dumps: {interval: 1s}"

    def begin(self):
        self.prepare()
        self.watch()

    def prepare(self):
        # Who may write here may make files of his own, and no others.
        self.common = Path(self.folder) / "common"
        self.common.mkdir()
        os.chmod(self.common, 0o1777)
        self.private = Path(self.folder) / "private"
        self.private.mkdir(mode=0o700)
        self.jobs = itertools.count(7001)

    def watch(self):
        config = Path(self.folder) / "config.yaml"
        config.write_text(f'ebpf: {{mode: "{self.EBPF}"}}\nsources: {{{self.SOURCES}}}\n')
        self.watching = self.daemon("--config", str(config))
        wait_for("the source", lambda: self.watching.metric('rankscope_source_up{source="stdout_tail"}') == 1)

    def settle(self):
        """A rank of the victim's begins after all attacks, and its output and dump are heard: what was there before has been
        looked at."""
        self.dumping_rank(VICTIM, self.home(VICTIM) / "bystanders_", "bystanders-dump")
        self.dump(self.home(VICTIM) / "bystanders_0", "bystanders-dump", VICTIM)
        with open(self.common / "bystander", "wb") as out:
            os.fchown(out.fileno(), VICTIM, VICTIM)
            self.rank_as(VICTIM, out, "/usr/bin/python3", "-c", WAITS.replace("os.write(2", "os.write(1"), "bystander")
        self.wait_until_heard("bystander step")
        self.wait_until_heard(SECRET + "bystanders-dump")
        self.wait_for_ticks(self.watching)
        self.served = self.everything_served(self.watching)

    def secret(self, name, uid=0, mode=0o600, gid=None, folder=None):
        path = self.secret_file((folder or self.private) / name, secret_lines(name), uid, mode)
        if gid is not None:
            os.chown(path, uid, gid)
        return path

    def environment_of_rank(self):
        return {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": str(next(self.jobs))}

    def rank_as(self, uid, out, *command, errors=None, environment=None, **options):
        """A process that says whose rank it is; its errors are in a file of its own. Returns the process."""
        errors = errors or self.common / f"errors-{uid}-{len(os.listdir(self.common))}"
        errors.touch(mode=0o600)
        os.chown(errors, uid, uid)
        with open(errors, "ab") as own:
            return self.start_as(uid, *command, stdout=out, stderr=own, environment={**self.environment_of_rank(), **(environment or {})},
                                 **options)

    def dump(self, path, group, uid):
        """Of the Flight Recorder, written by now: one that is older than its rank is of another run."""
        flight_dumps.write(path, flight_dumps.dump({(0, "0", SECRET + group): (range(4), 12, 11)}, []))
        os.chown(path, uid, uid)

    def dumping_rank(self, uid, prefix, marker):
        return self.rank_as(uid, subprocess.DEVNULL, "/usr/bin/python3", "-c", WAITS, marker,
                            environment={"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(prefix)})

    def start_with_rights(self, change, out, *command):
        """As rank_as, as whoever `change` makes of the process."""
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, preexec_fn=change, cwd="/",
                                   env={**self.environment, **self.environment_of_rank()})
        self.addCleanup(lambda: (process.kill(), process.wait()))
        return process

    def heard(self, text):
        """In what the daemon has written down."""
        for path in Path(self.watching.state).rglob("*"):
            try:
                if path.is_file() and text.encode() in path.read_bytes():
                    return True
            except FileNotFoundError:
                pass  # replaced meanwhile
        return False

    def wait_until_heard(self, text):
        wait_for(f"{text} to be heard; {self.watching.text()[-2000:]}", lambda: self.heard(text))

    def found(self, pid):
        wait_for("the process to be found", lambda: "job" in self.watching.get(f"/explain?pid={pid}")[1])

    def assert_not_told(self, name):
        text = SECRET + name
        self.assertNotIn(text, self.served)
        self.assertNotIn(text, self.everything_served(self.watching))
        self.assertFalse(self.heard(text), "in what the daemon keeps")

    def hand_over(self, descriptor, marker, uid=ATTACKER, command=("/usr/bin/python3",)):
        """Root gives a descriptor away, and the taker's rank has it as standard output."""
        path = str(self.common / f"socket-{marker}")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            os.chmod(path, 0o777)
            server.listen()
            process = self.rank_as(uid, None, *command, "-c", TAKES, path, WAITS, marker)
            server.settimeout(PATIENCE)
            with server.accept()[0] as other:
                socket.send_fds(other, [b"x"], [descriptor])
        return process
