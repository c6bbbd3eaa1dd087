// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Plain HTTP over IPv4: civetweb in front of the router, with everything of civetweb that serves
// files switched off. Started and stopped by the agent's thread; requests run on threads of its own
// pool and read only what `state` hands out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/http/router.h"
#include "exporter/http/state.h"

namespace rankscope::http {

struct ListenerOptions {
  std::vector<std::string> addresses = {"127.0.0.1:10177"};  // IPv4:PORT; port 0 = any free one
  int max_requests = 40;                                     // in flight; beyond, 503
};

// Connections that may stall (slow or idle clients) while `max_requests` others are still served.
inline constexpr int kStalledConnections = 88;

class Listener {
 public:
  using StateFunction = std::function<std::shared_ptr<const State>()>;

  // Both are called on the pool's threads, concurrently. An error names the address and the remedy.
  static Result<std::unique_ptr<Listener>> Start(ListenerOptions options, StateFunction state,
                                                 Router router);

  virtual ~Listener() = default;  // stops; running requests are finished first

  // In the order of the addresses; the real ones where 0 was asked for.
  virtual std::vector<uint16_t> ports() const = 0;

  // What has been answered since the start. Any thread.
  virtual metrics::HttpStatus Counts() const = 0;
};

}  // namespace rankscope::http
