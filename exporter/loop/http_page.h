// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One page of another program's plain HTTP server on this node or near it, within a deadline and a
// size: HTTP/1.0, so that the body is what comes until the connection ends. No redirects, no
// https, no compression. Blocks; a worker's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "detectors/model/result.h"

namespace rankscope::collectors {

struct HttpUrl {
  std::string host;  // name or address, without the brackets of IPv6
  std::string port = "80";
  std::string path = "/";
};

// http://HOST[:PORT][/PATH]; the error says what is wrong with `text`.
Result<HttpUrl> ParseHttpUrl(std::string_view text);

struct HttpPage {
  std::string body;
  std::string type;      // Content-Type, empty = none
  std::string error;     // one phrase; empty: `body` is whole and the server said 200
  bool refused = false;  // nobody listens there
};

// `most`: bytes of head and body together; more is an error, not a part.
HttpPage FetchPage(const HttpUrl& url, std::chrono::milliseconds deadline, size_t most);

// An answer as it came, to its end. For FetchPage and tests.
HttpPage ReadAnswer(std::string_view bytes);

}  // namespace rankscope::collectors
