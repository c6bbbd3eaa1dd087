// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Asks a running daemon one thing over HTTP or HTTPS and waits for the answer: for `verdict` and
// `explain`. Blocks, with a deadline. Any thread.
#pragma once

#include <string>

#include "detectors/model/result.h"

namespace rankscope::cli {

inline constexpr char kDefaultAddress[] = "127.0.0.1:10177";

struct DaemonAnswer {
  int status = 0;
  std::string body;
  std::string next;  // target of the next page, from the Link header; empty: none
};

// `address`: HOST:PORT or a URL. RANKSCOPE_CLIENT_CONFIG may name a file of curl's options:
// cacert, cert, key, user. `target`: path and query. An error names the address and the remedy.
Result<DaemonAnswer> AskDaemon(const std::string& address, const std::string& target,
                               const std::string& accept);

// Percent-encodes a query value.
std::string QueryValue(const std::string& text);

}  // namespace rankscope::cli
