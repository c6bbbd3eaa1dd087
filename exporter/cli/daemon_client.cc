// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/cli/daemon_client.h"

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "exporter/loop/http_client.h"
#include "exporter/loop/http_options.h"
#include "exporter/loop/http_url.h"

namespace rankscope::cli {
namespace {

constexpr size_t kMaxAnswer = 64 << 20;
constexpr Duration kTimeout = Seconds(60);  // of an answer from another node

// Of `</verdict?after=7>; rel="next"`; only a target of the same daemon is followed.
std::string NextOf(std::string_view link) {
  const size_t end = link.find('>');
  if (!link.starts_with("</") || end == std::string_view::npos) return {};
  return link.substr(end) == ">; rel=\"next\"" ? std::string(link.substr(1, end - 1))
                                               : std::string();
}

// HOST:PORT as the place of a URL; without a host, this node. An IPv6 address may lack its
// brackets.
Result<std::string> PlaceOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return Error{"'" + address + "' has no port; write HOST:PORT"};
  std::string host = colon == 0 ? "127.0.0.1" : address.substr(0, colon);
  if (host.find(':') != std::string::npos && host.front() != '[') host = "[" + host + "]";
  return host + address.substr(colon);
}

// The URL of an address, without a path.
Result<std::string> BaseOf(const std::string& address) {
  if (address.starts_with("http://") || address.starts_with("https://")) {
    if (const Status url = exporter::CheckHttpUrl(address); !url) return Error{url.error()};
    return address.substr(0, address.find_last_not_of('/') + 1);
  }
  const Result<std::string> place = PlaceOf(address);
  if (!place) return Error{place.error()};
  return "http://" + *place;
}

// What the user keeps in a file: authorities, a certificate, a password.
Result<exporter::HttpOptions> OptionsOf(const char* path) {
  if (path == nullptr || *path == '\0') return exporter::HttpOptions();
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return Error{std::string(path) + " of RANKSCOPE_CLIENT_CONFIG cannot be read"};
  Result<exporter::HttpOptions> options = exporter::ReadHttpOptions(text.str());
  if (!options) return Error{std::string(path) + ": " + options.error()};
  return options;
}

}  // namespace

Result<DaemonAnswer> AskDaemon(const std::string& address, const std::string& target,
                               const std::string& accept) {
  const Result<std::string> base = BaseOf(address);
  if (!base) return Error{base.error()};
  Result<exporter::HttpOptions> options = OptionsOf(std::getenv("RANKSCOPE_CLIENT_CONFIG"));
  if (!options) return Error{options.error()};
  exporter::HttpRequest request;
  request.url = *base + target;
  request.options = *std::move(options);
  request.accept = accept;
  request.timeout = kTimeout;
  request.max_bytes = kMaxAnswer;
  exporter::HttpAnswer answer = exporter::HttpGet(request);
  if (answer.end != exporter::HttpAnswer::End::kAnswered)
    return Error{"no rankscope daemon answers: " + address + " " + answer.error +
                 "; start `rankscope serve` or name it with --address HOST:PORT"};
  return DaemonAnswer{answer.status, std::move(answer.body), NextOf(answer.link)};
}

std::string QueryValue(const std::string& text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace rankscope::cli
