# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A name server that never answers holds nobody up beyond the deadline of a request."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from serve_test import BINARY, ServeTest  # noqa: E402

SILENT = "127.0.0.53"
# The resolver gives up after three minutes at the earliest, and a request of the command after 10 s.
RESOLVER = f"nameserver {SILENT}\noptions timeout:30 attempts:5\n"
LONG_BEFORE_THE_RESOLVER = 100


class NameServer(ServeTest):
    def test_one_that_is_silent_ends_a_request_at_its_deadline(self):
        if os.geteuid() != 0 or not shutil.which("unshare"):
            self.skipTest("another /etc/resolv.conf: needs root and unshare")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent, tempfile.NamedTemporaryFile("w") as resolver:
            try:
                silent.bind((SILENT, 53))
            except OSError as error:
                self.skipTest(f"{SILENT}:53: {error}")
            resolver.write(RESOLVER)
            resolver.flush()
            command = subprocess.run(
                ["unshare", "--mount", "sh", "-c", 'mount --bind "$1" /etc/resolv.conf && exec "$0" verdict --address node.example:1 1',
                 BINARY, resolver.name], capture_output=True, text=True, timeout=LONG_BEFORE_THE_RESOLVER, check=False)
            if "mount:" in command.stderr:
                self.skipTest(command.stderr.strip())
            self.assertNotEqual(command.returncode, 0)
            self.assertIn("node.example:1 does not answer in time", command.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
