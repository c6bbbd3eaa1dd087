// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/peer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/run/process_facts.h"

namespace rankscope::run {
namespace {

class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ != 0) return;
    pause();
    _exit(0);
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ProcessKey key() const { return ReadProcessKey(pid_); }

 private:
  pid_t pid_;
};

TEST(Peer, IsWhoConnected) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const auto peer = ReadPeer(ends[0]);
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->uid, getuid());
  EXPECT_EQ(peer->process, ReadProcessKey(getpid()));
  EXPECT_EQ(peer->identity.uid, getuid());
  EXPECT_EQ(peer->identity.gid, getgid());
  close(ends[0]);
  close(ends[1]);
}

TEST(Peer, ThatHasEndedIsNoProcess) {
  int ends[2];
  int inherited[2];
  ASSERT_EQ(pipe(inherited), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) _exit(1);
    // A grandchild holds the socket; who made it is gone, and waited for.
    const pid_t maker = getpid();
    if (fork() != 0) _exit(0);
    while (kill(maker, 0) == 0) usleep(1000);
    const auto peer = ReadPeer(ends[0]);
    const char good = peer && peer->uid == getuid() && peer->process.pid == 0 ? 'y' : 'n';
    _exit(write(inherited[1], &good, 1) == 1 ? 0 : 1);
  }
  waitpid(pid, nullptr, 0);
  char good = 0;
  EXPECT_EQ(read(inherited[0], &good, 1), 1);
  EXPECT_EQ(good, 'y');
  close(inherited[0]);
  close(inherited[1]);
}

TEST(FindForked, TakesAChildThatIsOurs) {
  const Sleeper child;
  const ProcessKey self = ReadProcessKey(getpid());
  const ProcessKey key = child.key();
  const auto found = FindForked(self, getuid(), key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key, key);
  EXPECT_EQ(found->ns_pids.front(), key.pid);
  EXPECT_TRUE(FindForked(self, getuid(), {key.pid, 0})) << "a wrapper that could not read /proc";
}

TEST(FindForked, TakesNobodyElse) {
  const Sleeper child;
  const ProcessKey self = ReadProcessKey(getpid());
  const ProcessKey key = child.key();
  EXPECT_FALSE(FindForked(self, getuid(), {1, 0}));
  EXPECT_FALSE(FindForked(self, getuid(), ReadProcessKey(1)));
  EXPECT_FALSE(FindForked(self, getuid(), self)) << "oneself";
  EXPECT_FALSE(FindForked(self, getuid(), ReadProcessKey(getppid())));
  EXPECT_FALSE(FindForked(self, getuid(), {key.pid, key.start_ticks + 1})) << "a pid used again";
  EXPECT_FALSE(FindForked(self, getuid() + 1, key)) << "another user's";
  EXPECT_FALSE(FindForked({self.pid, self.start_ticks + 1}, getuid(), key));
  EXPECT_FALSE(FindForked({}, getuid(), key));
  EXPECT_FALSE(FindForked(self, getuid(), {}));
}

TEST(FindForked, TakesAZombie) {
  const pid_t pid = fork();
  if (pid == 0) _exit(3);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(FindForked(ReadProcessKey(getpid()), getuid(), ReadProcessKey(pid)));
  waitpid(pid, nullptr, 0);
}

}  // namespace
}  // namespace rankscope::run
