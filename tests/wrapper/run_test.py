#!/usr/bin/python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""`rankscope run` from outside: the command must not notice it. usage: run_test.py BINARY [TEST...]"""

import fcntl
import hashlib
import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BINARY = ""
PATIENCE_S = 60  # a bound for waits, not a delay


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("timed out waiting for " + what)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


# A command that counts the signals it gets, says when it is ready and ends on a file's appearance.
COUNTER = r"""
import os, signal, sys, time
seen = []
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, lambda n, frame: seen.append(n))
print("ready", os.getpid(), flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
print("seen", sorted(seen), flush=True)
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rankscope-run-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("SLURM_", "RANKSCOPE_"))}
        self.environment["RANKSCOPE_SOCKET"] = self.path("no-daemon.sock")

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def argv(self, *command, flags=()):
        return [BINARY, "run", "--dir", self.path("r"), *flags, "--", *command]

    def run_it(self, *command, flags=(), **keywords):
        keywords.setdefault("stdin", subprocess.DEVNULL)
        if "input" in keywords:
            del keywords["stdin"]
        keywords.setdefault("env", self.environment)
        return subprocess.run(self.argv(*command, flags=flags), cwd=self.folder, capture_output=True,
                              timeout=PATIENCE_S * 2, **keywords)

    def start(self, *command, flags=(), **keywords):
        keywords.setdefault("stdin", subprocess.DEVNULL)
        keywords.setdefault("env", self.environment)
        process = subprocess.Popen(self.argv(*command, flags=flags), cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)
        self.addCleanup(self.stop, process)
        return process

    def stop(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def log(self):
        return read(self.path("r", "log"))

    # -- bytes

    def test_bytes_are_verbatim_on_each_stream_and_in_the_log(self):
        out = bytes(range(256)) * 3 + b"\r\n\0\xff no newline at the end"
        done = self.run_it("cat", input=out)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, out, b""))
        self.assertEqual(self.log(), out)
        self.assertEqual(os.stat(self.path("r", "log")).st_mode & 0o777, 0o600)

    def test_the_two_streams_stay_apart(self):
        done = self.run_it("sh", "-c", "printf out; printf err >&2")
        self.assertEqual((done.stdout, done.stderr), (b"out", b"err"))
        self.assertEqual(sorted(self.log()), sorted(b"outerr"))

    def test_one_destination_keeps_the_order_between_the_streams(self):
        script = "for i in $(seq 500); do echo o$i; echo e$i >&2; done"
        done = subprocess.run(self.argv("sh", "-c", script), cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        expected = "".join(f"o{i}\ne{i}\n" for i in range(1, 501)).encode()
        self.assertEqual(done.stdout, expected)
        self.assertEqual(self.log(), expected)

    def test_a_flood_arrives_whole(self):
        size = 200_000_000
        process = self.start(sys.executable, "-c",
                             "import sys\nblock = bytes(range(256)) * 1000\n"
                             f"for i in range({size} // len(block) + 1):\n"
                             f"  sys.stdout.buffer.write(block[:max(0, {size} - i * len(block))])")
        whole = hashlib.sha256()
        count = 0
        while block := process.stdout.read(1 << 20):
            whole.update(block)
            count += len(block)
        self.assertEqual((process.wait(), count), (0, size))
        logged = hashlib.sha256()
        with open(self.path("r", "log"), "rb") as file:
            while block := file.read(1 << 20):
                logged.update(block)
        self.assertEqual(whole.hexdigest(), logged.hexdigest())
        pattern = hashlib.sha256()
        block = bytes(range(256)) * 1000
        for begin in range(0, size, len(block)):
            pattern.update(block[:size - begin])
        self.assertEqual(pattern.hexdigest(), whole.hexdigest())

    def test_nobody_reads_our_output_any_more(self):
        # Without us the command would die of SIGPIPE; with us it must too, and not write for ever.
        process = self.start("sh", "-c", "trap '' HUP; yes; exit 3")
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual(process.wait(PATIENCE_S), 3)

    # -- what the command finds

    def test_arguments_environment_folder_and_group(self):
        probe = ("import os, sys, json, signal; print(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ),"
                 " os.getpgrp(), os.getsid(0), sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),"
                 " sorted(os.listdir('/proc/self/fd'))]))")
        arguments = ["", "a b", "--dir", "--", "$HOME", "\xe9"]
        command = [sys.executable, "-c", probe, *arguments]
        bare = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True,
                              stdin=subprocess.DEVNULL)
        wrapped = self.run_it(*command)
        self.assertEqual(json.loads(wrapped.stdout), json.loads(bare.stdout))

    def test_dispositions_and_mask_are_inherited(self):
        probe = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
        script = ("import os, signal, sys\n"
                  "for n in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGXFSZ, signal.SIGHUP): signal.signal(n, eval(sys.argv[1]))\n"
                  "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\n"
                  "os.execv(sys.argv[2], sys.argv[2:])")
        for disposition in ("signal.SIG_IGN", "signal.SIG_DFL"):
            starter = [sys.executable, "-c", script, disposition]
            bare = subprocess.run([*starter, shutil.which("grep"), *probe[1:]], capture_output=True)
            wrapped = subprocess.run([*starter, *[BINARY, "run", "--dir", self.path(disposition), "--", *probe]],
                                     cwd=self.folder, env=self.environment, capture_output=True)
            self.assertEqual((wrapped.returncode, wrapped.stdout), (0, bare.stdout))

    def test_closed_streams_stay_closed(self):
        probe = "import os\ntry:\n  os.fstat(1)\n  os._exit(1)\nexcept OSError:\n  os._exit(7)"
        command = " ".join(f"'{word}'" for word in self.argv(sys.executable, "-c", probe))
        done = subprocess.run(["sh", "-c", command + " >&-"], cwd=self.folder, env=self.environment)
        self.assertEqual(done.returncode, 7)

    # -- ends

    def test_exit_status_is_the_commands(self):
        for number, (script, status) in enumerate([("exit 0", 0), ("exit 1", 1), ("exit 42", 42), ("exit 255", 255),
                                                   ("kill -9 $$", 137), ("kill -11 $$", 139), ("kill $$", 143)]):
            with self.subTest(script):
                done = subprocess.run([BINARY, "run", "--dir", self.path(str(number)), "--", "sh", "-c", script],
                                      env=self.environment, capture_output=True)
                self.assertEqual(done.returncode, status)

    def test_a_command_that_cannot_be_executed(self):
        script = self.path("data")
        with open(script, "w") as file:
            file.write("x")
        for number, (command, status) in enumerate([("no-such-command", 127), (self.path("gone/x"), 127),
                                                    (script, 126), (self.folder, 126)]):
            with self.subTest(command):
                folder = self.path(f"exec{number}")
                done = subprocess.run([BINARY, "run", "--dir", folder, "--", command],
                                      env=self.environment, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (status, ""))
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertIn(command, done.stderr)
                self.assertEqual(read(os.path.join(folder, "log")).decode(), done.stderr)
                self.assertEqual(json.loads(read(os.path.join(folder, "run.json")))["argv"], [command])

    def test_a_script_without_interpreter_line(self):
        with open(self.path("script"), "w") as file:
            file.write("exit 9\n")
        os.chmod(self.path("script"), 0o755)
        self.assertEqual(self.run_it(self.path("script")).returncode, 9)

    def test_refused_before_the_command_starts(self):
        marker = self.path("marker")
        with open(self.path("file"), "w"):
            pass
        wanted = self.path("file", "below")
        done = subprocess.run([BINARY, "run", "--dir", wanted, "--", "touch", marker], env=self.environment,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 125)
        self.assertIn(self.path("file"), done.stderr)
        self.assertIn("--dir", done.stderr)
        self.assertFalse(os.path.exists(marker))
        for flags in (["--drain", "soon"], ["--unknown"], ["--verdict", "loud"], ["--job-id", "a/b"], []):
            done = subprocess.run([BINARY, "run", *flags], env=self.environment, capture_output=True)
            self.assertEqual(done.returncode, 125, flags)

    def test_a_grandchild_that_keeps_the_output(self):
        # The wrapper does not wait for it for ever, and it loses nothing: not its life, not its text.
        go, out = self.path("go"), self.path("out")
        grandchild = (f"(while [ ! -e {go} ]; do sleep 0.02; done; echo late; echo survived >{out}.tmp;"
                      f" mv {out}.tmp {out}) & echo early; exit 5")
        process = self.start("sh", "-c", grandchild, flags=["--drain", "100ms"])
        self.assertEqual(process.wait(PATIENCE_S), 5)
        open(go, "w").close()
        self.assertEqual(process.stdout.read(), b"early\nlate\n")
        wait_for(lambda: os.path.exists(out), "the grandchild's end")
        wait_for(lambda: self.log() == b"early\nlate\n", "the late line in the log")

    # -- signals

    def seen_by_counter(self, process, send):
        """Starts from "ready PID" on stdout; returns the signals that the command has counted."""
        child = int(process.stdout.readline().split()[1])
        send(child)
        time.sleep(0.4)  # time for a second delivery, which must not come
        open(self.path("end"), "w").close()
        return process.stdout.readline().decode().strip()

    def test_a_signal_to_the_wrapper_is_passed_on_once(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number):
                shutil.rmtree(self.path("r"), ignore_errors=True)
                process = self.start(sys.executable, "-c", COUNTER, self.path("end"))
                self.assertEqual(self.seen_by_counter(process, lambda child: process.send_signal(number)),
                                 f"seen [{int(number)}]")
                self.assertEqual(process.wait(PATIENCE_S), 0)
                os.remove(self.path("end"))

    def test_a_signal_to_the_whole_group_arrives_once(self):
        process = self.start(sys.executable, "-c", COUNTER, self.path("end"), start_new_session=True)
        self.assertEqual(self.seen_by_counter(process, lambda child: os.killpg(process.pid, signal.SIGTERM)),
                         "seen [15]")
        self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_a_signal_to_every_process_one_by_one_arrives_once(self):
        # As slurmstepd does: each pid of the step in turn.
        process = self.start(sys.executable, "-c", COUNTER, self.path("end"), start_new_session=True)

        def send(child):
            for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
                try:
                    if os.getsid(pid) == process.pid:
                        os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
        self.assertEqual(self.seen_by_counter(process, send), "seen [15]")
        self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_control_c_at_a_terminal_arrives_once(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(BINARY, self.argv(sys.executable, "-c", COUNTER, self.path("end"),
                                        flags=["--verdict", "none"]), self.environment)
        text = b""

        def read_until(word):
            nonlocal text
            while word not in text:
                self.assertTrue(select.select([terminal], [], [], PATIENCE_S)[0], text)
                text += os.read(terminal, 4096)
        read_until(b"ready")
        read_until(b"\n")
        os.write(terminal, b"\x03")
        time.sleep(0.4)
        open(self.path("end"), "w").close()
        read_until(b"seen")
        read_until(b"]")
        self.assertIn(b"seen [2]", text)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        os.close(terminal)

    # -- a terminal

    def at_a_terminal(self, *command, flags=(), stdout=None, size=(40, 111), below_a_shell=False):
        """Starts it with a new terminal as controlling one; returns (process, the terminal's other end)."""
        argv = self.argv(*command, flags=("--verdict", "none", *flags))
        if below_a_shell:  # the end of a session's leader would hang up
            argv = ["sh", "-c", '"$@"; while [ ! -e done ]; do sleep 0.02; done; sleep 1', "sh", *argv]
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        termios.tcsetwinsize(slave, size)

        def take_terminal():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        process = subprocess.Popen(argv, cwd=self.folder, env=self.environment, stdin=slave, stdout=stdout or slave, stderr=slave,
                                   pass_fds=[slave], preexec_fn=take_terminal)
        os.close(slave)
        self.addCleanup(self.stop, process)
        return process, master

    @staticmethod
    def shown(master, until=None):
        """What the terminal was given, up to its end or up to `until`."""
        got = b""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and not (until and until in got):
            if not select.select([master], [], [], 0.1)[0]:
                continue
            try:
                block = os.read(master, 65536)
            except OSError:
                break
            if not block:
                break
            got += block
        return got

    def test_at_a_terminal_the_command_has_one(self):
        script = ("import os, sys\n"
                  "print(os.isatty(0), os.isatty(1), os.isatty(2), *os.get_terminal_size(1))\n"
                  "for i in range(3): sys.stderr.write('\\r%d/3 \\x1b[32m#\\x1b[0m' % i)\n"
                  "print('\\nend')\n")
        process, master = self.at_a_terminal(sys.executable, "-c", script)
        screen = self.shown(master)
        self.assertEqual(process.wait(PATIENCE_S), 0)
        bars = b"\r0/3 \x1b[32m#\x1b[0m\r1/3 \x1b[32m#\x1b[0m\r2/3 \x1b[32m#\x1b[0m"
        self.assertEqual(self.log(), b"True True True 111 40\n" + bars + b"\nend\n")
        # Only the user's own terminal turns a line feed into two bytes, and once.
        self.assertEqual(screen, self.log().replace(b"\n", b"\r\n"))

    def test_a_terminal_for_one_stream_only(self):
        with open(self.path("out"), "wb") as out:
            process, master = self.at_a_terminal("sh", "-c", "test ! -t 1 && test -t 2 && echo out && echo err >&2",
                                                 stdout=out)
            self.assertEqual(self.shown(master), b"err\r\n")
        self.assertEqual(process.wait(PATIENCE_S), 0)
        self.assertEqual(read(self.path("out")), b"out\n")

    def test_no_terminal_where_none_is_wanted(self):
        process, master = self.at_a_terminal("sh", "-c", "test -t 0 && test ! -t 1 && test ! -t 2", flags=("--pty", "never"))
        self.shown(master)
        self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_a_new_window_size_reaches_the_command(self):
        script = ("import os, signal, time\n"
                  "signal.signal(signal.SIGWINCH, lambda *_: None)\n"
                  "print('ready', flush=True)\n"
                  "while os.get_terminal_size(1) != (55, 22): signal.pause()\n"
                  "print('resized', flush=True)\n")
        process, master = self.at_a_terminal(sys.executable, "-c", script)
        self.assertIn(b"ready", self.shown(master, b"ready"))
        termios.tcsetwinsize(master, (22, 55))
        self.assertIn(b"resized", self.shown(master, b"resized"))
        self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_a_flood_to_a_terminal_arrives_whole(self):
        process, master = self.at_a_terminal("sh", "-c", "seq 200000")
        expected = "".join(f"{i}\n" for i in range(1, 200001)).encode()
        self.assertEqual(self.shown(master), expected.replace(b"\n", b"\r\n"))
        self.assertEqual(process.wait(PATIENCE_S), 0)
        self.assertEqual(self.log(), expected)

    def test_kill_9_of_the_wrapper_at_a_terminal(self):
        shell, master = self.at_a_terminal(
            "sh", "-c", "echo begin; while [ ! -e go ]; do sleep 0.02; done; echo end; echo >done", below_a_shell=True)
        self.assertIn(b"begin", self.shown(master, b"begin"))
        with open(f"/proc/{shell.pid}/task/{shell.pid}/children") as children:
            os.kill(int(children.read().split()[0]), signal.SIGKILL)
        open(self.path("go"), "w").close()
        wait_for(lambda: os.path.exists(self.path("done")), "the command to go on")
        self.assertIn(b"end", self.shown(master, b"end"))
        wait_for(lambda: self.log() == b"begin\nend\n", "the log")

    def test_the_terminal_goes_away(self):
        # The terminal's window is closed: a command that ignores the hang-up lives on, and its log with it.
        process, master = self.at_a_terminal(
            "sh", "-c", "trap '' HUP; echo begin; while [ ! -e go ]; do sleep 0.02; done; seq 20000; echo end; echo >done")
        self.assertIn(b"begin", self.shown(master, b"begin"))
        os.close(os.dup(master))
        os.dup2(os.open("/dev/null", os.O_RDWR), master)  # the last hold on the terminal's other end
        open(self.path("go"), "w").close()
        wait_for(lambda: os.path.exists(self.path("done")), "the command to go on")
        wait_for(lambda: self.log().endswith(b"end\n"), "the log")
        self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_stop_and_continue(self):
        # A group of its own below ours: a stop is ignored in a group that no shell could continue.
        process = self.start(sys.executable, "-c", COUNTER, self.path("end"), process_group=0)
        child = int(process.stdout.readline().split()[1])

        def state(pid):
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0]
        process.send_signal(signal.SIGTSTP)
        wait_for(lambda: state(child) == "T", "the command to stop")
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: state(child) in "SR", "the command to go on")
        open(self.path("end"), "w").close()
        self.assertEqual(process.wait(PATIENCE_S), 0)

    # -- failures of ours

    def test_kill_9_of_the_wrapper(self):
        go, out = self.path("go"), self.path("out")
        process = self.start("sh", "-c", f"echo first; while [ ! -e {go} ]; do sleep 0.02; done;"
                             f" i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo ended >{out}")
        self.assertEqual(process.stdout.readline(), b"first\n")
        recording = self.path("r", "recording")
        wait_for(lambda: any(b"first" in read(os.path.join(recording, name)) for name in os.listdir(recording)),
                 "the first line in the recording")
        process.kill()
        process.wait()
        open(go, "w").close()
        expected = b"first\n" + b"".join(b"line %d\n" % i for i in range(3000))
        self.assertEqual(b"first\n" + process.stdout.read(), expected)
        wait_for(lambda: os.path.exists(out) and read(out) == b"ended\n", "the command's own end")
        wait_for(lambda: self.log() == expected, "the whole log")

    def test_a_full_log_disk(self):
        mount = self.path("small")
        os.mkdir(mount)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", mount],
                          capture_output=True).returncode != 0:
            self.skipTest("cannot mount a tmpfs: needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", mount])
        done = subprocess.run([BINARY, "run", "--dir", os.path.join(mount, "r"), "--", "sh", "-c",
                               "head -c 3000000 /dev/zero; exit 6"], env=self.environment, capture_output=True)
        self.assertEqual((done.returncode, len(done.stdout), done.stderr), (6, 3000000, b""))
        self.assertLess(0, os.path.getsize(os.path.join(mount, "r", "log")))

    def test_a_limit_on_file_size(self):
        done = subprocess.run(["sh", "-c", 'ulimit -f 100; exec "$@"', "sh",
                               *self.argv("sh", "-c", "head -c 3000000 /dev/zero; exit 6")],
                              env=self.environment, cwd=self.folder, capture_output=True)
        self.assertEqual((done.returncode, len(done.stdout)), (6, 3000000))

    def test_a_daemon_that_accepts_and_says_nothing(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(listener.close)
        listener.bind(self.environment["RANKSCOPE_SOCKET"])
        listener.listen()
        begin = time.monotonic()
        done = self.run_it("sh", "-c", "echo text; exit 4")
        self.assertEqual((done.returncode, done.stdout), (4, b"text\n"))
        self.assertLess(time.monotonic() - begin, 10)
        self.assertTrue(os.path.exists(self.path("r", "verdict.json")))

    def test_a_daemon_that_dies_in_mid_run(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(self.environment["RANKSCOPE_SOCKET"])
        listener.listen()
        listener.settimeout(PATIENCE_S)
        go = self.path("go")
        process = self.start("sh", "-c", f"echo one; while [ ! -e {go} ]; do sleep 0.02; done; echo two; exit 8")
        connection, _ = listener.accept()
        hello, fds, _, _ = socket.recv_fds(connection, 256, 8)
        self.assertEqual((hello[:1], len(hello), len(fds)), (b"H", 152, 5))
        for fd in (*fds, connection.detach(), listener.detach()):
            os.close(fd)
        open(go, "w").close()
        self.assertEqual(process.communicate(timeout=PATIENCE_S)[0], b"one\ntwo\n")
        self.assertEqual(process.returncode, 8)

    # -- the run's folder

    def test_names_of_jobs_and_folders(self):
        environment = {key: value for key, value in self.environment.items()} | {"SLURM_JOB_ID": "8841"}
        for folder in ("8841", "8841.2", "8841.3"):
            subprocess.run([BINARY, "run", "true"], cwd=self.folder, env=environment, check=True)
            header = json.loads(read(self.path("rankscope-runs", folder, "run.json")))
            self.assertEqual((header["job_id"], header["argv"]), ("8841", ["true"]))
        subprocess.run([BINARY, "run", "true"], cwd=self.folder, env=self.environment, check=True)
        self.assertEqual(len([name for name in os.listdir(self.path("rankscope-runs"))
                              if name.startswith("run-") and len(name) == 12]), 1)
        environment["RANKSCOPE_RUN_DIR"] = self.path("deep", "er")
        subprocess.run([BINARY, "run", "--job-id=mine", "--", "true"], cwd=self.folder, env=environment, check=True)
        self.assertEqual(json.loads(read(self.path("deep", "er", "run.json")))["job_id"], "mine")

    def test_the_header_is_there_before_the_command_and_holds_no_secret(self):
        done = self.run_it("sh", "-c", "cat $0", self.path("r", "run.json"), "--api-key=hunter2hunter2")
        header = json.loads(done.stdout)
        self.assertEqual(header["argv"][3], self.path("r", "run.json"))
        self.assertNotIn(b"hunter2", done.stdout)

    def test_the_verdict_is_written_and_printed_where_asked(self):
        done = self.run_it("true", flags=["--verdict=stderr"])
        text = read(self.path("r", "verdict.txt"))
        self.assertTrue(text)
        self.assertIn(text, done.stderr)
        json.loads(read(self.path("r", "verdict.json")))
        done = self.run_it("true", flags=["--verdict=json"])
        json.loads(done.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        print("skipped: no binary", sys.argv[1:2])
        sys.exit(77)
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
