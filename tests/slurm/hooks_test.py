# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The hooks of deploy/slurm/ without Slurm: what they write, and that nothing makes them fail or wait."""
import http.server
import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

HOOKS = Path(__file__).resolve().parents[2] / "deploy" / "slurm"
NAMES = ("prolog", "epilog", "task_prolog", "epilog_slurmctld")
PATIENCE = 30  # seconds; reached only when something is broken
VERDICT = ("job 41  A2 signal_kill (sigkill)  SIGKILL  confidence 0.85, two sources agree  rank 1  final, killed: rank 1 was terminated "
           "by SIGKILL, without a \"traceback\"; the launcher names it too: in a long line; 40 steps were seen\n")


# Slurm's name of a node is not its host's, and its address is another thing still.
SCONTROL = r"""
case "$*" in
  "show hostnames "*) printf "%s\n" n1 n2 ;;
  "--oneliner show node n1,n2")
    echo "NodeName=n1 Arch=x86_64 CoresPerSocket=1 NodeAddr=127.0.0.1 NodeHostName=rack7-1 Version=22.05.8 Reason=a NodeAddr=127.0.0.9 b"
    echo "NodeName=n2 Arch=x86_64 NodeAddr=localhost NodeHostName=rack7-2" ;;
  *) exit 1 ;;
esac
"""


class Answers(http.server.ThreadingHTTPServer):
    """Answers as a daemon does, with each of `texts` in turn, the last for ever; None is 'not known here'."""
    daemon_threads = True

    def __init__(self, *texts):
        super().__init__(("127.0.0.1", 0), AnswerOnce)
        self.texts, self.asked, self.summary = list(texts), [], None
        threading.Thread(target=self.serve_forever, daemon=True).start()


class AnswerOnce(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append((self.path, self.headers["Accept"]))
        if "/summary?" in self.path:
            text = self.server.summary
        else:
            text = self.server.texts[0] if len(self.server.texts) == 1 else self.server.texts.pop(0)
        self.send_response(404 if text is None else 200)
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, *_):
        pass


class HookTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rankscope_hooks_")
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)
        self.hooks = self.folder / "hooks"
        shutil.copytree(HOOKS, self.hooks)
        self.map = self.folder / "map"
        self.configure()

    def configure(self, **more):
        values = {"job_mapping": self.map, "dump_dir": f"{self.folder}/dumps-%u/%j", "wait": 0, **more}
        (self.hooks / "rankscope.conf").write_text("".join(f"{name}={value}\n" for name, value in values.items()))

    def run_hook(self, name, preexec=None, limit=2.0, **environment):
        """As Slurm does: no PATH. Checks what Slurm asks of a hook, and returns what it printed."""
        began = time.monotonic()
        done = subprocess.run([self.hooks / name], env={key: str(value) for key, value in environment.items()}, cwd="/",
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
                              preexec_fn=preexec)
        took = time.monotonic() - began
        self.assertEqual(done.returncode, 0, f"{name} with {environment}")
        self.assertEqual(done.stderr, "")
        self.assertLess(took, limit, f"{name} with {environment}")  # 0.1 s on a machine that is not busy
        return done.stdout

    def mapped(self):
        return {file.name: file.read_text().split() for file in self.map.iterdir() if file.name[0] != "."}


class AnyHook(HookTest):
    ODD = ("", "41\n42", "41; touch /tmp/x", "$(exit 9)", "-1", "4" * 400, "*", "../..", "0x10", "08")

    def test_odd_environments_do_no_harm(self):
        for name in NAMES:
            with self.subTest(name):
                self.assertEqual(self.run_hook(name), "")
                for odd in self.ODD:
                    self.run_hook(name, SLURM_JOB_ID=odd, SLURM_JOB_GPUS="0", SLURM_JOB_NODELIST="n1", RANKSCOPE_TASK_ENV="all")
                    self.run_hook(name, SLURM_JOB_ID="41", SLURM_JOB_GPUS=odd, SLURM_JOB_NODELIST=odd,
                                  RANKSCOPE_TASK_ENV=odd, SLURM_JOB_COMMENT=odd)

    def test_a_configuration_that_is_none(self):
        for name in NAMES:
            for content in (None, b"", b"job_mapping\n", b"\0\xff\x80" * 4000, b"exit 9\nset -e\nfalse\n$(", b"wait=x\nurl=\n"):
                with self.subTest(name, content=content):
                    path = self.hooks / "rankscope.conf"
                    path.unlink(missing_ok=True)
                    if content is not None:
                        path.write_bytes(content + f"\njob_mapping={self.map}\n".encode())
                    self.run_hook(name, SLURM_JOB_ID="41")

    def test_a_full_disk(self):
        self.map.mkdir()
        (self.map / "0").symlink_to("/dev/full")
        for name in NAMES:
            self.run_hook(name, SLURM_JOB_ID="41", SLURM_JOB_GPUS="0,1", RANKSCOPE_TASK_ENV="all")

    def test_a_folder_that_is_none(self):
        self.map.write_text("a file")
        Path(self.folder, f"dumps-{os.getuid()}").write_text("a file")
        for name in NAMES:
            printed = self.run_hook(name, SLURM_JOB_ID="41", SLURM_JOB_GPUS="0", RANKSCOPE_TASK_ENV="all")
            self.assertNotIn("TEMP_FILE", printed)


class JobMapping(HookTest):
    def test_each_gpu_has_its_jobs_and_loses_them(self):
        self.run_hook("prolog", SLURM_JOB_ID=41, SLURM_JOB_GPUS="0,1")
        self.run_hook("prolog", SLURM_JOB_ID=41, SLURM_JOB_GPUS="0,1")  # requeued without an epilog
        self.run_hook("prolog", SLURM_JOB_ID=4, SLURM_JOB_GPUS="1,3-5")
        self.assertEqual(self.mapped(), {"0": ["41"], "1": ["41", "4"], "3": ["4"], "4": ["4"], "5": ["4"]})
        self.run_hook("epilog", SLURM_JOB_ID=41)
        self.assertEqual(self.mapped(), {"1": ["4"], "3": ["4"], "4": ["4"], "5": ["4"]})
        self.run_hook("epilog", SLURM_JOB_ID=4, SLURM_JOB_GPUS="1,3-5")
        self.assertEqual(self.mapped(), {})

    def test_a_job_without_gpus_writes_nothing(self):
        self.run_hook("prolog", SLURM_JOB_ID=41)
        self.assertFalse(self.map.exists())

    def test_many_at_once_lose_nothing(self):
        def all_of(name, jobs):
            threads = [threading.Thread(target=self.run_hook, args=(name,),
                                        kwargs={"SLURM_JOB_ID": job, "SLURM_JOB_GPUS": "0", "limit": PATIENCE}) for job in jobs]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        all_of("prolog", range(1, 13))
        self.assertEqual(sorted(map(int, self.mapped()["0"])), list(range(1, 13)))

    def test_whoever_reads_it_may(self):
        self.run_hook("prolog", SLURM_JOB_ID=41, SLURM_JOB_GPUS="0", preexec=lambda: os.umask(0o077))
        self.assertEqual(stat.S_IMODE((self.map / "0").stat().st_mode), 0o644)


class TaskEnvironment(HookTest):
    def exported(self, **environment):
        printed = self.run_hook("task_prolog", SLURM_JOB_ID=environment.pop("job", 41), **environment)
        for line in printed.splitlines():
            self.assertRegex(line, r"^export [A-Z][A-Z_]*=\S+$")
        return dict(line[7:].split("=", 1) for line in printed.splitlines())

    def test_nobody_asked(self):
        self.assertEqual(self.exported(), {})
        self.assertEqual(self.exported(RANKSCOPE_TASK_ENV="none"), {})
        self.assertEqual(self.exported(RANKSCOPE_TASK_ENV="0"), {})

    def test_all(self):
        folder = f"{self.folder}/dumps-{os.getuid()}/41"
        self.assertEqual(self.exported(RANKSCOPE_TASK_ENV="1"), {
            "PYTHONUNBUFFERED": "1", "NCCL_RAS_ADDR": "localhost:20041", "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
            "TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{folder}/nccl_trace_rank_",
            "TORCH_FR_DUMP_TEMP_FILE": f"{folder}/nccl_trace_rank_"})
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)

    def test_some_of_it(self):
        self.assertEqual(set(self.exported(RANKSCOPE_TASK_ENV="ras, unbuffered")), {"NCCL_RAS_ADDR", "PYTHONUNBUFFERED"})

    def test_a_site_asks_for_all_and_a_job_declines(self):
        self.configure(task_env="unbuffered")
        self.assertEqual(set(self.exported()), {"PYTHONUNBUFFERED"})
        self.assertEqual(self.exported(RANKSCOPE_TASK_ENV="none"), {})

    def test_what_the_user_has_set_stays(self):
        own = {"PYTHONUNBUFFERED": "", "NCCL_RAS_ADDR": "localhost:1", "TORCH_FR_BUFFER_SIZE": "9",
               "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/mine", "TORCH_NCCL_DUMP_ON_TIMEOUT": "0"}
        self.assertEqual(self.exported(RANKSCOPE_TASK_ENV="1", **own), {})

    def test_the_inspector_where_there_is_one(self):
        self.assertEqual(self.exported(RANKSCOPE_TASK_ENV="inspector"), {})
        plugin = self.folder / "libnccl-profiler-inspector.so"
        plugin.touch()
        self.configure(inspector_plugin=plugin)
        self.assertEqual(self.exported(RANKSCOPE_TASK_ENV="inspector"), {
            "NCCL_PROFILER_PLUGIN": str(plugin), "NCCL_INSPECTOR_ENABLE": "1",
            "NCCL_INSPECTOR_DUMP_DIR": f"{self.folder}/dumps-{os.getuid()}/41",
            "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS": "1000000"})
        self.assertEqual(self.exported(RANKSCOPE_TASK_ENV="inspector", NCCL_PROFILER_PLUGIN="other"), {})

    def test_ports_of_jobs_that_run_together_differ(self):
        ports = {self.exported(RANKSCOPE_TASK_ENV="ras", job=job)["NCCL_RAS_ADDR"] for job in (7, 8, 11999, 12000, 4294967295)}
        self.assertEqual(len(ports), 5)
        for port in ports:
            self.assertIn(int(port.rsplit(":")[-1]), range(20000, 32000))

    @unittest.skipUnless(os.getuid() == 0, "making a folder of somebody else's needs root")
    def test_a_folder_of_somebody_else_is_not_used(self):
        folder = Path(self.folder, f"dumps-{os.getuid()}")
        folder.mkdir(mode=0o777)
        os.chown(folder, 12345, 12345)
        self.assertNotIn("TORCH_FR_DUMP_TEMP_FILE", self.exported(RANKSCOPE_TASK_ENV="flight"))


class Digest(HookTest):
    """Slurm's commands are scripts here: what accounting has is a file, and what it is told is another one."""

    def setUp(self):
        super().setUp()
        self.bin, self.told = self.folder / "bin", self.folder / "told"
        self.bin.mkdir()
        self.accounted, self.more = {"Comment": "", "AdminComment": ""}, {}
        for name, script in (("scontrol", SCONTROL), ("sacct", f'cat {self.folder}/"${{@: -1}}"'),
                             ("sacctmgr", f'printf "%s\\n" "$@" >{self.told}.new; mv {self.told}.new {self.told}')):
            (self.bin / name).write_text(f"#!/bin/bash\n{script}\n")
            (self.bin / name).chmod(0o755)

    def end_job(self, *texts, server=None, wait=0, **environment):
        for field, value in self.accounted.items():
            (self.folder / f"--format=JobIDRaw,{field}").write_text(f"40|another\n41|{value}\n")
        self.told.unlink(missing_ok=True)
        self.server = server or Answers(*texts)
        self.addCleanup(self.server.server_close)
        port = self.server.server_address[1]
        self.configure(**{"url": f"http://127.0.0.1:{port}/%n", "slurm_bin": self.bin, "wait": wait, **self.more})
        self.run_hook("epilog_slurmctld", SLURM_JOB_ID=41, SLURM_JOB_NODELIST="n[1-2]", **environment)

    def written(self):
        limit = time.monotonic() + PATIENCE
        while not self.told.exists():
            self.assertLess(time.monotonic(), limit, "nothing was written")
            time.sleep(0.02)
        told = self.told.read_text()
        self.assertEqual(told.count("\n"), 8, told)  # one line an argument
        field, value = told.splitlines()[-1].split("=", 1)
        self.assertLessEqual(len(value.encode()), 1000)
        self.assertTrue(value.isprintable(), value)
        return field, value

    def ended(self):
        """Waits until what the hook left behind has gone."""
        limit = time.monotonic() + PATIENCE
        while subprocess.run(["pgrep", "-f", f"{self.hooks}/epilog_slurmctld"], capture_output=True).returncode == 0:
            self.assertLess(time.monotonic(), limit, "the hook's background does not end")
            time.sleep(0.05)

    DIGEST = ("[rankscope A2 signal_kill (sigkill) SIGKILL confidence 0.85, two sources agree rank 1 final, killed: rank 1 was terminated by "
              "SIGKILL, without a 'traceback'; the launcher names it too: in a long line; 40 steps were seen]")

    def test_the_verdict_in_a_line(self):
        self.end_job(VERDICT)
        self.assertEqual(self.written(), ("Comment", self.DIGEST))
        self.assertEqual(self.server.asked, [("/n1/digest?job_id=41", "text/plain"),
                                             ("/n1/summary?job_id=41", "text/plain")])

    def test_nodes_whose_names_are_no_host_names_are_asked_at_their_addresses(self):
        for texts, asked in (((VERDICT,), ["/n1"]), ((None, VERDICT), ["/n1", "/n2"])):
            server = Answers(*texts)
            self.more = {"url": f"http://%a:{server.server_address[1]}/%n"}
            self.end_job(server=server)
            self.assertEqual(self.written(), ("Comment", self.DIGEST))
            self.assertEqual([path for path, _ in server.asked if "/digest" in path], [f"{node}/digest?job_id=41" for node in asked])

    def test_the_exit_code_is_that_of_the_hook(self):
        for environment, said in (({"SLURM_JOB_EXIT_CODE2": "1:0"}, ", slurm exit code 1:0"),
                                  ({"SLURM_JOB_EXIT_CODE2": "0:0", "SLURM_JOB_DERIVED_EC": "256"}, ", slurm exit code 0:0, of a step 1:0"),
                                  ({"SLURM_JOB_EXIT_CODE2": "0:125", "SLURM_JOB_DERIVED_EC": "125"}, ", slurm exit code 0:125"),
                                  ({"SLURM_JOB_EXIT_CODE2": "1:0 $(x)"}, "")):
            self.end_job(VERDICT, **environment)
            self.assertEqual(self.written()[1], self.DIGEST.replace("final, killed", "final, killed" + said))

    def test_accounting_that_is_away_is_asked_again(self):
        tries = self.folder / "tries"
        (self.bin / "sacctmgr").write_text(
            f'#!/bin/bash\necho x >>{tries}\n(($(wc -l <{tries}) > 2)) || exit 1\nprintf "%s\\n" "$@" >{self.told}.new; mv {self.told}.new {self.told}\n')
        self.end_job(VERDICT)
        self.assertEqual(self.written(), ("Comment", self.DIGEST))
        self.ended()
        self.assertEqual(tries.read_text().count("x"), 3)

    def test_accounting_that_stays_away_is_given_up(self):
        (self.bin / "sacctmgr").write_text("#!/bin/bash\nexit 1\n")
        self.more = {"retry": 2}
        self.end_job(VERDICT)
        self.ended()
        self.assertFalse(self.told.exists())

    SUMMARY = "rs1 job:41 end:1795444490 try:0 code:^a2 node:n1 prog:train.py step:5:400 of:1000 loss:2.61:0.702 " \
              "mad:0.0131 records:80 saves:2 ckpt:/scratch/^run~207/step_400.pt:91000000:400 ."

    def with_summary(self, summary):
        server = Answers(VERDICT)
        server.summary = summary
        self.end_job(server=server)
        return self.written()[1]

    def test_what_is_left_of_the_job_comes_behind_the_first_line(self):
        self.assertEqual(self.with_summary(self.SUMMARY + "\n"), self.DIGEST.replace(": ", "; " + self.SUMMARY + " ", 1))

    def test_of_a_long_summary_the_words_that_fit(self):
        value = self.with_summary(self.SUMMARY[:-1] + "ckpt:" + "x" * 400 + ":1:2 .\n")
        self.assertIn("; " + self.SUMMARY + " rank 1 was terminated by", value)

    def test_a_summary_of_another_job_or_of_other_bytes_is_none(self):
        for summary in (self.SUMMARY.replace("41", "411", 1), self.SUMMARY.replace("train", "Train"), "<html>", "\0" * 5000,
                        self.SUMMARY.replace("n1", "n1]"), "rs1 job:41 $(x)"):
            self.assertEqual(self.with_summary(summary), self.DIGEST, summary[:60])

    def test_the_users_comment_comes_first(self):
        self.accounted["Comment"] = "grid search, part 7"
        self.end_job(VERDICT)
        self.assertEqual(self.written(), ("Comment", "grid search, part 7 " + self.DIGEST))

    def test_a_comment_that_was_not_accounted(self):
        self.end_job(VERDICT, SLURM_JOB_COMMENT="grid search")
        self.assertEqual(self.written(), ("Comment", "grid search " + self.DIGEST))

    def test_a_comment_that_would_be_changed_is_left_alone(self):
        for comment in ('Grid search', 'a "b"', "it's"):
            self.accounted = {"Comment": comment, "AdminComment": "paid by b"}
            self.end_job(VERDICT)
            self.assertEqual(self.written(), ("AdminComment", "paid by b " + self.DIGEST))

    def test_a_comment_with_lines(self):
        self.accounted["Comment"] = "one\ntwo"
        self.end_job(VERDICT, SLURM_JOB_COMMENT="one\ntwo")
        self.assertEqual(self.written()[0], "AdminComment")

    def test_a_requeued_job_has_one_digest(self):
        self.accounted["Comment"] = "mine [rankscope f2 requeue_preemption final]"
        self.end_job(VERDICT)
        self.assertEqual(self.written(), ("Comment", "mine " + self.DIGEST))

    def test_it_is_short_enough(self):
        self.accounted["Comment"] = "x" * 700
        self.end_job(VERDICT.replace("a \"traceback\"", "y" * 5000))
        field, value = self.written()
        self.assertEqual((field, len(value)), ("Comment", 1000))
        self.assertTrue(value.startswith("x" * 700 + " [rankscope A2") and value.endswith("]"), value)

    def test_a_full_comment_stays(self):
        self.accounted["Comment"] = "x" * 980
        self.end_job(VERDICT)
        self.ended()
        self.assertFalse(self.told.exists())

    def test_an_element_of_an_array(self):
        self.end_job(VERDICT, SLURM_ARRAY_JOB_ID="39", SLURM_ARRAY_TASK_ID="2")
        self.written()
        self.assertIn("jobid=39_2", self.told.read_text().splitlines())

    def test_the_final_verdict_is_waited_for(self):
        self.end_job(VERDICT.replace("final", "live"), VERDICT, wait=20)
        self.assertEqual(self.written()[1], self.DIGEST)

    def test_the_last_word_when_it_does_not_come(self):
        self.end_job(VERDICT.replace("final", "live"))
        self.assertEqual(self.written()[1], self.DIGEST.replace("final", "live"))

    def test_the_next_node_when_the_first_does_not_know(self):
        self.end_job(None, VERDICT)
        self.assertEqual(self.written()[1], self.DIGEST)
        self.assertEqual([path for path, _ in self.server.asked],
                         ["/n1/digest?job_id=41", "/n2/digest?job_id=41", "/n2/summary?job_id=41"])

    def test_what_is_no_verdict_of_this_job_is_not_written(self):
        for text in (None, "", "<html>", VERDICT.replace("41", "411"), "\0" * 5000, "x" * 1000000):
            self.end_job(text)
            self.ended()
            self.assertFalse(self.told.exists(), text and text[:40])

    def test_text_that_would_break_the_line(self):
        self.end_job(VERDICT.replace("a \"traceback\"", "`x` $(x) \x1b[31m\t|\\ \u20ac] [rankscope"))
        self.written()

    def test_an_option_that_looks_like_one_is_text(self):
        self.end_job(VERDICT, SLURM_JOB_COMMENT="--help -x =")
        self.assertEqual(self.written(), ("Comment", "--help -x = " + self.DIGEST))

    def test_a_server_that_hangs_or_is_not_there(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            for port in (silent.getsockname()[1], 1):
                self.configure(url=f"http://127.0.0.1:{port}", slurm_bin=self.bin)
                self.run_hook("epilog_slurmctld", SLURM_JOB_ID=41, SLURM_JOB_NODELIST="n1")
                self.ended()
                self.assertFalse(self.told.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
