# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Files that the attacker may not read, and would like the daemon to read and show: where the kernel's source of output is not
up, so that output is read from the files that processes have open, and where libraries leave their dumps.

A set-user-ID program stands for all that a node has: a copy of Python with that bit, which only the tests' own scripts run.
"""
import os
import shutil
import subprocess
from pathlib import Path

from file_case import SECRET, WAITS, Files
from hostile_case import ATTACKER, VICTIM, HostileTest, run_tests, together, wait_for

GROUP = 61100
SETUID, SYS_PTRACE = 7, 19  # linux/capability.h

# Tries on each thread of the daemon what its own user may do to a process, and says what was allowed.
TRIES = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
done = []
for thread in map(int, os.listdir(f"/proc/{sys.argv[1]}/task")):
    for name, attempt in (("kill", lambda: os.kill(thread, 0)), ("priority", lambda: os.setpriority(os.PRIO_PROCESS, thread, 19)),
                          ("affinity", lambda: os.sched_setaffinity(thread, {0})),
                          ("memory", lambda: open(f"/proc/{thread}/mem", "rb")), ("files", lambda: os.listdir(f"/proc/{thread}/fd"))):
        try:
            attempt()
            done.append(name)
        except PermissionError:
            pass
    if libc.ptrace(0x4206, thread, 0, 0) == 0:
        done.append("trace")
print("allowed:", *done, flush=True)
"""


@together
class PrivateFiles(HostileTest, Files):
    def begin(self):
        super().begin()
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest(f"{self.folder} is mounted nosuid")
        self.suid = Path(self.folder) / "helper"
        shutil.copy("/usr/bin/python3", self.suid)
        os.chmod(self.suid, 0o4755)

    def helper(self, script, *arguments, **options):
        """The attacker starts the set-user-ID program."""
        return self.rank_as(ATTACKER, None, self.suid, "-c", script, *arguments, **options)

    # What must go on.

    def test_the_users_own_private_file_is_heard(self):
        """No attack: a user's own output file of mode 0600 is read."""
        path = self.secret("own", uid=VICTIM, folder=self.common)
        with open(path, "ab") as out:
            self.rank_as(VICTIM, out, "/usr/bin/python3", "-c", WAITS, "marker")
        yield
        self.wait_until_heard(SECRET + "own")

    def test_a_groups_file_is_heard_by_its_members(self):
        """No attack: a group's log is read for a user who is in the group."""
        def member():
            os.setgroups([GROUP])
            os.setresgid(VICTIM, VICTIM, VICTIM)
            os.setresuid(VICTIM, VICTIM, VICTIM)
        with open(self.secret("members", mode=0o640, gid=GROUP, folder=self.common), "ab") as out:
            self.start_with_rights(member, out, "/usr/bin/python3", "-c", WAITS, "member")
        yield
        self.wait_until_heard(SECRET + "members")

    def test_a_file_of_roots_own_job_is_heard(self):
        """No attack: root trains, and its world-readable output is read."""
        with open(self.secret("roots-job", mode=0o644, folder=self.common), "ab") as out:
            self.start_with_rights(None, out, "/usr/bin/python3", "-c", WAITS, "root")
        yield
        self.wait_until_heard(SECRET + "roots-job")

    # Attacks.

    def test_a_file_of_a_group_that_he_is_not_in(self):
        """The attacker has a write-only descriptor of a group's log and is not in the group: it is not read."""
        out = os.open(self.secret("strangers", mode=0o640, gid=GROUP, folder=self.common), os.O_WRONLY | os.O_APPEND)
        self.addCleanup(os.close, out)
        self.hand_over(out, "a-stranger")
        yield
        self.wait_until_heard("a-stranger")
        self.assert_not_told("strangers")

    def test_a_program_that_acts_for_root_writes_to_its_private_file(self):
        """A set-user-ID program, started with a rank's variables, writes to a private file of root's: the file is not read."""
        path = self.secret("effective")
        process = self.helper("import os, sys, time; os.dup2(os.open(sys.argv[1], os.O_RDWR | os.O_APPEND), 1); os.write(2, b'ready'); time.sleep(600)",
                              str(path))
        yield
        self.found(process.pid)
        self.assert_not_told("effective")

    def test_a_program_that_became_root_writes_to_its_private_file(self):
        """As before, and the program takes on all of root's ids: the file is not read."""
        path = self.secret("became-root")
        process = self.helper("import os, sys, time; os.setresuid(0, 0, 0); os.dup2(os.open(sys.argv[1], os.O_RDWR | os.O_APPEND), 1); time.sleep(600)",
                              str(path))
        yield
        self.found(process.pid)
        self.assert_not_told("became-root")

    def test_a_program_that_became_root_and_lost_its_parent(self):
        """As before, detached from the attacker's processes, with a world-readable file in a directory that only root may enter."""
        path = self.secret("orphan", mode=0o644)
        pid_file = self.common / "pid"
        self.helper("import os, sys, time\n"
                    "os.setresuid(0, 0, 0); os.setresgid(0, 0, 0)\n"
                    "if os.fork(): os._exit(0)\n"
                    "os.setsid(); os.dup2(os.open(sys.argv[1], os.O_RDWR | os.O_APPEND), 1)\n"
                    "open(sys.argv[2], 'w').write(str(os.getpid())); os.rename(sys.argv[2], sys.argv[2] + '.done'); time.sleep(600)",
                    str(path), str(pid_file))
        done = Path(str(pid_file) + ".done")
        wait_for("the orphan", done.exists)
        pid = int(done.read_text())
        self.addCleanup(os.kill, pid, 9)
        yield
        self.found(pid)
        self.assert_not_told("orphan")

    def test_a_program_of_root_that_a_set_user_id_program_started(self):
        """A program that got root's rights (as from sudo) writes to a private file of root's: it is not read."""
        path = self.secret("sudo")
        process = self.helper("import os, subprocess, sys\n"
                              "os.setresuid(0, 0, 0); os.setresgid(0, 0, 0)\n"
                              "out = os.open(sys.argv[1], os.O_RDWR | os.O_APPEND)\n"
                              "child = subprocess.Popen(['/bin/sleep', '600'], stdout=out)\n"
                              "os.write(2, b'%d\\n' % child.pid); child.wait()", str(path), errors=self.common / "sudo-errors")
        pid = int(wait_for("the child", (self.common / "sudo-errors").read_text))
        self.addCleanup(os.kill, pid, 9)
        yield
        self.found(pid)
        self.assert_not_told("sudo")
        self.assertIsNone(process.poll())

    def test_a_private_file_that_a_set_user_id_program_left_open(self):
        """A set-user-ID program drops its privileges and leaves a private file of root's as standard output: it is not read."""
        path = self.secret("inherited")
        self.helper("import os, sys\n"
                    "os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND), 1); own = os.getuid()\n"
                    "os.setresuid(own, own, own); os.execv('/usr/bin/python3', ['python3', '-c', sys.argv[2], 'left-open'])",
                    str(path), WAITS)
        yield
        self.wait_until_heard("left-open")
        self.assert_not_told("inherited")

    def test_a_descriptor_that_root_handed_over(self):
        """Root passes the attacker a write-only descriptor of a private file: it is not read, although he can write to it."""
        out = os.open(self.secret("handed"), os.O_WRONLY | os.O_APPEND)
        self.addCleanup(os.close, out)
        self.hand_over(out, "handed-over")
        yield
        self.wait_until_heard("handed-over")
        self.assert_not_told("handed")

    def test_the_writing_end_of_the_victims_file(self):
        """The attacker has a write-only descriptor of a private file of the victim's: it is not read."""
        out = os.open(self.secret("victims", uid=VICTIM, folder=self.home(VICTIM)), os.O_WRONLY | os.O_APPEND)
        self.addCleanup(os.close, out)
        self.hand_over(out, "of-the-victim")
        yield
        self.wait_until_heard("of-the-victim")
        self.assert_not_told("victims")

    def test_a_deleted_private_file(self):
        """As before, with a file that has been unlinked."""
        path = self.secret("deleted")
        out = os.open(path, os.O_WRONLY | os.O_APPEND)
        path.unlink()
        self.addCleanup(os.close, out)
        self.hand_over(out, "no-name")
        yield
        self.wait_until_heard("no-name")
        self.assert_not_told("deleted")

    def test_a_descriptor_that_only_names_the_file(self):
        """The attacker's standard output refers to a private file by O_PATH, without opening it: it is not read."""
        out = os.open(self.secret("named"), os.O_PATH)
        self.addCleanup(os.close, out)
        self.hand_over(out, "only-named")
        yield
        self.wait_until_heard("only-named")
        self.assert_not_told("named")

    def test_a_name_that_is_replaced_after_it_was_opened(self):
        """The attacker replaces his output file by a symbolic link to a private file: it is not followed, since the daemon reads the
        open descriptor."""
        path = self.secret("replaced")
        own = self.common / "output"
        script = WAITS.replace("os.write(2", "os.rename(sys.argv[2], sys.argv[3]); os.write(2")
        link = self.common / "link"
        link.symlink_to(path)
        os.lchown(link, ATTACKER, ATTACKER)
        with open(own, "wb") as out:
            os.fchown(out.fileno(), ATTACKER, ATTACKER)
            self.rank_as(ATTACKER, out, "/usr/bin/python3", "-c", script, "has-replaced", str(link), str(own))
        yield
        self.wait_until_heard("has-replaced")
        self.assert_not_told("replaced")

    def test_root_of_a_container_is_no_root(self):
        """The attacker is root in his own user namespace and has a write-only descriptor of a private file of root's: it is not read."""
        out = os.open(self.secret("container"), os.O_WRONLY | os.O_APPEND)
        self.addCleanup(os.close, out)
        process = self.hand_over(out, "container-root", command=("/usr/bin/unshare", "-r", "/usr/bin/python3"))
        yield
        try:
            self.wait_until_heard("container-root")
        except AssertionError:
            if process.poll() is None:
                raise
            self.skipTest("no user namespaces for users")
        self.assert_not_told("container")


    # Dumps of the Flight Recorder, at places that the rank's environment names.

    def test_the_users_own_dump_is_heard(self):
        """No attack: a dump of mode 0600 in its user's own directory is read."""
        self.dumping_rank(VICTIM, self.home(VICTIM) / "own_", "own-dump")
        self.dump(self.home(VICTIM) / "own_0", "own-dump", VICTIM)
        os.chmod(self.home(VICTIM) / "own_0", 0o600)
        yield
        self.wait_until_heard(SECRET + "own-dump")

    def test_a_dump_in_a_container_is_heard(self):
        """No attack: a rank with its own root directory names a directory by a symbolic link that is valid there: the dump is read."""
        root = self.home(VICTIM) / "container"
        (root / "real").mkdir(parents=True)
        (root / "dumps").symlink_to("/real")
        for path in (root, root / "real"):
            os.chown(path, VICTIM, VICTIM)
        script = f"import os, sys, time; os.chroot({str(root)!r})\n" + WAITS
        process = self.rank_as(VICTIM, subprocess.DEVNULL, "/usr/bin/unshare", "-r", "/usr/bin/python3", "-c", script, "in-container",
                               environment={"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/dumps/trace_"})
        self.dump(root / "real/trace_0", "chroot-dump", VICTIM)
        yield
        if process.poll() is not None:
            self.skipTest("no user namespaces for users")
        self.wait_until_heard(SECRET + "chroot-dump")

    def test_the_victims_dump(self):
        """The attacker's rank names the victim's directory as that of its dumps: the victim's dump is not read."""
        self.dumping_rank(ATTACKER, self.home(VICTIM) / "his_", "names-the-victims")
        self.dump(self.home(VICTIM) / "his_0", "victims-dump", VICTIM)
        yield
        self.wait_until_heard("names-the-victims")
        self.assert_not_told("victims-dump")

    def test_a_dump_of_his_own_beyond_a_closed_folder(self):
        """The attacker's rank names a directory that only root may enter, in which a file of his own lies: it is not read."""
        self.dumping_rank(ATTACKER, self.private / "closed_", "beyond-a-closed-folder")
        self.dump(self.private / "closed_0", "closed-dump", ATTACKER)
        yield
        self.wait_until_heard("beyond-a-closed-folder")
        self.assert_not_told("closed-dump")

    def test_a_dump_beyond_links_of_proc(self):
        """As before, through the root directory of another process (/proc/1/root), which the daemon could follow."""
        self.dumping_rank(ATTACKER, f"/proc/1/root{self.private}/proc_", "by-way-of-proc")
        self.dump(self.private / "proc_0", "proc-dump", ATTACKER)
        yield
        self.wait_until_heard("by-way-of-proc")
        self.assert_not_told("proc-dump")

    def test_a_link_to_the_victims_dump(self):
        """The attacker's dump is a symbolic link to the victim's: it is not followed."""
        (self.common / "link_0").symlink_to(self.home(VICTIM) / "linked_0")
        self.dumping_rank(ATTACKER, self.common / "link_", "by-a-link")
        self.dump(self.home(VICTIM) / "linked_0", "linked-dump", VICTIM)
        yield
        self.wait_until_heard("by-a-link")
        self.assert_not_told("linked-dump")

    def test_a_hard_link_to_the_victims_dump(self):
        """As before, through a hard link to the victim's file."""
        self.dumping_rank(ATTACKER, self.common / "hard_", "by-a-hard-link")
        self.dump(self.home(VICTIM) / "hard_0", "hard-dump", VICTIM)
        os.link(self.home(VICTIM) / "hard_0", self.common / "hard_0")
        yield
        self.wait_until_heard("by-a-hard-link")
        self.assert_not_told("hard-dump")

    def test_roots_dump_by_a_set_user_id_program(self):
        """A set-user-ID program that runs as root has the attacker's environment, which names a directory of root's: it is not read."""
        process = self.helper("import os, time; os.setresuid(0, 0, 0); time.sleep(600)",
                              environment={"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(self.private / "root_")})
        self.dump(self.private / "root_0", "roots-dump", 0)
        yield
        self.found(process.pid)
        self.assert_not_told("roots-dump")

    # The daemon's threads.

    def test_the_thread_that_has_his_rights(self):
        """The attacker tries to signal, trace and slow down the daemon's threads, one of which has his file system ids: nothing is
        permitted."""
        yield
        threads = {}
        for status in Path(f"/proc/{self.watching.process.pid}/task").glob("*/status"):
            threads[status.parent.name] = dict(line.split(":", 1) for line in status.read_text().splitlines())
        readers = [facts for facts in threads.values() if facts["Uid"].split()[3] == str(ATTACKER)]
        self.assertTrue(readers, "no thread reads his files")
        for facts in readers:
            self.assertEqual(facts["Uid"].split()[:3], ["0", "0", "0"])
            self.assertEqual(int(facts["CapEff"], 16), 0)
            self.assertEqual(int(facts["CapPrm"], 16) & ~(1 << SYS_PTRACE), 0)
        able = [facts for facts in threads.values() if int(facts["CapPrm"], 16) >> SETUID & 1]
        self.assertEqual(len(able), 1, "one thread alone can make such threads")
        tries = self.python_as(ATTACKER, TRIES, str(self.watching.process.pid), stdout=subprocess.PIPE)
        self.assertEqual(tries.communicate()[0], b"allowed:\n")


if __name__ == "__main__":
    run_tests()
