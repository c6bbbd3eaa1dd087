// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Request -> Response, a pure function over the published state, behind whichever listener. Any
// thread; nothing throws.
//
//   /metrics          the snapshot, text 0.0.4
//   /verdict          all verdicts; ?job_id= one (alias slurm_job_id). JSON, or by Accept:
//   text/plain, application/x-protobuf /evidence?job_id= what the verdict shows and every number
//   known of the job, JSON /events?job_id=   attempts, changes and the cause chain, JSON
//   /explain?pid=     how a process came to its job and rank, text
//   /-/healthy  /-/ready  /health (the same as /-/healthy)  / (the status page)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/time.h"
#include "exporter/http/state.h"

namespace rankscope::http {

struct Header {
  std::string name;
  std::string value;
};

struct Request {
  std::string method;
  std::string path;   // as sent: percent-encoded, origin or absolute form, without the query
  std::string query;  // as sent, without '?'
  std::vector<Header> headers;
  Duration deadline = Seconds(5);  // what the client will wait, from now

  // The first header of this name, any case; empty when there is none.
  std::string_view HeaderValue(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::vector<Header> headers;  // without Content-Length and Connection: the listener's
  std::string body;             // also for HEAD: the listener sends its length only

  std::string_view HeaderValue(std::string_view name) const;
};

// What the router cannot know from the published state.
struct RouterOptions {
  // Text for /explain; empty: the pid is not known; nullopt: no answer before the deadline. May be
  // null: 404.
  std::function<std::optional<std::string>(int32_t pid, Duration deadline)> explain;
};

class Router {
 public:
  explicit Router(RouterOptions options = {}) : options_(std::move(options)) {}

  Response Handle(const Request& request, const State& state) const;

 private:
  RouterOptions options_;
};

// Longest path and query together; the longest that we print ourselves is below 300 bytes.
inline constexpr size_t kMaxTargetBytes = 2048;

// The standard phrase: 404 -> Not Found.
std::string_view ReasonPhrase(int status);

// application/problem+json, as every error of this server is told.
Response Problem(int status, std::string_view detail);

}  // namespace rankscope::http
