# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Pressure stall information: there where the kernel counts it, and said to be missing where it does not. Some
kernels do not unless they are booted with psi=1; tests/second_kernel runs this test under one that is booted with psi=0."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from serve_test import ServeTest, wait_for  # noqa: E402


def counted():
    """Whether the kernel counts it. Where it is switched off the file may exist, and reading it fails."""
    try:
        return Path("/proc/pressure/cpu").read_text().startswith("some")
    except OSError:
        return False


class Pressure(ServeTest):
    def test_is_up_where_the_kernel_counts_it_and_says_so_where_it_does_not(self):
        daemon = self.daemon()
        up = 'rankscope_source_up{source="pressure"}'
        if counted():
            wait_for("the source to be up", lambda: daemon.metric(up) == 1)
            return
        wait_for("the reason on the page", lambda: "/proc/pressure is missing" in daemon.get("/")[1])
        self.assertEqual(daemon.metric(up), 0)
        self.assertNotIn("\nrankscope_job_pressure_", daemon.get("/metrics")[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
