#!/usr/bin/python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""`rankscope run` from outside: the command must not notice it. usage: run_test.py [TEST...]"""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from wrapper_case import BINARY, COUNTER, PATIENCE_S, WrapperTest, main, read, wait_for


class RunTest(WrapperTest):
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

    def test_wrong_usage_is_refused_before_the_command_starts(self):
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
        self.assertEqual((done.returncode, len(done.stdout)), (6, 3000000))
        self.assertIn(b"No space left on device; the log is in ", done.stderr)
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
                              if re.fullmatch(rf"run-{os.getuid()}-[0-9a-f]{{8}}", name)]), 1)
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
    main()
