# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""`rankscope run` without a daemon tells people itself, and whatever their servers do, the command's exit status is the run's."""
import ctypes
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

import notify_sinks as sinks
from notify_test import _Told
from serve_test import BINARY, PATIENCE, Daemon, wait_for

# How a command ends, and the exit status that a shell gives it.
ENDS = {
    "ends-well": ("exit 0", 0), "fails": ("exit 1", 1), "fails-oddly": ("exit 77", 77), "is-killed": ("kill -9 $$", 137),
    "crashes": ("kill -SEGV $$", 139), "is-terminated": ("kill -TERM $$", 143),
    "raises": (f"exec {sys.executable} -c 'raise KeyError(\"missing\")'", 1),
    "runs-out-of-memory": ("echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.' >&2; exit 1", 1),
    "closes-its-output": ("exec >&- 2>&-; exit 3", 3), "is-not-there": ("exec /no/such/program", 127),
    "is-no-program": ("exec /etc/passwd", 126),
}


class _Alone(_Told):
    """Runs that have no daemon, of a user who has a configuration of his own."""

    def setUp(self):
        super().setUp()
        if os.path.lexists("/etc/rankscope/notify.yaml"):
            self.skipTest("this machine has a configuration of its site")
        self.environment.update(XDG_CONFIG_HOME=f"{self.folder}/config", XDG_STATE_HOME=f"{self.folder}/state",
                                RANKSCOPE_SOCKET=f"{self.folder}/no-daemon.sock")
        self.left = Path("/var/spool/rankscope" if Path("/var/spool/rankscope").is_dir() else f"{self.folder}/state/rankscope/notify")
        self.home = self.folder
        self.addCleanup(self.end_senders)

    def configure(self, channels, path=None, **more):
        rules = [{"channels": [channel["name"] for channel in channels]}]
        path = Path(path or f"{self.folder}/config/rankscope/notify.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"channels": channels, "rules": rules, **more}))
        path.chmod(0o644)

    def run_alone(self, job, *command, flags=(), **options):
        options.setdefault("env", self.environment)
        return subprocess.run([BINARY, "run", "--job-id", job, "--dir", f"{self.folder}/runs/{job}", *flags, "--", *command],
                              capture_output=True, text=True, timeout=PATIENCE * 2, cwd=self.folder, **options)

    def senders(self):
        """Processes that send for this test: they have its folder, or that of its user, in their environment."""
        found = []
        for process in Path("/proc").iterdir():
            try:
                if b"deliver" in (process / "cmdline").read_bytes().split(b"\0") and \
                        self.home.encode() in (process / "environ").read_bytes():
                    found.append(int(process.name))
            except (OSError, ValueError):
                continue
        return found

    def end_senders(self):
        for process in self.senders():
            os.kill(process, signal.SIGKILL)

    def waiting(self):
        return sorted(self.left.glob("*.msg"))

    def deliver(self, *flags, **options):
        options.setdefault("env", self.environment)
        return subprocess.run([BINARY, "deliver", *flags], capture_output=True, text=True, timeout=PATIENCE * 2, **options)


class NotifyRunEnds(_Alone):
    def test_a_failed_run_sends_a_mail_and_leaves_nothing(self):
        mails = self.mails()
        self.configure([self.mail_channel(mails.port, log=True)])
        self.let_go()
        done = self.run_alone("alone", sys.executable, f"{self.folder}/train.py", self.go, "raise")
        ended = time.monotonic()
        self.assertEqual(done.returncode, 1)
        message = wait_for("the mail", lambda: self.mails_of("alone", mails))[0]
        print(f"from the end of the run to the mail: {mails.arrived[0][0] - ended:.2f} s")
        text = message.get_body(("plain",)).get_content()
        for part in ("KeyError", "Exit code:   1", "Reported by: rankscope run, without a daemon", "Last lines of", "Last step:   40"):
            self.assertIn(part, text)
        wait_for("an empty spool", lambda: not self.waiting())
        wait_for("the sender's end", lambda: not self.senders())

    def test_success_is_told_on_request_and_others_may_be_chosen(self):
        hook = self.hook()
        self.configure([{"name": "hook", "kind": "webhook", "url": hook.url + "/hook"}])
        self.assertEqual(self.run_alone("well", "true").returncode, 0)
        self.assertEqual(self.run_alone("on-request", "true", flags=("--notify", "hook,completed")).returncode, 0)
        one = wait_for("the message", lambda: self.of("on-request", hook.notifications()))[0]
        self.assertEqual((one["status"], one["exit_code"]), ("completed", 0))
        self.assertEqual(self.of("well", hook.notifications()), [])

    def test_files_of_the_run_are_attached_and_what_was_left_out_is_named(self):
        mails = self.mails()
        self.configure([self.mail_channel(mails.port, log=True)])
        script = "mkdir out; echo last words >out/a.log; mkfifo out/pipe; ln -s /etc/passwd out/link; truncate -s 2G out/core; exit 1"
        done = self.run_alone("with-files", "sh", "-c", script, flags=("--artifacts", "out/*", "--artifacts-size", "64KiB"))
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        message = wait_for("the mail", lambda: self.mails_of("with-files", mails))[0]
        attachment = next(message.iter_attachments())
        self.assertEqual(attachment.get_filename(), "artifacts.tar.gz")
        with tarfile.open(fileobj=io.BytesIO(attachment.get_content())) as archive:
            self.assertEqual(archive.getnames(), ["out/a.log"])
            self.assertEqual(archive.extractfile("out/a.log").read(), b"last words\n")
        text = message.get_body(("plain",)).get_content()
        for line in ("out/a.log, 11 bytes", "out/pipe, 0 bytes: a pipe", "out/link, 11 bytes: a symbolic link", "out/core, 2147483648 bytes: larger"):
            self.assertIn(line, text)
        self.assertIn("left out/pipe", Path(self.folder, "runs/with-files/artifacts.txt").read_text())

    def test_who_asks_in_vain_is_told_so(self):
        done = self.run_alone("in-vain", "true", flags=("--notify", "ops"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("/etc/rankscope/notify.yaml", done.stderr)
        self.assertEqual(self.run_alone("unasked", "false").stderr, "")

    def test_a_daemon_that_holds_the_job_sends_instead(self):
        of_run, of_daemon = self.hook(), self.hook()
        self.configure([{"name": "hook", "kind": "webhook", "url": of_run.url + "/hook"}])
        daemon = self.told_daemon([{"name": "hook", "kind": "webhook", "url": of_daemon.url + "/hook"}])
        self.environment["RANKSCOPE_SOCKET"] = daemon.socket
        self.let_go()
        self.run_alone("held", sys.executable, f"{self.folder}/train.py", self.go, "raise")
        self.assertEqual(self.waiting(), [])
        wait_for("the daemon's message", lambda: self.of("held", of_daemon.notifications()))
        self.assertEqual(of_run.posts, [])

    def test_a_daemon_that_notifies_of_nothing_leaves_it_to_the_run(self):
        hook = self.hook()
        self.configure([{"name": "hook", "kind": "webhook", "url": hook.url + "/hook"}])
        daemon = self.daemon()
        self.environment["RANKSCOPE_SOCKET"] = daemon.socket
        self.let_go()
        self.run_alone("answered", sys.executable, f"{self.folder}/train.py", self.go, "raise")
        self.assertEqual(wait_for("the message", lambda: self.of("answered", hook.notifications()))[0]["code"], "X1")


class NotifyRunPromises(_Alone):
    def test_the_log_exists_before_the_command_starts(self):
        self.configure([self.mail_channel(sinks.free_port())])
        folder = f"{self.folder}/runs/first"
        done = self.run_alone("first", "sh", "-c", f"test -f {folder}/log && test ! -s {folder}/log && grep -q argv {folder}/run.json")
        self.assertEqual(done.returncode, 0)

    def test_the_exit_status_is_the_commands_whatever_the_relays_do(self):
        works, untrusted = self.mails(), self.mails()
        rejects = self.mails(answer="550 not from you")
        other = Path(self.folder, "other")
        other.mkdir()
        sinks.certificate(other)
        wrong_password = Path(self.folder, "wrong-password")
        wrong_password.write_text("guessed\n")
        wrong_password.chmod(0o600)
        servers = {name: self.wrong(answer) for name, answer in (("hangs", sinks.hangs), ("resets", sinks.resets),
                                                                 ("garbage", sinks.garbage), ("quits", sinks.quits))}
        self.configure([
            self.mail_channel(works.port, "works"), self.mail_channel(sinks.free_port(), "refuses"),
            *(self.mail_channel(server.port, name) for name, server in servers.items()),
            self.mail_channel(rejects.port, "rejects"), self.mail_channel(untrusted.port, "untrusted", ca_file=f"{other}/ca.pem"),
            self.mail_channel(untrusted.port, "unknown", password_file=str(wrong_password))], gather="2s")
        quiet = {key: value for key, value in self.environment.items() if key != "XDG_CONFIG_HOME"}
        for name, (script, status) in ENDS.items():
            with self.subTest(name):
                alone = self.run_alone(f"quiet-{name}", "sh", "-c", script, env={**quiet, "HOME": "/nonexistent"})
                told = self.run_alone(name, "sh", "-c", script)
                self.assertEqual(told.returncode, status)
                self.assertEqual((told.returncode, told.stdout, told.stderr), (alone.returncode, alone.stdout, alone.stderr))
        for name, server in servers.items():
            wait_for(f"{name} to be asked", lambda server=server: server.asked >= 1)
        failed = [name for name, (_, status) in ENDS.items() if status != 0]

        def told_of():
            text = "".join(message["Subject"] + message.get_body(("plain",)).get_content() for message in works.messages())
            return [name for name in failed if f"job {name}:" in text]
        wait_for("the relay that works to hear of all", lambda: told_of() == failed)
        self.assertEqual(untrusted.arrived, [], "nothing is said to whom no certificate proves, nor to whom we are unknown")
        self.assertNotEqual(self.waiting(), [], "what was not taken waits")

    def test_a_disk_that_takes_nothing_and_no_sender_change_nothing(self):
        self.configure([self.mail_channel(sinks.free_port())])
        Path(self.folder, "state").write_text("a file")
        if self.left.parent.name == "rankscope":
            done = self.run_alone("no-room", "sh", "-c", "exit 5")
            self.assertEqual(done.returncode, 5)
            self.assertIn("nobody is notified", done.stderr)
        alone = Path(self.folder, "bin")
        alone.mkdir()
        shutil.copy(BINARY, alone)
        done = subprocess.run([alone / "rankscope", "run", "--dir", f"{self.folder}/runs/lonely", "--", "sh", "-c", "exit 6"],
                              env={**self.environment, "XDG_STATE_HOME": f"{self.folder}/other"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 6)
        self.assertIn("rankscope deliver", done.stderr)


class NotifyRunLater(_Alone):
    def test_what_a_killed_sender_has_left_the_next_run_sends(self):
        port = sinks.free_port()
        self.configure([self.mail_channel(port)])
        self.run_alone("killed", "sh", "-c", "exit 1")
        for process in wait_for("the sender", self.senders):
            os.kill(process, signal.SIGKILL)
        self.assertEqual(len(self.waiting()), 1)
        done = self.deliver("--for", "1500ms")
        self.assertEqual(done.returncode, 1)
        self.assertIn("channel mail", done.stderr)
        mails = self.mails(port)
        self.assertEqual(self.run_alone("next", "true").returncode, 0)
        wait_for("the mail", lambda: self.mails_of("killed", mails))
        wait_for("an empty spool", lambda: not self.waiting())
        self.assertEqual(len(mails.messages()), 1)

    def test_what_was_taken_without_a_word_is_sent_again_as_the_same(self):
        mails = self.mails(answer="451 try again", answers=1)
        self.configure([self.mail_channel(mails.port)])
        self.run_alone("twice", "sh", "-c", "exit 1")
        wait_for("both", lambda: len(self.mails_of("twice", mails)) >= 2)
        first, second = self.mails_of("twice", mails)
        self.assertEqual(first["Message-ID"], second["Message-ID"])
        self.assertTrue(first["Message-ID"].startswith("<rs.twice."))


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class NotifyRunSite(_Alone):
    """The site's file and the shared folder, in a mount namespace of the test; runs of another user."""

    NOBODY = 65534

    def setUp(self):
        super().setUp()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x00020000) != 0:  # CLONE_NEWNS
            self.skipTest("no mount namespace")
        upper = Path(self.folder, "upper")
        upper.mkdir()
        steps = (("--make-rprivate", "/"), ("-t", "tmpfs", "none", upper), ("-t", "tmpfs", "none", "/var/spool"))
        if any(subprocess.run(("mount", *step), capture_output=True).returncode for step in steps):
            self.skipTest("no mounts")
        self.addCleanup(subprocess.run, ("umount", upper))
        (upper / "u").mkdir()
        (upper / "w").mkdir()
        if subprocess.run(("mount", "-t", "overlay", "-o", f"lowerdir=/etc,upperdir={upper}/u,workdir={upper}/w", "none", "/etc"),
                          capture_output=True).returncode:
            self.skipTest("no overlay")
        self.addCleanup(subprocess.run, ("umount", "-l", "/etc"))
        self.left = Path("/var/spool/rankscope")
        self.left.mkdir()
        self.left.chmod(0o1777)
        self.work = self.home = tempfile.mkdtemp(dir="/var/spool")
        os.chown(self.work, self.NOBODY, self.NOBODY)
        shutil.copy(BINARY, self.work)
        shutil.copy(f"{BINARY}-serve", self.work)
        self.environment.update(HOME=self.work, XDG_CONFIG_HOME=f"{self.work}/config", XDG_STATE_HOME=f"{self.work}/state")

    def run_as_nobody(self, job, *command):
        return subprocess.run([f"{self.work}/rankscope", "run", "--job-id", job, "--", *command], env=self.environment, cwd=self.work,
                              user=self.NOBODY, group=self.NOBODY, extra_groups=(), capture_output=True, text=True, timeout=PATIENCE)

    def site(self, channels, **more):
        self.configure(channels, "/etc/rankscope/notify.yaml", **more)

    def test_the_sites_file_stands_before_the_users(self):
        site, own = self.hook(), self.hook()
        self.site([{"name": "hook", "kind": "webhook", "url": site.url + "/hook"}])
        self.configure([{"name": "hook", "kind": "webhook", "url": own.url + "/hook"}], f"{self.work}/config/rankscope/notify.yaml")
        self.assertEqual(self.run_as_nobody("of-site", "sh", "-c", "exit 1").returncode, 1)
        one = wait_for("the message", lambda: self.of("of-site", site.notifications()))[0]
        self.assertEqual(one["user"], "nobody")
        self.assertEqual(own.posts, [])

    def test_a_file_that_others_can_write_is_not_believed(self):
        hook = self.hook()
        self.site([{"name": "hook", "kind": "webhook", "url": hook.url + "/hook"}])
        os.chmod("/etc/rankscope/notify.yaml", 0o666)
        self.run_as_nobody("unbelieved", "sh", "-c", "exit 1")
        wait_for("the sender's end", lambda: not self.senders())
        done = self.deliver("--user", str(self.NOBODY))
        self.assertEqual(done.returncode, 1)
        self.assertIn("others can write it", done.stderr)
        self.assertEqual(hook.posts, [])
        os.chmod("/etc/rankscope/notify.yaml", 0o644)
        done = self.deliver("--user", str(self.NOBODY))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.of("unbelieved", hook.notifications())), 1, "root sends it with the user's rights")

    def test_what_only_root_can_send_the_daemon_sends(self):
        mails, hook = self.mails(), self.hook()
        self.site([self.mail_channel(mails.port), {"name": "hook", "kind": "webhook", "url": hook.url + "/hook"}])
        self.run_as_nobody("of-root", "sh", "-c", "exit 1")
        wait_for("what the user may send", lambda: self.of("of-root", hook.notifications()))
        wait_for("the sender's end", lambda: not self.senders())
        self.assertEqual(len(self.waiting()), 1)
        config = Path(self.folder, "daemon.yaml")
        config.write_text("notify: {file: /etc/rankscope/notify.yaml}\n")
        daemon = Daemon(self.folder, "--config", str(config))
        self.addCleanup(daemon.stop)
        message = wait_for(f"the mail; {daemon.text()}", lambda: self.mails_of("of-root", mails))[0]
        self.assertIn("User:        nobody", message.get_body(("plain",)).get_content())
        wait_for("an empty spool", lambda: not self.waiting())
        self.assertEqual(len(self.of("of-root", hook.notifications())), 1, "it is not sent again through the other channel")

    def test_the_epilog_sends_what_was_left(self):
        port = sinks.free_port()
        hook = self.hook()
        self.site([{"name": "hook", "kind": "webhook", "url": f"http://127.0.0.1:{port}/hook"}])
        self.run_as_nobody("of-epilog", "sh", "-c", "exit 1")
        for process in wait_for("the sender", self.senders):
            os.kill(process, signal.SIGKILL)
        self.site([{"name": "hook", "kind": "webhook", "url": hook.url + "/hook"}])
        hooks = Path(self.folder, "hooks")
        shutil.copytree(Path(__file__).resolve().parents[2] / "deploy" / "slurm", hooks)
        Path(hooks, "rankscope.conf").write_text(f"rankscope={self.work}/rankscope\njob_mapping={self.folder}/map\n")
        done = subprocess.run([hooks / "epilog"], env={"SLURM_JOB_ID": "41", "SLURM_JOB_UID": str(self.NOBODY)}, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0)
        wait_for("the message", lambda: self.of("of-epilog", hook.notifications()))
        wait_for("an empty spool", lambda: not self.waiting())


if __name__ == "__main__":
    unittest.main()
