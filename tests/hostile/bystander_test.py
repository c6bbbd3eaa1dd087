# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The ground that all attacks stand on: what the victim's job is said to be when nobody attacks."""
from hostile_case import PATIENCE, VICTIM, HostileTest, run_tests


class Bystander(HostileTest):
    def test_the_victims_job_is_judged_when_nobody_attacks(self):
        """No attack: the victim's failure is named."""
        daemon = self.daemon()
        run = self.train_as(VICTIM, daemon, None)
        self.let_go()
        self.assertEqual(run.wait(PATIENCE), 1)
        self.wait_for_ticks(daemon)
        (job,) = self.runs(daemon)
        verdict = daemon.verdict(job)
        self.assertEqual((verdict["code"], verdict["exception_type"]), ("X1", "KeyError"))


if __name__ == "__main__":
    run_tests()
