// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/http_url.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rankscope::exporter {
namespace {

constexpr size_t kMaxUrl = 512;

bool IsPort(std::string_view text) {
  uint32_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port <= 65535;
}

}  // namespace

Status CheckHttpUrl(std::string_view text) {
  const std::string quoted = "'" + std::string(text.substr(0, kMaxUrl)) + "'";
  const size_t scheme = text.starts_with("http://") ? 7 : text.starts_with("https://") ? 8 : 0;
  if (scheme == 0) return Error{quoted + " is not a URL; write http://HOST:PORT/PATH"};
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
  if (!plain || text.size() > kMaxUrl)
    return Error{quoted + " has a blank, a sign that is not ASCII, or more than 512 of them"};
  text.remove_prefix(scheme);
  std::string_view place = text.substr(0, text.find('/'));
  if (place.find_first_of("@?#") != std::string_view::npos)
    return Error{quoted + " has more before its path than HOST:PORT"};
  const size_t bracket = place.rfind(']');
  const size_t colon = place.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    if (!IsPort(place.substr(colon + 1))) return Error{quoted + " has no port from 1 to 65535"};
    place = place.substr(0, colon);
  }
  if (place.starts_with('[') && place.ends_with(']')) place = place.substr(1, place.size() - 2);
  if (place.empty() || place.find_first_of("[]") != std::string_view::npos)
    return Error{quoted + " names no host"};
  return {};
}

}  // namespace rankscope::exporter
