// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// HTTP with or without TLS in front of the router: Boost.Asio's sockets, Boost.Beast's parser and
// OpenSSL. One thread talks to all clients and never waits for one; probes are answered there,
// whole pages of metrics by a second thread, passwords by a third, everything else by a few more.
// Whoever stalls costs a connection and no thread, has a deadline, and gives way to who comes next
// when there are too many. Started and stopped by the agent's thread; requests read only what
// `state` hands out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/http/router.h"
#include "exporter/http/state.h"
#include "exporter/http/web_files.h"

namespace rankscope::http {

struct ListenerOptions {
  std::vector<std::string> addresses = {"127.0.0.1:10177"};  // IP:PORT; port 0 = any free one
  // At once, until their answers are written; beyond, 503. Probes and whole pages of metrics do not
  // count.
  int max_requests = 40;
  // A file of TLS, users and headers, in force on every address; empty: none.
  std::string web_config = {};
  WebFiles::Tell on_web_config = [](const Status&) {};  // what later readings of it came to
  bool plain_loopback = false;                          // but for addresses on loopback
  std::vector<RoleRow> roles = {};
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

  // From now on. Any thread.
  virtual void SetRoles(std::vector<RoleRow> roles) = 0;

  // The last reading of the file. Any thread.
  virtual metrics::ReloadStatus WebReading() const = 0;

  // Why its threads may do more than they need to; empty: they may not.
  virtual std::string trouble() const = 0;
};

}  // namespace rankscope::http
