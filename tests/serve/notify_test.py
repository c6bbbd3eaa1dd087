# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""People are told of jobs: real servers get real messages, and servers that do it wrong disturb nothing."""
import json
import os
import signal
import sys
import time
import unittest
from pathlib import Path

import notify_sinks as sinks
from serve_test import PATIENCE, ServeTest, wait_for

# Four ranks, of which the first prints steps; then all wait for a file.
LAUNCHER = r"""
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, "-u", *sys.argv[1:]], env={**os.environ, "RANK": str(r), "LOCAL_RANK": str(r),
                          "WORLD_SIZE": "4"}) for r in range(4)]
for rank in ranks:
    rank.wait()
sys.exit(3)
"""
RANK = r"""
import os, sys, time
for step in range(1, 13):
    if os.environ["RANK"] == "0":
        print(f"step {step} loss {4.0 / step + 0.5:.4f} lr 0.05 step_time 0.053s")
    time.sleep(0.2)
while os.path.isdir(os.path.dirname(sys.argv[1])) and not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
sys.exit(1)
"""


class _Told(ServeTest):
    """What the classes below share."""

    def setUp(self):
        super().setUp()
        sinks.certificate(self.folder)
        secret = Path(self.folder, "password")
        secret.write_text(sinks.PASSWORD + "\n")
        secret.chmod(0o600)

    def mails(self, port=0, **more):
        mails = sinks.Mails(self.folder, port, **more)
        self.addCleanup(mails.close)
        return mails

    def hook(self):
        hook = sinks.Webhook()
        self.addCleanup(hook.close)
        return hook

    def wrong(self, answer):
        server = sinks.WrongServer(answer)
        self.addCleanup(server.close)
        return server

    def mail_channel(self, port, name="mail", **more):
        return {"name": name, "kind": "email", "url": f"smtp://127.0.0.1:{port}", "from": "rankscope@example.org",
                "to": ["ops@example.org"], "user": sinks.USER, "password_file": f"{self.folder}/password",
                "ca_file": f"{self.folder}/ca.pem", **more}

    def told_daemon(self, channels, config="", environment=None, **more):
        rules = [{"channels": [channel["name"] for channel in channels]}]
        Path(self.folder, "notify.yaml").write_text(json.dumps({"channels": channels, "rules": rules, **more}))  # JSON is YAML
        path = Path(self.folder, "config.yaml")
        path.write_text(f"notify: {{file: {self.folder}/notify.yaml}}\n{config}")
        return self.daemon("--config", str(path), environment=environment)

    def of(self, job, notifications):
        """Other tests' jobs are on this machine, too."""
        return [one for one in notifications if one["job_id"] == job]

    def mails_of(self, job, mails):
        return [message for message in mails.messages() if f"job {job}:" in message["Subject"]]


class NotifyEnds(_Told):
    def test_a_failed_run_is_told_through_every_kind_of_channel(self):
        mails, hook, alerts = self.mails(), self.hook(), sinks.Alertmanager(self.folder)
        self.addCleanup(alerts.close)
        wait_for("Alertmanager", lambda: alerts.alerts() is not None)
        daemon = self.told_daemon([
            self.mail_channel(mails.port, log=True), {"name": "hook", "kind": "webhook", "url": hook.url + "/hook"},
            {"name": "slack", "kind": "slack", "url": hook.url + "/slack"},
            {"name": "teams", "kind": "teams", "url": hook.url + "/teams"},
            {"name": "alerts", "kind": "alertmanager", "url": alerts.url}], link="http://status.example")
        wrapper = self.train(daemon, "told-1")
        self.let_go()
        wrapper.wait(PATIENCE)
        ended = time.monotonic()
        message = wait_for("the mail", lambda: self.mails_of("told-1", mails))[0]
        arrived = next(at for at, _, one in mails.arrived if one is message)
        print(f"from the end of the run to the mail: {arrived - ended:.2f} s")
        self.assertIn("failed", message["Subject"])
        self.assertIn("X1 runtime_exception", message["Subject"])
        text = message.get_body(("plain",)).get_content()
        self.assertIn("KeyError", text)
        self.assertIn("Exit code:  1", text)
        self.assertIn("Last lines of", text)
        self.assertIn("http://status.example/job/told-1", text)
        self.assertIn("KeyError", message.get_body(("html",)).get_content())
        self.assertEqual(daemon.verdict("told-1")["code"], "X1", "whoever reads the mail finds the verdict")

        one = wait_for("the webhook", lambda: self.of("told-1", hook.notifications()))[0]
        self.assertEqual((one["status"], one["code"], one["exit_code"], one["step"]), ("failed", "X1", 1, 40))
        self.assertNotIn("log", one, "the channel may not quote the log")
        for path in ("/slack", "/teams"):
            wait_for(path, lambda: [body for where, body in hook.posts if where == path and "told-1" in json.dumps(body)])
        alert = wait_for("the alert", lambda: [one for one in alerts.alerts() or () if one["labels"]["job_id"] == "told-1"])[0]
        self.assertEqual((alert["labels"]["alertname"], alert["labels"]["code"]), ("RankscopeJobVerdict", "X1"))
        self.assertEqual(alert["generatorURL"], "http://status.example/job/told-1")
        for kind in ("email", "webhook", "slack", "teams", "alertmanager"):
            wait_for(f"the count of {kind}", lambda: daemon.metric(f'rankscope_notifications_sent_total{{channel_kind="{kind}"}}') >= 1)

    def test_success_is_told_on_request_only(self):
        hook = self.hook()
        daemon = self.told_daemon([{"name": "hook", "kind": "webhook", "url": hook.url + "/hook"}])
        self.let_go()
        self.train(daemon, "well", "end").wait(PATIENCE)
        daemon.verdict("well")
        self.train(daemon, "ill").wait(PATIENCE)
        wait_for("the second job's message", lambda: self.of("ill", hook.notifications()))
        self.assertEqual(self.of("well", hook.notifications()), [])

    def test_many_that_end_together_are_one_message(self):
        mails = self.mails()
        daemon = self.told_daemon([self.mail_channel(mails.port)], gather="10s")
        jobs = [f"of-many-{number}" for number in range(4)]
        wrappers = [self.train(daemon, job) for job in jobs]
        for job in jobs:
            wait_for("steps", lambda: daemon.lines(job) >= 20)
        self.let_go()
        for wrapper in wrappers:
            wrapper.wait(PATIENCE)
        message = wait_for("the list", lambda: [one for one in mails.messages() if "jobs:" in one["Subject"]])[0]
        self.assertIn("failed", message["Subject"])
        text = message.get_body(("plain",)).get_content()
        for job in jobs:
            self.assertIn(f"job {job}: failed", text)
        self.assertEqual([one["Subject"] for one in mails.messages() if "job of-many" in one["Subject"]], [])


class NotifyHangs(_Told):
    def test_a_hang_is_told_while_it_can_be_saved_and_its_end_follows(self):
        mails = self.mails()
        daemon = self.told_daemon([self.mail_channel(mails.port)], "families: {collective_hang: {hang_floor: 5s}}\n")
        for name, text in (("launch.py", LAUNCHER), ("rank.py", RANK)):
            Path(self.folder, name).write_text(text)
        wrapper = self.run_wrapped(daemon, "silent", sys.executable, f"{self.folder}/launch.py", f"{self.folder}/rank.py", self.go)
        first = wait_for(f"the hang's mail; {daemon.text()}", lambda: self.mails_of("silent", mails))[0]
        self.assertIn("job silent: hangs", first["Subject"])
        self.assertIsNone(wrapper.poll())
        self.let_go()
        wrapper.wait(PATIENCE)
        mail = wait_for("the end's mail", lambda: [one for one in self.mails_of("silent", mails) if one["References"]])[0]
        self.assertEqual(mail["References"], first["Message-ID"])
        self.assertEqual(mail["In-Reply-To"], first["Message-ID"])
        self.assertNotEqual(mail["Message-ID"], first["Message-ID"])


class NotifyTrouble(_Told):
    def test_servers_that_do_it_wrong_disturb_nothing(self):
        hook, untrusted = self.hook(), self.mails()
        other = Path(self.folder, "other")
        other.mkdir()
        sinks.certificate(other)
        wrong = [self.wrong(answer) for answer in (sinks.hangs, sinks.resets, sinks.garbage)]
        channels = [self.mail_channel(sinks.free_port(), "refuses"),
                    *(self.mail_channel(server.port, f"wrong-{number}") for number, server in enumerate(wrong)),
                    self.mail_channel(untrusted.port, "untrusted", ca_file=f"{other}/ca.pem"),
                    {"name": "garbage", "kind": "webhook", "url": f"http://127.0.0.1:{wrong[2].port}/"},
                    {"name": "hook", "kind": "webhook", "url": hook.url + "/hook"}]
        daemon = self.told_daemon(channels)
        self.let_go()
        begin = time.monotonic()
        wrapper = self.train(daemon, "disturbed")
        self.assertEqual(wrapper.wait(PATIENCE), 1, "the exit code is the command's")
        wait_for("the channel that works", lambda: self.of("disturbed", hook.notifications()))
        for server in wrong:
            wait_for("each to be asked", lambda: server.asked >= 1)
        wait_for("their failures", lambda: daemon.metric('rankscope_notifications_failed_total{channel_kind="email"}') >= 4)
        self.assertEqual(untrusted.arrived, [], "nothing is said to whom no certificate proves")
        self.assertEqual(daemon.get("/-/ready")[0], 200)
        print(f"with five relays that do it wrong: {time.monotonic() - begin:.1f} s until all were asked")
        self.assertEqual(daemon.verdict("disturbed")["code"], "X1")
        self.assertNotIn(sinks.PASSWORD, daemon.text())
        begin = time.monotonic()
        self.assertEqual(daemon.stop(), 0)
        self.assertLess(time.monotonic() - begin, PATIENCE / 2)

    def test_what_was_not_sent_is_sent_after_kill_9(self):
        port = sinks.free_port()
        daemon = self.told_daemon([self.mail_channel(port)])
        self.let_go()
        self.train(daemon, "later").wait(PATIENCE)
        wait_for("the attempt", lambda: daemon.metric('rankscope_notifications_failed_total{channel_kind="email"}') >= 1)
        os.kill(daemon.process.pid, signal.SIGKILL)
        daemon.process.wait()
        spooled = [path.name for path in Path(daemon.state, "notify").glob("*.msg") if "later" in path.name]
        self.assertEqual(len(spooled), 1)
        mails = self.mails(port)
        again = self.daemon("--config", str(Path(self.folder, "config.yaml")))
        message = wait_for("the mail", lambda: self.mails_of("later", mails))[0]
        self.assertEqual(message["Message-ID"], f"<{spooled[0][:-4]}@example.org>")
        wait_for("an empty spool", lambda: not list(Path(again.state, "notify").glob("*later*.msg")))
        self.assertEqual(len(self.mails_of("later", mails)), 1)


if __name__ == "__main__":
    unittest.main()
