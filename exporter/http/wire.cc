// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/wire.h"

#include <strings.h>

#include <algorithm>
#include <charconv>

namespace rankscope::http {

std::string_view Ambiguity(const Request& request, int version) {
  size_t hosts = 0;
  size_t lengths = 0;
  for (const Header& header : request.headers) {
    const auto is = [&](const char* name) { return strcasecmp(header.name.c_str(), name) == 0; };
    if (header.name.empty() || header.name.find_first_of(" \t") != std::string::npos) {
      return "the name of a header contains a space";
    }
    if (is("Host")) ++hosts;
    if (!is("Content-Length")) continue;
    ++lengths;
    if (header.value.empty() || header.value.find_first_not_of("0123456789") != std::string::npos) {
      return "Content-Length is not a number";
    }
  }
  if (hosts > 1) return "more than one Host";
  if (hosts == 0 && version == 11) return "no Host";
  if (lengths > 1) return "more than one Content-Length";
  if (lengths > 0 && !request.HeaderValue("Transfer-Encoding").empty()) {
    return "Content-Length and Transfer-Encoding at once";
  }
  return {};
}

Duration DeadlineOf(const Request& request) {
  const std::string_view text = request.HeaderValue("X-Prometheus-Scrape-Timeout-Seconds");
  double seconds = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const Duration longest = Request{}.deadline;
  if (parsed.ec != std::errc() || !(seconds > 0)) return longest;
  return std::clamp(Seconds(std::min(seconds, 60.0) - 0.5), Milliseconds(100), longest);
}

Lane LaneOf(const Request& request) {
  const std::string& path = request.path;
  if (path == "/-/healthy" || path == "/-/ready" || path == "/health") return Lane::kProbe;
  return request.path == "/metrics" && request.query.empty() ? Lane::kScrape : Lane::kGeneral;
}

std::string HeadOf(const Response& response, bool keep_alive) {
  std::string out;
  out.reserve(512);
  out.append("HTTP/1.1 ").append(std::to_string(response.status)).push_back(' ');
  out.append(ReasonPhrase(response.status)).append("\r\n");
  for (const Header& header : response.headers) {
    out.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  if (response.status != 304) {
    out.append("Content-Length: ").append(std::to_string(response.ContentSize())).append("\r\n");
  }
  out.append(keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n");
  return out;
}

void SetHeaders(const std::vector<std::pair<std::string, std::string>>& headers,
                Response& response) {
  for (const auto& [name, value] : headers) {
    std::erase_if(response.headers, [&](const Header& header) {
      return strcasecmp(header.name.c_str(), name.c_str()) == 0;
    });
    response.headers.push_back({name, value});
  }
}

}  // namespace rankscope::http
