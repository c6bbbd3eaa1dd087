# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What a hostile user may do beside others, one kind a row: name, what it does, and the text of a Python program that does it
without end. Each gets the daemon's run socket as its first argument, the wrapper's binary as its second, and a folder of its
own as its third and working directory."""

PRELUDE = r"""
import os, sys, time, socket, signal, subprocess, random, itertools
SOCKET, BINARY, HOME = sys.argv[1:4]
def spawn(arguments, **environment):
    return os.posix_spawn(arguments[0], arguments, {**os.environ, **{key: str(value) for key, value in environment.items()}})
def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
def rank(number=0, world=1, job=None):
    named = {"SLURM_JOB_ID": str(job)} if job else {}
    return {"RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": str(world), **named}
def become_rank(*args, **kwargs):
    if not os.environ.get("RANK"):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **rank(*args, **kwargs)})
def print_lines(line):
    data = (line * (1 + 65536 // len(line)))[:262144]
    while True:
        os.write(1, data)
"""

TENANTS = {
    "fork storm": """
        become_rank()
        while True:
            if os.fork() == 0:
                os._exit(0)
            reap()
    """,
    "fork bomb of 2,000 sleepers": """
        become_rank()
        while True:
            children = []
            for _ in range(2000):
                pid = os.fork()
                if pid == 0:
                    time.sleep(600)
                    os._exit(0)
                children.append(pid)
            for pid in children:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
    """,
    "exec storm, each with RANK set": """
        for number in itertools.count():
            spawn(["/bin/true"], **rank(number % 64, 64))
            reap()
    """,
    "a job by each program": """
        for number in itertools.count():
            spawn(["/bin/true"], **rank(job=100000 + number % 5000))
            reap()
    """,
    "300 fake ranks": """
        for number in range(300):
            spawn(["/bin/sleep", "600"], **rank(number, 300))
        time.sleep(600)
    """,
    "WORLD_SIZE of 10^9, distinct ranks": """
        for number in itertools.count():
            spawn(["/bin/sleep", "0.2"], **rank((number * 7919) % 10**9, 10**9, job=777))
            reap()
            time.sleep(0.001)
    """,
    "log flood into a file": """
        become_rank()
        os.dup2(os.open(HOME + "/flood", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        data = b"step 1 loss 2.5 lr 0.1\\n" * 4096
        while True:
            os.pwrite(1, data, 0)
            os.write(1, data)
            if os.lseek(1, 0, 1) > 1 << 28:
                os.ftruncate(1, 0)
                os.lseek(1, 0, 0)
    """,
    "log flood into a pipe": """
        become_rank()
        pipe = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        os.dup2(pipe.stdin.fileno(), 1)
        print_lines(b"step 1 loss 2.5 lr 0.1\\n")
    """,
    "log flood through the wrapper": """
        if len(sys.argv) < 5:
            os.execv(BINARY, [BINARY, "run", "--socket", SOCKET, "--dir", HOME + "/run", "--", sys.executable, *sys.orig_argv[1:], "inner"])
        print_lines(b"step 1 loss 2.5 lr 0.1\\n")
    """,
    "tracebacks without end": """
        become_rank()
        pipe = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        os.dup2(pipe.stdin.fileno(), 1)
        print_lines(b'Traceback (most recent call last):\\n  File "x.py", line 1, in <module>\\n    f()\\nKeyError: 1\\n')
    """,
    "lines of a megabyte": """
        become_rank()
        pipe = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        os.dup2(pipe.stdin.fileno(), 1)
        print_lines(b"loss " * 200000 + b"\\n")
    """,
    "binary output": """
        become_rank()
        pipe = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        os.dup2(pipe.stdin.fileno(), 1)
        while True:
            os.write(1, os.urandom(65536))
    """,
    "60 writers": """
        pipe = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for number in range(60):
            if not os.environ.get("RANK") and os.fork() == 0:
                os.dup2(pipe.stdin.fileno(), 1)
                become_rank(number, 60)
        while True:
            if os.environ.get("RANK"):
                os.write(1, b"step 1 loss nan lr 0.1\\n" * 2000)
            time.sleep(0.1)
    """,
    "numbers that are none, steps that jump": """
        become_rank()
        pipe = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        os.dup2(pipe.stdin.fileno(), 1)
        for number in itertools.count():
            step = random.choice((1, 10**18, -5, number, 0))
            loss = random.choice(("nan", "inf", "-inf", "1e308", "0", "1e-308"))
            os.write(1, f"step {step} loss {loss} grad_norm nan lr {loss}\\n".encode() * 50)
    """,
    "500 threads": """
        import threading
        become_rank()
        for _ in range(500):
            threading.Thread(target=lambda: [time.sleep(0.01) for _ in iter(int, 1)], daemon=True).start()
        time.sleep(600)
    """,
    "1,000 open files": """
        become_rank()
        files = [open(f"{HOME}/file{number}", "w") for number in range(950)]
        for number in itertools.count():
            files[number % 950].write("loss 1\\n" * 100)
            files[number % 950].flush()
    """,
    "wrapped runs that come and go": """
        for number in itertools.count():
            running = [subprocess.Popen([BINARY, "run", "--socket", SOCKET, "--dir", f"{HOME}/run{number % 400}-{each}", "--", "/bin/true"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for each in range(8)]
            for process in running:
                process.wait()
    """,
    "70 wrapped runs": """
        running = [subprocess.Popen([BINARY, "run", "--socket", SOCKET, "--job-id", f"tenant-{each}", "--dir", f"{HOME}/run{each}", "--",
                                     "/bin/sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for each in range(70)]
        time.sleep(600)
    """,
    "noise on the run socket": """
        while True:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
                try:
                    peer.connect(SOCKET)
                    peer.sendall(os.urandom(random.choice((1, 7, 4096, 65536))))
                except OSError:
                    time.sleep(0.001)
    """,
    "run sockets held open": """
        held = []
        while True:
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                peer.connect(SOCKET)
                held.append(peer)
            except OSError:
                time.sleep(0.05)
            if len(held) > 900:
                held.clear()
    """,
    "its own job stopped and continued": """
        children = [spawn(["/bin/sleep", "600"], **rank(number, 8)) for number in range(8)]
        while True:
            for pid in children:
                os.kill(pid, signal.SIGSTOP)
            for pid in children:
                os.kill(pid, signal.SIGCONT)
    """,
    "environments and arguments of 120 kB": """
        while True:
            spawn(["/bin/true", "x" * 120000, "loss" * 20000], JUNK="y" * 120000, **rank(0, 1, job="9" * 60))
            reap()
    """,
    "names of 15 bytes that steer": """
        for number in itertools.count():
            path = HOME + "/\\u202e\\x1b[2J" + str(number % 50)
            if not os.path.exists(path):
                os.symlink("/bin/true", path)
            spawn([path], **rank(job=f"{number % 900}"))
            reap()
    """,
    "restarts by the hundred": """
        for number in itertools.count():
            for each in range(4):
                spawn(["/bin/true"], TORCHELASTIC_RUN_ID="x", TORCHELASTIC_RESTART_COUNT=number, SLURM_RESTART_COUNT=number % 300,
                      **rank(each, 4, job=555))
            reap()
            time.sleep(0.005)
    """,
    "signals without end": """
        children = [spawn(["/bin/sleep", "600"], **rank(number, 8)) for number in range(8)]
        while True:
            for pid in children:
                os.kill(pid, signal.SIGWINCH)
    """,
}
