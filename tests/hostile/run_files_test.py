# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What wrappers hand over: files and folders that are none, that never end, or that never answer."""
import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

from hostile_case import ATTACKER, HostileTest, run_tests, wait_for
from run_case import RunSocket

HANGING = Path(__file__).resolve().parent / "hanging_fs.py"


class RunFiles(HostileTest, RunSocket):
    """Things that are no recording."""

    def test_descriptors_that_are_no_files(self):
        """The attacker passes devices, sockets, FIFOs and closed pipes instead of a directory, a log and pipes: he is disconnected."""
        daemon = self.daemon()
        self.attack(daemon, """
Recording("recording")
os.mkfifo("fifo")
fifo = os.open("fifo", os.O_RDONLY | os.O_NONBLOCK)
zero = os.open("/dev/zero", os.O_RDWR | os.O_APPEND)
pair = socket.socketpair()
tcp = socket.socket()
def refused(**what):
    client = Client(SOCKET)
    client.hello("evil", what.pop("folder", "recording"), **what)
    assert client.refused(), what
refused(folder=zero)
refused(folder=fifo)
refused(log=zero)
refused(log=fifo)
refused(log=pair[0].fileno())
refused(life=fifo)
refused(life=zero)
refused(life=tcp.fileno())
refused(streams=[fifo])
refused(streams=[os.pipe()[1]])
done("refused")
""")
        wait_for("the count", lambda: self.count(daemon, "malformed") == 10)
        self.victim_is_judged(daemon, self.victim_trains(daemon))

    def test_segments_that_are_no_files(self):
        """The segments of a recording are a FIFO, a symbolic link to a private file of root's or to a device, or a directory: nothing of
        them is read."""
        daemon = self.daemon()
        secret = self.secret_file(Path(self.folder) / "secret", "RuntimeError: of root alone\n")
        self.attack(daemon, """
clients = []
for name in ("fifo", "link", "folder", "zero"):
    os.mkdir(name)
    segment = name + "/bulk-00000001.rec"
    if name == "fifo":
        os.mkfifo(segment)
    elif name == "folder":
        os.mkdir(segment)
    else:
        os.symlink(sys.argv[2] if name == "link" else "/dev/zero", segment)
    clients.append(Client(SOCKET))
    clients[-1].hello(name, name)
    clients[-1].wake()
    clients[-1].send(bytes([67, 0]))
    assert not clients[-1].refused()
done("sent")
""", secret)
        self.wait_for_ticks(daemon)
        self.assertNotIn("of root alone", self.everything_served(daemon))
        self.victim_is_judged(daemon, self.victim_trains(daemon))

    def test_a_sparse_segment_and_one_that_grows_for_ever(self):
        """A recording has a sparse segment of a terabyte, or one that grows as fast as it is read: ticks continue, and the victim is
        judged."""
        daemon = self.daemon()
        run = self.victim_trains(daemon)
        self.attack(daemon, """
import subprocess
os.mkdir("sparse")
with open("sparse/bulk-00000001.rec", "wb") as file:
    file.truncate(1 << 40)
growing = Recording("growing")
line = b"".join(growing.line_of("growing", "x" * 500, i) for i in range(100))
clients = [Client(SOCKET), Client(SOCKET)]
clients[0].hello("sparse", "sparse")
clients[1].hello("growing", "growing")
if os.fork() == 0:
    while os.getppid() != 1 and os.path.getsize(growing.path) < 200 << 20:
        growing.write(line)
        clients[1].wake()
    os._exit(0)
done("sent")
""")
        wait_for("the flood", lambda: daemon.lines("growing") > 0)
        self.ticks_stay_close(daemon, 4)
        self.victim_is_judged(daemon, run)

    def test_frames_that_lie_about_their_size(self):
        """A recording has frames with a length of zero, a gigabyte or no end, and truncated frames: the daemon stops reading it and
        reports that."""
        daemon = self.daemon()
        self.attack(daemon, """
clients = []
for i, data in enumerate((b"\\xff" * 64, varint(1 << 30) + b"x" * 4096, varint(0) * 100000, b"\\x80" * 100000, b"\\x05ab")):
    recording = Recording(f"lie{i}")
    recording.write(data)
    clients.append(Client(SOCKET))
    clients[-1].hello(f"lie{i}", f"lie{i}")
    clients[-1].wake()
    clients[-1].send(bytes([67, 0]))
    assert not clients[-1].refused()
done("sent")
""")
        self.wait_for_ticks(daemon)
        self.victim_is_judged(daemon, self.victim_trains(daemon))

    def test_a_log_that_is_written_behind_its_end_after_the_wrappers_death(self):
        """A wrapper dies and leaves a recording with offsets out of bounds: its log is not read at these offsets."""
        daemon = self.daemon()
        self.attack(daemon, """
recording = Recording("recording")
recording.mark("evil", BEGIN)
for stream in (1, 2):
    recording.line("evil", "far", offset=(1 << 63) - 1, stream=stream)
client = Client(SOCKET)
client.hello("evil", "recording")
client.wake()
client.send(bytes([67, 0]))
assert not client.refused()
client.socket.close()
done("dead")
""")
        wait_for("its text", lambda: daemon.lines("evil") == 2)
        self.wait_for_ticks(daemon)
        self.victim_is_judged(daemon, self.victim_trains(daemon))

    def test_connections_that_linger(self):
        """The attacker passes TCP connections whose closing takes a minute, in refused packets too: ticks continue."""
        daemon = self.daemon()
        run = self.victim_trains(daemon)
        self.attack(daemon, """
import threading
Recording("recording")
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
listener.bind(("127.0.0.1", 0))
listener.listen(64)
clients = []
def lingering():
    tcp = socket.socket()
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
    tcp.connect(listener.getsockname())
    tcp.setblocking(False)
    try:
        while True:
            tcp.send(b"x" * 65536)
    except BlockingIOError:
        return tcp
for i in range(8):
    tcps = [lingering() for _ in range(2)]
    clients.append(Client(SOCKET))
    clients[-1].send(b"nonsense", [tcp.fileno() for tcp in tcps])
    for tcp in tcps:  # who closes it last waits for it
        threading.Thread(target=os.close, args=[tcp.detach()], daemon=True).start()
done("sent")
""")
        self.ticks_stay_close(daemon, 5)
        self.victim_is_judged(daemon, run)


class RunHangingFiles(HostileTest, RunSocket):
    """A file system of the attacker's own."""

    def mount(self, kind, target, options):
        libc = ctypes.CDLL(None, use_errno=True)
        target.mkdir(exist_ok=True)
        if libc.mount(kind.encode(), str(target).encode(), kind.encode(), 0, options.encode()) != 0:
            self.skipTest(f"cannot mount {kind}: {os.strerror(ctypes.get_errno())}")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", str(target)], check=True))

    def hanging_folder(self):
        """A folder on overlayfs whose lower layer is the attacker's own, as he can mount it in a user namespace."""
        home = Path(self.folder) / "mounts"
        home.mkdir()
        upper = home / "upper"
        self.mount("tmpfs", upper, "size=4m")
        for name in ("u", "w"):
            (upper / name).mkdir()
        fuse = os.open("/dev/fuse", os.O_RDWR)
        self.mount("fuse", home / "lower", f"fd={fuse},rootmode=40755,user_id=0,group_id=0,allow_other,default_permissions")
        server = subprocess.Popen([sys.executable, str(HANGING), str(fuse)], pass_fds=[fuse])
        os.close(fuse)
        self.addCleanup(lambda: (server.kill(), server.wait()))
        self.mount("overlay", home / "top", f"lowerdir={home}/lower,upperdir={upper}/u,workdir={upper}/w")
        return home / "top"

    def test_a_folder_that_does_not_answer_stops_nobody_else(self):
        """The directory of a recording is an overlay over a file system of the attacker's that hangs: ticks continue, the daemon reports
        it, and the victim is judged."""
        daemon = self.daemon()
        folder = self.hanging_folder()  # goes first: no process ends while a thread of it hangs there
        run = self.victim_trains(daemon)
        self.attack(daemon, """
clients = []
for i in range(20):
    clients.append(Client(SOCKET))
    clients[-1].hello(f"evil{i}", sys.argv[2])
    clients[-1].wake()
done("sent")
""", folder)
        wait_for("the reason", lambda: f"files of user {ATTACKER} do not answer" in daemon.text())
        self.ticks_stay_close(daemon, 4)
        # Another of his own is held up by his own alone; the victim's new run is not.
        second = self.wrapped_as(61001, daemon, "second", "sh", "-c", "echo here; exit 4")
        self.assertEqual(second.wait(60), 4)
        self.assertEqual(daemon.verdict("second")["exit_code"], 4)
        self.assertNotIn("host_pause", json.dumps(daemon.verdicts()))
        self.victim_is_judged(daemon, run)


if __name__ == "__main__":
    run_tests()
