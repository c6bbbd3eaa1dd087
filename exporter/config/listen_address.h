// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// An address to listen on, as text and as the kernel takes it. Pure; any thread.
#pragma once

#include <netinet/in.h>

#include <string>

#include "detectors/model/result.h"

namespace rankscope::http {

struct ListenAddress {
  std::string text;
  sockaddr_in socket{};
};

// IPv4:PORT. The error says how to write it.
Result<ListenAddress> ParseListenAddress(const std::string& text);

// Whether only this machine's users reach it.
bool IsLoopback(const ListenAddress& address);

// What to do when binding fails with this errno.
std::string Remedy(int error, const ListenAddress& address);

}  // namespace rankscope::http
