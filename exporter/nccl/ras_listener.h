// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Where the RAS service of a job listens: the port that NCCL_RAS_ADDR names (28028 without it), at
// the address that one of the job's own processes has bound. No name is resolved, and nobody is
// asked who is not of the job: the first job of a node takes the default port, and the next one's
// questions would be answered by a stranger. Functions of /proc; the worker's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/nccl/rank_roster.h"

namespace rankscope::collectors {

inline constexpr uint16_t kRasPort = 28028;

// "localhost:28028", "[::1]:7000", ":7000"; the default port where it names none.
uint16_t RasPortOf(std::string_view address);

// A listening socket of /proc/PID/net/tcp or tcp6.
struct ListeningSocket {
  bool v6 = false;
  std::string address;  // as bytes: 4 or 16
  uint16_t port = 0;
  uint32_t uid = 0;
  uint64_t inode = 0;
};

// Listeners at `port`. Pure.
std::vector<ListeningSocket> ParseListeners(std::string_view text, bool v6, uint16_t port);

struct RasListener {
  ListeningSocket socket;
  ProcessKey owner;        // the rank that answers; the first rank asked where nobody may look
  int32_t network_of = 0;  // a pid of the network namespace to connect in; 0 = our own
};

// Of these ranks of one job. Nothing where no process of theirs listens.
std::optional<RasListener> FindRasListener(const RankRoster& roster,
                                           const std::vector<const RankProcess*>& ranks);

}  // namespace rankscope::collectors
