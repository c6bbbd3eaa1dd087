# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed at random points while runs go on; the large version is bench/kill_points.py."""
import os

from hostile_case import HostileTest, run_tests
from kill_points import rounds

SEED = int(os.environ.get("RANKSCOPE_TEST_SEED", "1"))


class Kills(HostileTest):
    def test_a_daemon_that_is_killed_says_what_it_has_missed(self):
        """The daemon is killed twelve times during four runs: no verdict is wrong, each gap is reported, and no verdict is wrongly
        called exact."""
        told = []
        print(f"seed {SEED}", flush=True)
        total = rounds(self.folder, SEED, kills=12, runs_in_round=4, number_of_rounds=1, steps=220, report=told.append)
        self.assertEqual(total.kills, 12)
        self.assertEqual([total.right, total.told, total.wrongly_exact], [4, total.gaps, 0], "\n".join(told))


if __name__ == "__main__":
    run_tests()
