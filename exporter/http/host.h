// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a request was meant for this server. A page that a user of the machine has opened can
// make its own name resolve to 127.0.0.1 (DNS rebinding) and then reads what is served there, but
// its requests carry that name. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exporter/http/message.h"

namespace rankscope::http {

struct HostNames {
  std::string node;                // the machine's own name, for listeners beyond loopback
  std::vector<std::string> hosts;  // names that are served besides; any case
};

// Whether `host` ("localhost:10177", "[::1]", "node7") may be asked for. On loopback: localhost and
// addresses of loopback; beyond: any address, for none can be rebound, and the node's name.
bool IsServed(std::string_view host, bool beyond_loopback, const HostNames& names);

// The name that a request asks for and may not; empty: there is none. Who says no name (HTTP/1.0)
// is no browser.
std::string_view WrongHost(const Request& request, const HostNames& names);

}  // namespace rankscope::http
