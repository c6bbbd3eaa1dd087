// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who is at the other end of a TCP socket on which a thread waits, where it is none of the job's
// own processes. Walks /proc, so calls belong on a Worker. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::probes {

// A connection of /proc/PID/net/tcp or tcp6. Addresses are "7F000001:1F90", as the kernel writes
// them; one of IPv4 that is mapped into IPv6 is written as of IPv4.
struct TcpConnection {
  std::string local;
  std::string remote;
  uint64_t inode = 0;  // 0: nobody has accepted it yet
  bool listens = false;
};

// Those that are established, and sockets that listen.
std::vector<TcpConnection> ParseTcpTable(std::string_view text);

// "127.0.0.1:8080", "[2001:db8::1]:443"; empty for what is no address of these tables.
std::string AddressText(std::string_view address);

// "redis-server (pid 12)" for a process of this node; "10.0.0.1:6379" for another node's. Empty
// where it is not known, or one of `own`, or an ancestor of `pid`: a launcher serves its ranks.
std::string ForeignPeer(const std::string& proc, int32_t pid, uint64_t fd,
                        std::span<const int32_t> own);

}  // namespace rankscope::probes
