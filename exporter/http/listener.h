// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Plain HTTP over IPv4 in front of the router: Boost.Asio's sockets and Boost.Beast's parser. One
// thread talks to all clients and never waits for one; probes are answered there, whole pages of
// metrics by a second thread, everything else by a few more. Whoever stalls costs a connection and
// no thread, has a deadline, and gives way to who comes next when there are too many. Started and
// stopped by the agent's thread; requests read only what `state` hands out.
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
  // At once, until their answers are written; beyond, 503. Probes and whole pages of metrics do not
  // count.
  int max_requests = 40;
};

// The longest waiting gives way to the next. A head and its parser are some 2 kB; what the kernel
// holds for one is below 384 kB.
inline constexpr size_t kMaxConnections = 1024;
inline constexpr size_t kMaxPerAddress = kMaxConnections / 4;  // of a client beyond loopback

class Listener {
 public:
  using StateFunction = std::function<std::shared_ptr<const State>()>;

  // Both are called on threads of the listener, concurrently. An error names the address and the
  // remedy.
  static Result<std::unique_ptr<Listener>> Start(const ListenerOptions& options,
                                                 StateFunction state, Router router);

  virtual ~Listener() = default;  // stops; running requests are finished first

  // In the order of the addresses; the real ones where 0 was asked for.
  virtual std::vector<uint16_t> ports() const = 0;

  // What has been answered since the start. Any thread.
  virtual metrics::HttpStatus Counts() const = 0;

  // Why its threads may do more than they need to; empty: they may not.
  virtual std::string trouble() const = 0;
};

}  // namespace rankscope::http
