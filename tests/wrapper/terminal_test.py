#!/usr/bin/python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""`rankscope run` at a terminal: the command has one of its own. usage: terminal_test.py [TEST...]"""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time

from wrapper_case import BINARY, COUNTER, PATIENCE_S, WrapperTest, main, read, wait_for


class TerminalTest(WrapperTest):
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


if __name__ == "__main__":
    main()
