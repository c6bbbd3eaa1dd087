# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What the attacks on the run socket share: an attacker that speaks its protocol by hand."""
import re
import subprocess
from pathlib import Path

from hostile_case import ATTACKER, PATIENCE, VICTIM, wait_for

CLIENT = (Path(__file__).resolve().parent / "run_client.py").read_text()


class RunSocket:
    def attack(self, daemon, script, *arguments, uid=ATTACKER, **options):
        """`script` runs as the attacker with the client's names; it ends with done(...). Returns what it has printed then."""
        process = self.python_as(uid, f"{CLIENT}\nSOCKET = sys.argv[1]\n{script}", daemon.socket, *map(str, arguments),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(lambda: [stream.close() for stream in (process.stdin, process.stdout, process.stderr)])
        said = process.stdout.readline()
        if not said:
            raise AssertionError(process.stderr.read())
        self.attacker = process
        return said.strip()

    def count(self, daemon, kind):
        found = re.search(rf'^rankscope_run_refusals_total{{kind="{kind}"}} (\S+)', daemon.get("/metrics")[1], re.M)
        return float(found[1]) if found else 0

    def ticks_stay_close(self, daemon, count, most=6.0):
        """That so many ticks come, none later than `most` seconds of the daemon's own clock behind the one before.

        Two on a machine that is not busy: bench/tenants.py measures that.
        """
        times = []

        def look():
            now = daemon.metric("rankscope_last_tick_timestamp_seconds")
            if now is not None and (not times or now > times[-1]):
                times.append(now)
            return len(times) > count
        wait_for("ticks", look)
        gaps = [after - before for before, after in zip(times, times[1:])]
        self.assertLessEqual(max(gaps), most, gaps)

    def victim_trains(self, daemon, job="victim"):
        """Its run, once the daemon has heard of it."""
        run = self.train_as(VICTIM, daemon, job)
        try:
            wait_for("the victim's job", lambda: job in daemon.verdicts() and daemon.lines(job))
        except AssertionError as error:
            raise AssertionError(f"{error}: the run: {run.poll()}; the daemon: {daemon.text()}") from error
        return run

    def victim_is_judged(self, daemon, run, job="victim"):
        self.let_go()
        self.assertEqual(run.wait(PATIENCE), 1)
        verdict = daemon.verdict(job)
        self.assertEqual((verdict["code"], verdict["exception_type"], verdict["exit_code"]), ("X1", "KeyError", 1))
        return verdict
