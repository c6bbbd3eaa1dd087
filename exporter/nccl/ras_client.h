// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One question to the RAS service of a job, as the client that comes with NCCL asks it (2.24 and
// later): lines of text both ways, the answer to STATUS ends with the connection. All of it within
// a deadline, and no more is read than the answer may have. Blocks; the worker's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "exporter/nccl/ras_listener.h"

namespace rankscope::collectors {

struct RasAnswer {
  std::string text;   // empty: see `error`
  std::string error;  // one sentence
  bool json = false;
  bool cut = false;     // longer than kMaxAnswer
  bool silent = false;  // it took the connection and said nothing in time
  double seconds = 0;
};

// A leg of RAS takes 5 s and the whole 10 s with dead peers (ras_internal.h); beyond that the
// service itself is stuck.
inline constexpr std::chrono::milliseconds kRasDeadline{15'000};
inline constexpr int kRasTimeoutSeconds = 5;
// JSON lists every rank of every communicator in some 300 bytes: 3,000 of them.
inline constexpr size_t kMaxAnswer = size_t{1} << 20;

struct RasQuestion {
  ListeningSocket socket;
  int network_fd = -1;  // network namespace to connect in; -1 = our own
  bool json = true;     // where the service can
  std::chrono::milliseconds deadline = kRasDeadline;
};

RasAnswer AskRas(const RasQuestion& question);

}  // namespace rankscope::collectors
