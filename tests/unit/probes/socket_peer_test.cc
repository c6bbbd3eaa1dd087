// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/socket_peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rankscope::probes {
namespace {

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 "
    "1\n"
    "   1: 0100007F:9C40 0100007F:18EB 01 00000000:00000000 00:00000000 00000000     0        0 78 "
    "1\n"
    "   2: 0100007F:9C41 0100007F:18EB 06 00000000:00000000 03:00000000 00000000     0        0 0 "
    "3\n"
    "   3: 0000000000000000FFFF00000100007F:18EB 0000000000000000FFFF00000100007F:9C40 01 "
    "00000000:00000000 00:00000000 00000000     0        0 79 1\n"
    "   4: 0100007F\n";

TEST(SocketPeer, ATableHasConnectionsAndListeners) {
  const auto connections = ParseTcpTable(kTable);
  ASSERT_EQ(connections.size(), 3U);
  EXPECT_TRUE(connections[0].listens);
  EXPECT_EQ(connections[1].inode, 78U);
  EXPECT_EQ(connections[1].remote, "0100007F:18EB");
  EXPECT_EQ(connections[2].local, connections[1].remote) << "IPv4 in IPv6 is IPv4";
  EXPECT_EQ(connections[2].inode, 79U);
}

TEST(SocketPeer, AnAddressIsWrittenAsPeopleDo) {
  EXPECT_EQ(AddressText("0100007F:18EB"), "127.0.0.1:6379");
  EXPECT_EQ(AddressText("B80D0120000000000000000001000000:01BB"), "[2001:db8::1]:443");
  EXPECT_EQ(AddressText("0100007F"), "");
  EXPECT_EQ(AddressText("XX00007F:18EB"), "");
}

// A connection of this process to a child, which accepts it or does not.
class Connected : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(bind(server, reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(server, 1), 0);
    ASSERT_EQ(getsockname(server, reinterpret_cast<sockaddr*>(&address), &size), 0);
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(client_, reinterpret_cast<sockaddr*>(&address), size), 0);
    child_ = fork();
    if (child_ == 0) {
      close(client_);
      if (GetParam()) (void)!accept(server, nullptr, nullptr);
      (void)!write(ready[1], "x", 1);
      while (true) pause();
    }
    close(server);
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  void TearDown() override {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(client_);
  }
  std::string Peer(std::vector<int32_t> own) const {
    return ForeignPeer("/proc", getpid(), static_cast<uint64_t>(client_), own);
  }

  int client_ = -1;
  pid_t child_ = -1;
};

TEST_P(Connected, TheOtherEndIsNamedUnlessItIsOfTheJob) {
  const std::string peer = Peer({getpid()});
  EXPECT_NE(peer.find("(pid " + std::to_string(child_) + ")"), std::string::npos) << peer;
  EXPECT_EQ(Peer({getpid(), child_}), "");
}

TEST_P(Connected, AnAncestorServesItsRanks) {
  // Seen from the child, the other end is its parent's.
  std::string peer = "not found";
  for (uint64_t fd = 3; fd < 64; ++fd) {
    const std::string of = ForeignPeer("/proc", child_, fd, {});
    if (!of.empty()) peer = of;
  }
  EXPECT_EQ(peer, "not found");
}

INSTANTIATE_TEST_SUITE_P(AcceptedOrNot, Connected, ::testing::Bool());

TEST(SocketPeer, WhatIsNoSocketHasNoPeer) {
  EXPECT_EQ(ForeignPeer("/nonexistent", 1, 3, {}), "");
  EXPECT_EQ(ForeignPeer("/proc", getpid(), 1 << 20, {}), "");
}

}  // namespace
}  // namespace rankscope::probes
