// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// An address to listen on, as text and as numbers. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "detectors/model/result.h"

namespace rankscope::http {

struct ListenAddress {
  std::string text;
  std::string host;  // the address alone, without brackets
  uint16_t port = 0;
  bool ipv6 = false;
  bool loopback = false;  // only this machine's users reach it
};

// IPv4:PORT or [IPv6]:PORT. The error says how to write it.
Result<ListenAddress> ParseListenAddress(const std::string& text);

// What to do when binding fails with this errno.
std::string Remedy(int error, const ListenAddress& address);

}  // namespace rankscope::http
