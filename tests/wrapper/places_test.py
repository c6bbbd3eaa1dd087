# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing that the wrapper lacks keeps the command from running: a folder, a disk, descriptors, threads, processes."""
import json
import os
import resource
import subprocess
import unittest

from wrapper_case import BINARY, PATIENCE_S, WrapperTest, main, read

STRANGER = 61001  # without a name, a home or another process


class Places(WrapperTest):
    def setUp(self):
        super().setUp()
        self.state = self.path("state")
        self.environment["XDG_STATE_HOME"] = self.state
        with open(self.path("file"), "w"):
            pass

    def bare(self, *command, flags=(), before=None, user=None, **environment):
        options = {"user": user, "group": user, "extra_groups": []} if user else {}
        return subprocess.run([BINARY, "run", *flags, "--", *command], env={**self.environment, **environment}, cwd="/",
                              preexec_fn=before, capture_output=True, timeout=PATIENCE_S * 2, **options)

    def verdict_in(self, folder):
        with open(os.path.join(folder, "verdict.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_a_folder_that_cannot_be_made(self):
        done = self.bare("sh", "-c", "echo out; exit 7", flags=["--dir", self.path("file", "below"), "--job-id", "j"])
        self.assertEqual((done.returncode, done.stdout), (7, b"out\n"))
        other = os.path.join(self.state, "rankscope", "runs", "j")
        note = f"the log is in {other}"
        self.assertIn(note.encode(), done.stderr)
        self.assertIn(self.path("file").encode(), done.stderr)
        self.assertEqual(read(os.path.join(other, "log")), b"out\n")
        self.assertTrue(any(note in text for text in self.verdict_in(other)["data_quality"]["notes"]))

    def test_the_next_place_and_the_next(self):
        temporary = self.path("tmp")
        os.mkdir(temporary)
        done = self.bare("sh", "-c", "exit 3", flags=["--dir", self.path("file", "x")], XDG_STATE_HOME=self.path("file"),
                         HOME=self.path("file"), TMPDIR=temporary)
        self.assertEqual(done.returncode, 3)
        (folder,) = os.listdir(temporary)
        self.assertRegex(folder, r"^rankscope-run-\w{6}$")
        self.assertEqual(os.stat(os.path.join(temporary, folder)).st_mode & 0o777, 0o700)
        self.assertIn(os.path.join(temporary, folder).encode(), done.stderr)

    def test_no_place_at_all(self):
        # A file of no byte may be written: not even the header fits anywhere.
        def before():
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        done = self.bare("sh", "-c", "echo out; exit 7", before=before, flags=["--dir", self.path("r"), "--verdict", "stderr"],
                         TMPDIR=self.path("tmp"))
        self.assertEqual((done.returncode, done.stdout), (7, b"out\n"))
        self.assertIn(b"so no log is kept", done.stderr)
        self.assertIn(b"exit", done.stderr)  # and still a verdict

    def test_few_descriptors(self):
        for most in range(4, 40):
            with self.subTest(most=most):
                def before(most=most):
                    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
                done = self.bare("sh", "-c", "echo out; exit 7", before=before, flags=["--dir", self.path(f"n{most}")])
                self.assertEqual((done.returncode, done.stdout), (7, b"out\n"), done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "becomes another user")
    def test_few_processes(self):
        home = self.path("home")
        os.mkdir(home)
        os.chown(home, STRANGER, STRANGER)
        os.chmod(self.folder, 0o755)
        for most in range(1, 9):
            with self.subTest(most=most):
                # prlimit counts against the user that the process is when it forks.
                script = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_NPROC, ({most}, {most})); os.execv(sys.argv[1], sys.argv[1:])"
                done = subprocess.run(["/usr/bin/python3", "-c", script, self.program(), "run", "--dir", f"{home}/r{most}", "--", "sh", "-c",
                                       "echo out; exit 7"], env=self.environment, cwd="/", capture_output=True, timeout=PATIENCE_S * 2,
                                      user=STRANGER, group=STRANGER, extra_groups=[])
                self.assertEqual((done.returncode, done.stdout), (7, b"out\n"), done.stderr)

    def program(self):
        """Where others may go."""
        copy = self.path("rankscope")
        if not os.path.exists(copy):
            subprocess.run(["cp", BINARY, copy], check=True)
        return copy

    @unittest.skipUnless(os.geteuid() == 0, "mounts")
    def test_a_disk_that_fills_in_the_middle(self):
        mount = self.path("small")
        os.mkdir(mount)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", mount], check=False).returncode != 0:
            self.skipTest("cannot mount a tmpfs")
        self.addCleanup(subprocess.run, ["umount", "-l", mount], check=True)
        done = self.bare("sh", "-c", "seq 1 200000; exit 5", flags=["--dir", f"{mount}/r", "--job-id", "j"])
        self.assertEqual(done.returncode, 5)
        self.assertEqual(len(done.stdout), sum(len(str(number)) + 1 for number in range(1, 200001)))
        other = os.path.join(self.state, "rankscope", "runs", "j")
        self.assertIn(f"the log is in {other}".encode(), done.stderr)
        self.assertEqual(read(f"{mount}/r/log") + read(os.path.join(other, "log")), done.stdout)

    def test_a_command_that_is_not_there(self):
        done = self.bare("/nowhere", flags=["--dir", self.path("file", "below")])
        self.assertEqual(done.returncode, 127)


if __name__ == "__main__":
    main()
