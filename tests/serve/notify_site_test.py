# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What a site sees over time: users by name though its directory hangs, an array as one summary, channels that change while it runs."""
import json
import os
import pwd
import signal
import sys
import unittest
from pathlib import Path

from notify_test import LAUNCHER, RANK, _Told
from serve_test import PATIENCE, wait_for

SLOW_USERS = os.environ.get("SLOW_USERS_LIBRARY", "build/tests/support/slow_users/libslow_users.so")
ME = pwd.getpwuid(os.geteuid()).pw_name


class NotifyUsers(_Told):
    def users(self, daemon, job):
        page = daemon.get("/metrics")[1]
        lines = [line for line in page.splitlines() if line.startswith(f'rankscope_job_info{{job_id="{job}"')]
        return lines[0].split('user="')[1].split('"')[0] if lines else None

    def test_a_user_is_a_name_everywhere(self):
        hook = self.hook()
        daemon = self.told_daemon([{"name": "hook", "kind": "webhook", "url": hook.url + "/hook"}])
        wrapper = self.train(daemon, "named")
        wait_for("the name in metrics", lambda: self.users(daemon, "named") == ME)
        self.assertIn(ME, daemon.get("/job/named")[1])
        self.assertEqual([one["job_id"] for one in json.loads(daemon.get(f"/verdict?user={ME}")[1])["verdicts"] if one["job_id"] == "named"],
                         ["named"])
        self.let_go()
        wrapper.wait(PATIENCE)
        one = wait_for("the message", lambda: self.of("named", hook.notifications()))[0]
        self.assertEqual(one["user"], ME)

    def test_a_directory_that_hangs_holds_nobody_up(self):
        hook, away = self.hook(), Path(self.folder, "away")
        away.touch()
        environment = {**os.environ, "LD_PRELOAD": SLOW_USERS, "SLOW_USERS": str(away)}
        daemon = self.told_daemon([{"name": "hook", "kind": "webhook", "url": hook.url + "/hook"}], environment=environment)
        wrapper = self.train(daemon, "slow")
        wait_for("steps", lambda: daemon.lines("slow") >= 20)
        self.assertEqual(self.users(daemon, "slow"), str(os.geteuid()), "the number, as nobody knows more")
        away.unlink()
        wait_for("the name", lambda: self.users(daemon, "slow") == ME)
        away.touch()  # what is known stays known
        self.let_go()
        wrapper.wait(PATIENCE)
        self.assertEqual(daemon.verdict("slow")["code"], "X1")
        wait_for("the message", lambda: self.of("slow", hook.notifications()))
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        # A daemon that has never had an answer tells all the same, and ends all the same.
        again = self.told_daemon([{"name": "hook", "kind": "webhook", "url": hook.url + "/hook"}], environment=environment)
        self.train(again, "slower").wait(PATIENCE)
        one = wait_for("the message without a name", lambda: self.of("slower", hook.notifications()))[0]
        self.assertEqual(one["user"], str(os.geteuid()))
        self.assertEqual(again.stop(), 0)


class NotifyArrays(_Told):
    def task(self, daemon, number, end, tasks=3):
        self.environment.update(SLURM_ARRAY_JOB_ID="990077", SLURM_ARRAY_TASK_ID=str(number), SLURM_ARRAY_TASK_COUNT=str(tasks))
        return self.train(daemon, f"99007{number}", end)

    def test_an_array_is_one_summary(self):
        mails = self.mails()
        daemon = self.told_daemon([self.mail_channel(mails.port)])
        tasks = [self.task(daemon, number, end) for number, end in enumerate(("raise", "end", "raise"))]
        for number in range(3):
            wait_for("steps", lambda: daemon.lines(f"99007{number}") >= 20)
        self.let_go()
        for task in tasks:
            task.wait(PATIENCE)
        message = wait_for("the summary", lambda: [one for one in mails.messages() if "array 990077" in one["Subject"]])[0]
        self.assertIn("array 990077: 2 failed, 1 completed; 2 X1 runtime_exception", message["Subject"].replace("\n", ""))
        text = message.get_body(("plain",)).get_content()
        for number in (0, 2):
            self.assertIn(f"job 99007{number} (task {number} of array 990077): failed", text)
        self.assertEqual([one["Subject"] for one in mails.messages() if "job 9900" in one["Subject"]], [], "none for a task")

    def test_an_array_of_one_task_is_a_job(self):
        mails = self.mails()
        daemon = self.told_daemon([self.mail_channel(mails.port)], array_wait="24h")
        self.let_go()
        self.task(daemon, 5, "raise", tasks=1).wait(PATIENCE)
        message = wait_for("the mail", lambda: self.mails_of("990075 (task 5 of array 990077)", mails))[0]
        self.assertIn("failed", message["Subject"])

    def test_a_task_that_hangs_is_told_at_once(self):
        mails = self.mails()
        daemon = self.told_daemon([self.mail_channel(mails.port)], "families: {collective_hang: {hang_floor: 5s}}\n", array_wait="24h")
        for name, text in (("launch.py", LAUNCHER), ("rank.py", RANK)):
            Path(self.folder, name).write_text(text)
        self.environment.update(SLURM_ARRAY_JOB_ID="990078", SLURM_ARRAY_TASK_ID="1", SLURM_ARRAY_TASK_COUNT="9")
        wrapper = self.run_wrapped(daemon, "990079", sys.executable, f"{self.folder}/launch.py", f"{self.folder}/rank.py", self.go)
        wait_for(f"the hang's mail; {daemon.text()}", lambda: [one for one in mails.messages() if "hangs" in one["Subject"]])
        self.let_go()
        wrapper.wait(PATIENCE)
        wait_for("its end", lambda: [one for one in mails.messages() if one["References"]])


class NotifyReload(_Told):
    def rewrite(self, channels):
        rules = [{"channels": [channel["name"] for channel in channels]}]
        Path(self.folder, "notify.yaml").write_text(json.dumps({"channels": channels, "rules": rules}))

    def hang_up(self, daemon, told):
        before = daemon.text().count(told)
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(told, lambda: daemon.text().count(told) > before)

    def paths(self, hook, job):
        return sorted(path for path, body in hook.posts if job in json.dumps(body))

    def test_channels_change_while_it_runs(self):
        hook = self.hook()
        daemon = self.told_daemon([{"name": "hook", "kind": "webhook", "url": hook.url + "/first"}])
        self.let_go()
        self.train(daemon, "before").wait(PATIENCE)
        wait_for("the first channel", lambda: self.paths(hook, "before") == ["/first"])

        self.rewrite([{"name": "other", "kind": "webhook", "url": hook.url + "/second"}])
        self.hang_up(daemon, "the configuration was read again")
        self.train(daemon, "after").wait(PATIENCE)
        wait_for("the second channel", lambda: self.paths(hook, "after"))
        self.assertEqual(self.paths(hook, "after"), ["/second"])

        # A mistake changes nothing, and says so.
        Path(self.folder, "notify.yaml").write_text("channels: [{name: x}]\n")
        self.hang_up(daemon, "the configuration has mistakes and stays as it was")
        self.assertIn("notify.yaml:1", daemon.text())
        wait_for("the metric", lambda: daemon.metric("rankscope_config_last_reload_successful") == 0)
        self.train(daemon, "still").wait(PATIENCE)
        wait_for("the second channel", lambda: self.paths(hook, "still"))
        self.assertEqual(self.paths(hook, "still"), ["/second"])

        # Nobody is to be told.
        Path(self.folder, "config.yaml").write_text("web: {max_requests: 7}\n")
        self.hang_up(daemon, "the configuration was read again")
        wait_for("what needs a restart", lambda: 'only after a restart" keys=web.max_requests' in daemon.text())
        self.assertIn("changed=notify.file", daemon.text())
        self.train(daemon, "untold").wait(PATIENCE)
        daemon.verdict("untold")
        Path(self.folder, "config.yaml").write_text(f"notify: {{file: {self.folder}/notify.yaml}}\n")
        self.rewrite([{"name": "third", "kind": "webhook", "url": hook.url + "/third"}])
        self.hang_up(daemon, "the configuration was read again")
        self.train(daemon, "again").wait(PATIENCE)
        wait_for("the third channel", lambda: self.paths(hook, "again"))
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
