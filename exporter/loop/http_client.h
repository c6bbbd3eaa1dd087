// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The one HTTP client: what another server answers to a GET, or to a POST of what somebody is told,
// within a deadline and a size. It is libcurl, loaded by the first request (curl_library.h).
// HTTP/1.1 with or without TLS, or HTTP/2 without it; no redirects, no proxy unless it is
// configured, nothing of the environment, no signals. Blocks: a worker's thread or a command's. Any
// number of threads.
#pragma once

#include <cstddef>
#include <string>

#include "detectors/model/time.h"
#include "exporter/loop/http_options.h"

namespace rankscope::exporter {

struct HttpRequest {
  std::string url;
  std::string accept = "*/*";
  Duration connect_timeout = Seconds(10);
  Duration timeout = Seconds(10);      // of the whole answer, connecting included
  size_t max_bytes = size_t{8} << 20;  // of head and body; more is an error, not a part
  size_t expected_bytes = 0;           // a longer body has to be moved as it grows
  bool http2 = false;  // and nothing else, without asking: for servers of gRPC, without TLS
  HttpOptions options = {};
};

struct HttpAnswer {
  enum class End {
    kAnswered,   // whole, whatever its status
    kRefused,    // nobody listens there
    kLate,       // connect_timeout or timeout
    kTooLong,    // max_bytes
    kFailed,     // anything else on the way
    kNotLoaded,  // no libcurl, or one that cannot do what the options ask for
  };
  End end = End::kFailed;
  int status = 0;
  std::string body;
  std::string link;         // the header of that name
  std::string grpc_status;  // the trailer of that name
  std::string error;  // one phrase after the server's name; empty: kAnswered with a 2xx status
};

struct HttpBody {
  std::string content_type;
  std::string text;
};

HttpAnswer HttpGet(const HttpRequest& request);
HttpAnswer HttpPost(const HttpRequest& request, const HttpBody& body);

}  // namespace rankscope::exporter
