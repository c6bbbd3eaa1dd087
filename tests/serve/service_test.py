# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What systemd is told by a service of Type=notify."""
import signal
import socket
import time
import unittest

from serve_test import PATIENCE, ServeTest, wait_for


class Service(ServeTest):
    def listen(self, address):
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(address)
        manager.settimeout(PATIENCE)
        return manager

    def test_it_is_told_of_the_start_of_life_and_of_the_end(self):
        manager = self.listen(f"{self.folder}/notify")
        daemon = self.daemon(environment=self.environment | {"NOTIFY_SOCKET": f"{self.folder}/notify", "WATCHDOG_USEC": "600000"})
        self.assertTrue(manager.recv(4096).decode().startswith("READY=1\n"))
        for _ in range(3):
            self.assertEqual(manager.recv(4096), b"WATCHDOG=1")
        daemon.process.send_signal(signal.SIGTERM)
        said = wait_for("the end", lambda: next((word for word in iter(lambda: manager.recv(4096), b"") if word != b"WATCHDOG=1"), None))
        self.assertEqual(said, b"STOPPING=1")

    def test_a_daemon_that_stands_still_is_not_alive(self):
        manager = self.listen(f"{self.folder}/notify")
        daemon = self.daemon(environment=self.environment | {"NOTIFY_SOCKET": f"{self.folder}/notify", "WATCHDOG_USEC": "600000"})
        self.assertTrue(manager.recv(4096).decode().startswith("READY=1\n"))
        daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(daemon.process.send_signal, signal.SIGCONT)
        manager.settimeout(2)
        with self.assertRaises(TimeoutError):
            while True:
                manager.recv(4096)

    def test_abstract_names_and_another_process(self):
        name = f"rankscope-test-{time.monotonic_ns()}"
        manager = self.listen("\0" + name)
        self.daemon(environment=self.environment | {"NOTIFY_SOCKET": f"@{name}", "WATCHDOG_USEC": "600000", "WATCHDOG_PID": "1"})
        self.assertTrue(manager.recv(4096).decode().startswith("READY=1\n"))
        manager.settimeout(1.5)
        with self.assertRaises(TimeoutError):
            manager.recv(4096)

    def test_nobody_listens(self):
        daemon = self.daemon(environment=self.environment | {"NOTIFY_SOCKET": f"{self.folder}/nothing", "WATCHDOG_USEC": "90000"})
        self.assertIsNone(daemon.process.poll())


if __name__ == "__main__":
    unittest.main(verbosity=2)
