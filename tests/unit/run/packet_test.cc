// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "exporter/loop/owned_fd.h"
#include "exporter/run/protocol.h"

namespace rankscope::run {
namespace {

class PacketTest : public testing::Test {
 protected:
  PacketTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ours_ = OwnedFd(ends[0]);
    theirs_ = OwnedFd(ends[1]);
  }
  OwnedFd ours_, theirs_;
};

TEST_F(PacketTest, WithoutADescriptorItsDescriptorsAreLost) {
  const std::array<int, 3> fds = {0, 0, 0};
  ASSERT_TRUE(SendPacket(theirs_.get(), std::array{'H'}, fds));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  close(next);
  const rlimit few = {static_cast<rlim_t>(next) + 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const Packet packet = ReceivePacket(ours_.get());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(packet.state, Packet::State::kClosed);
  EXPECT_TRUE(packet.fds_lost);
  EXPECT_FALSE(packet.too_much);
  EXPECT_EQ(packet.fds.size(), 1u) << "what has come is the caller's to close";
}

TEST_F(PacketTest, OneThatCarriesTooMuchHasLostNothing) {
  const std::vector<char> text(2 * kPacketCap, 'x');
  ASSERT_TRUE(SendPacket(theirs_.get(), text));
  const Packet packet = ReceivePacket(ours_.get());
  EXPECT_EQ(packet.state, Packet::State::kClosed);
  EXPECT_TRUE(packet.too_much);
  EXPECT_FALSE(packet.fds_lost);
}

}  // namespace
}  // namespace rankscope::run
