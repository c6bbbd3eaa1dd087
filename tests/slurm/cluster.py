# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A real Slurm, with accounting or without, on this one machine: two nodes with two GPUs each, all in one temporary folder.

    with Cluster() as cluster:
        cluster.run("sbatch", "--parsable", "job.sh")

`python3 cluster.py` starts one to work with by hand, until Ctrl-C.

A supervisor in a session of its own starts the daemons and adopts whatever they leave behind. It holds the other end
of a pipe of ours: when we end, however we end, it kills them all, removes Slurm's cgroups and the folder. Ports are
free ones, and the names of the nodes (and so those of the cgroups) begin with a word of their own, and jobs are counted
from a number of their own: several clusters may run at once.
"""
import contextlib
import ctypes
import json
import os
import random
import re
import shutil
import signal
import socket
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOOLS = ("munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd", "sbatch", "sacctmgr")
CGROUPS = Path("/sys/fs/cgroup")
START_LIMIT = 60  # seconds for one daemon; the first start of a database on a busy machine is the longest
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

SLURM_CONF = """
ClusterName=testcluster
FirstJobId={first_job}
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller_port}
AuthType=auth/munge
# A requeued job waits until its old credential is void: 120 s by default.
AuthInfo=socket={folder}/munge.sock,cred_expire=10
CredType=cred/munge
MpiDefault=none
ReturnToService=1
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdSpoolDir={folder}/spool/%n
# Two processors are declared as more, so that jobs need not wait for each other.
SlurmdParameters=config_overrides
SlurmctldParameters=idle_on_node_suspend
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=2
MinJobAge=600
InactiveLimit=0
JobRequeue=1
TaskPlugin=task/cgroup
ProctrackType=proctrack/cgroup
JobAcctGatherType=jobacct_gather/cgroup
JobAcctGatherFrequency=5
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
DefMemPerCPU=100
{accounting}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
include {folder}/hooks.conf
NodeName={prefix}[1-2] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{node_ports}] CPUs=16 RealMemory=6000 Gres=gpu:2
PartitionName=gpu Nodes=ALL Default=YES PriorityTier=1 PreemptMode=REQUEUE
PartitionName=high Nodes=ALL PriorityTier=100 PreemptMode=OFF
"""

ACCOUNTING = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database_port}
AccountingStoragePass={folder}/munge.sock
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment
"""
NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"

HOOKS = """
Prolog={hooks}/prolog
Epilog={hooks}/epilog
TaskProlog={hooks}/task_prolog
EpilogSlurmctld={hooks}/epilog_slurmctld
PrologFlags=Alloc
"""

SLURMDBD_CONF = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={database_port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=accounting
"""

GRES_CONF = "NodeName={prefix}[1-2] Name=gpu File={folder}/dev/nvidia[0-1]\n"

CGROUP_CONF = """
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace=yes
ConstrainDevices=yes
"""


def why_not():
    """Why no cluster can run here; None where one can."""
    if os.geteuid() != 0:
        return "slurmd and its cgroups need root"
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=PATH)]
    if missing:
        return f"not installed: {' '.join(missing)}; run 'deploy/packages.sh test'"
    for controller in ("memory", "devices", "freezer", "cpuset", "cpuacct"):
        if not os.access(CGROUPS / controller / "cgroup.procs", os.W_OK):
            return f"no cgroup v1 controller '{controller}' below {CGROUPS} that may be written to"
    return None


def die_with_parent():
    """To be called between fork and exec."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Supervisor:
    """Starts the daemons of one cluster, obeys commands from standard input, ends everything at its end."""

    def __init__(self, folder, prefix, first_job, accounting):
        self.folder, self.prefix, self.first_job, self.accounting = Path(folder), prefix, first_job, accounting == "True"
        self.daemons = {}
        self.environment = {"PATH": PATH, "LC_ALL": "C.UTF-8", "SLURM_CONF": f"{folder}/slurm.conf",
                            "MYSQL_UNIX_PORT": f"{folder}/mysql.sock",
                            "SLURMRESTD_SECURITY": "disable_user_check"}  # it refuses to be root

    def commands(self):
        at = self.folder
        yield "munged", ["munged", "--foreground", "--force", f"--key-file={at}/munge.key", f"--socket={at}/munge.sock",
                         f"--pid-file={at}/munged.pid", f"--log-file={at}/munged.log", f"--seed-file={at}/munge.seed"]
        # Nothing here outlives the folder: nothing needs to reach the disk. Who may open the socket may do all.
        yield "mariadbd", ["mariadbd", "--no-defaults", "--user=root", f"--datadir={at}/database", f"--tmpdir={at}/sorting",
                           f"--socket={at}/mysql.sock", f"--pid-file={at}/mysql.pid", "--skip-networking",
                           "--skip-grant-tables", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M",
                           "--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync",
                           "--innodb-doublewrite=0", "--innodb-lock-wait-timeout=900"]
        yield "slurmdbd", ["slurmdbd", "-D"]
        yield "slurmctld", ["slurmctld", "-D"]
        for node in (1, 2):
            yield f"slurmd{node}", ["slurmd", "-D", "-N", f"{self.prefix}{node}"]
        # Not started with the others: a site may have none. Who may open the socket is who asks.
        yield "slurmrestd", ["slurmrestd", "-a", "rest_auth/local", f"unix:{at}/slurmrestd.sock"]

    def write_configuration(self):
        at = self.folder
        ports = free_ports(3)
        values = {"folder": at, "prefix": self.prefix, "controller_port": ports[0], "database_port": ports[1],
                  "node_ports": f"{ports[2]}-{ports[2] + 1}", "first_job": self.first_job}
        values["accounting"] = (ACCOUNTING if self.accounting else NO_ACCOUNTING).format(**values)
        for name, text in (("slurm.conf", SLURM_CONF), ("slurmdbd.conf", SLURMDBD_CONF), ("gres.conf", GRES_CONF),
                           ("cgroup.conf", CGROUP_CONF)):
            (at / name).write_text(text.format(**values))
        (at / "hooks.conf").touch()
        (at / "slurmdbd.conf").chmod(0o600)
        (at / "munge.key").write_bytes(os.urandom(128))
        (at / "munge.key").chmod(0o600)
        for name in ("state", "spool", "dev", "database"):
            (at / name).mkdir(mode=0o755)
        for minor in (0, 1):
            os.mknod(at / "dev" / f"nvidia{minor}", 0o20666, os.makedev(195, minor))

    def spawn(self, name):
        command = dict(self.commands())[name]
        with open(self.folder / f"{name}.out", "ab") as out:
            self.daemons[name] = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                                                  stderr=out, cwd=self.folder, preexec_fn=die_with_parent)

    def call(self, *command):
        return subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=START_LIMIT)

    def wait_for(self, name, works):
        limit = time.monotonic() + START_LIMIT
        while not works():
            if self.daemons[name].poll() is not None or time.monotonic() > limit:
                told = "".join((self.folder / f"{name}{end}").read_text(errors="replace")[-1500:]
                               for end in (".out", ".log") if (self.folder / f"{name}{end}").exists())
                raise RuntimeError(f"{name} did not start (status {self.daemons[name].returncode}): {told}")
            time.sleep(0.05)

    def start_accounting(self):
        # In one that they share, each server removes the others' temporary tables when it starts.
        (self.folder / "sorting").mkdir()
        made = self.call("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={self.folder}/database",
                         f"--tmpdir={self.folder}/sorting", "--skip-test-db", "--auth-root-authentication-method=normal",
                         "--innodb-flush-method=nosync", "--innodb-log-file-size=16M")
        if made.returncode != 0:
            raise RuntimeError(f"the database could not be made: {made.stdout}{made.stderr}")
        self.spawn("mariadbd")
        self.wait_for("mariadbd", lambda: self.call("mariadb", "--no-defaults", "-e", "select 1").returncode == 0)
        self.spawn("slurmdbd")
        # slurmctld refuses to start without accounting: 'no TRES'.
        self.wait_for("slurmdbd", lambda: self.call("sacctmgr", "-i", "add", "cluster", "testcluster").returncode == 0)

    def start(self):
        self.write_configuration()
        self.spawn("munged")
        self.wait_for("munged", (self.folder / "munge.sock").exists)
        if self.accounting:
            self.start_accounting()
        self.spawn("slurmctld")
        self.spawn("slurmd1")
        self.spawn("slurmd2")
        self.wait_for("slurmctld", lambda: self.call("sinfo", "-h", "-o", "%T").stdout.split() == ["idle"])

    def obey(self, line):
        what, name = line.split()
        if what in ("stop", "kill"):
            self.daemons[name].send_signal(signal.SIGTERM if what == "stop" else signal.SIGKILL)
            self.daemons[name].wait(START_LIMIT)
        elif what == "start":
            self.spawn(name)
        else:
            raise ValueError(f"no command '{what}'")

    def stop(self):
        """Everything that descends from us, until nothing is left; then what Slurm left in the cgroup file system."""
        limit = time.monotonic() + 20
        while time.monotonic() < limit:
            children = descendants(os.getpid())
            if not children:
                break
            for pid in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.02)
        for top in CGROUPS.glob(f"*/slurm_{self.prefix}[12]"):
            for path, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)
        shutil.rmtree(self.folder, ignore_errors=True)


def free_ports(count):
    """Free now, each with a free one after it, below the range from which the kernel hands out its own."""
    found = []
    while len(found) < count:
        port = random.randrange(20000, 32000, 2)
        try:
            for number in (port, port + 1):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", number))
        except OSError:
            continue
        if port not in found:
            found.append(port)
    return found


def descendants(root):
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError):
                parents[int(entry)] = int(Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
    found, new = set(), {root}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    return found


def supervise(folder, prefix, first_job, accounting):
    # slurmd and slurmstepd make themselves orphans: they become our children instead of init's.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    supervisor = Supervisor(folder, prefix, first_job, accounting)

    def answer(**what):
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(what), flush=True)
    try:
        supervisor.start()
        answer(ok=True)
        for line in sys.stdin:
            try:
                supervisor.obey(line)
                answer(ok=True)
            except Exception as error:  # told to who asked
                answer(error=str(error))
    except Exception as error:
        answer(error=str(error))
    finally:
        supervisor.stop()


class Cluster:
    def __init__(self, prefix=None, first_job=None, accounting=True):
        self.prefix = prefix or "".join(random.choices(string.ascii_lowercase, k=4)) + "n"
        self.nodes = [f"{self.prefix}{number}" for number in (1, 2)]
        self.folder = Path(tempfile.mkdtemp(prefix="rankscope_slurm_"))
        self.folder.chmod(0o711)
        # What is set around us would go into every job.
        self.environment = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "SLURM_CONF": f"{self.folder}/slurm.conf"}
        # Whoever watches this machine sees the jobs of all its clusters.
        first_job = str(first_job or random.randrange(10_000, 1_000_000, 1000))
        self.supervisor = subprocess.Popen(
            [sys.executable, __file__, "--supervise", self.folder, self.prefix, first_job, str(accounting)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            self.hear()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def hear(self):
        line = self.supervisor.stdout.readline()
        answer = json.loads(line) if line else {"error": "the supervisor of the cluster ended"}
        if "error" in answer:
            raise RuntimeError(answer["error"])

    def tell(self, command, daemon):
        """stop, kill or start one of: munged mariadbd slurmdbd slurmctld slurmd1 slurmd2 slurmrestd."""
        self.supervisor.stdin.write(f"{command} {daemon}\n")
        self.supervisor.stdin.flush()
        self.hear()

    def stop(self):
        with contextlib.suppress(BrokenPipeError):
            self.supervisor.stdin.close()
        self.supervisor.wait(60)
        self.supervisor.stdout.close()

    def use_hooks(self, hooks):
        """From now on: a folder with prolog, epilog, task_prolog and epilog_slurmctld."""
        (self.folder / "hooks.conf").write_text(HOOKS.format(hooks=hooks))
        # Slurm 22.05 looks once which of them there are: `scontrol reconfigure` is not enough.
        for command in ("stop", "start"):
            for daemon in ("slurmctld", "slurmd1", "slurmd2"):
                self.tell(command, daemon)
        while self.run("sinfo", "-h", "-o", "%T", check=False).split() != ["idle"]:
            time.sleep(0.2)

    def run(self, *command, check=True, **environment):
        """One of Slurm's commands; its standard output. They all wait for long when a daemon is down: never for ever."""
        done = subprocess.run(["timeout", "30", *map(str, command)], env={**self.environment, **environment},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.folder)
        if check and done.returncode != 0:
            raise RuntimeError(f"{command}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, script, *options, **environment):
        """The id of a batch job. Its output: folder/ID.out."""
        name = self.folder / f"job-{time.monotonic_ns()}.sh"
        name.write_text(f"#!/bin/bash\n{script}\n")
        told = self.run("sbatch", "--parsable", f"--output={self.folder}/%j.out", *options, name, **environment)
        return told.strip().split(";")[0]

    @staticmethod
    def free_port():
        return free_ports(1)[0]

    def output(self, job):
        path = self.folder / f"{job}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def job(self, job):
        """`scontrol show job` as a dictionary; the values' spaces are lost on names that nobody here gives."""
        line = self.run("scontrol", "show", "job", "-o", job, check=False)
        return dict(re.findall(r"(\S+?)=(\S*)", line))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--supervise"]:
        supervise(*sys.argv[2:6])
    else:
        reason = why_not()
        if reason:
            sys.exit(reason)
        with Cluster(*sys.argv[1:2]) as shown:
            print(f"export SLURM_CONF={shown.folder}/slurm.conf", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
