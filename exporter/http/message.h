// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Requests and responses as every listener and the router exchange them. Plain data; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/time.h"
#include "exporter/config/web_roles.h"
#include "exporter/http/exposition.h"
#include "exporter/metrics/format.h"

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
  bool beyond_loopback = false;    // came in where more than this machine's users reach it
  Role role = Role::kLog;          // what the client may see

  // The first header of this name, any case; empty when there is none.
  std::string_view HeaderValue(std::string_view name) const;
  // All of this name: a list header may be sent in several lines.
  std::string JoinedHeader(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::vector<Header> headers;            // without Content-Length and Connection: the listener's
  std::string body;                       // also for HEAD: the listener sends its length only
  std::vector<Page> pages;                // behind the body; shared with other responses
  std::optional<metrics::Format> scrape;  // set for pages of metrics

  std::string_view HeaderValue(std::string_view name) const;
  size_t ContentSize() const;
  std::string Content() const;  // a copy, for who wants it as one
};

// The standard phrase: 404 -> Not Found.
std::string_view ReasonPhrase(int status);

// That the content is compressed now: the strong tag of the plain bytes becomes a weak one, as
// these are other bytes that say the same.
void MarkCompressed(Response& response);

Response Answer(std::string_view content_type, std::string body);

// An error about a document: application/problem+json.
Response Problem(int status, std::string_view detail);

// An error about the request itself or a page of metrics: one line of text.
Response Refusal(int status, std::string_view detail);

inline constexpr std::string_view kPlainText = "text/plain; charset=utf-8";

}  // namespace rankscope::http
