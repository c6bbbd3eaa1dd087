// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A request's target and headers are any bytes: the router answers each, and nothing of them comes
// back as a header. Input: METHOD TARGET, then header lines, separated by newlines.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "exporter/http/negotiation.h"
#include "exporter/http/router.h"
#include "tests/unit/metrics/published_states.h"

namespace {

using rankscope::http::Header;
using rankscope::http::Request;
using rankscope::http::Response;
using rankscope::http::State;

void Check(bool holds) {
  if (!holds) std::abort();
}

std::string_view Cut(std::string_view& rest, char end) {
  const std::string_view part = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

Request Read(std::string_view text) {
  Request request;
  std::string_view line = Cut(text, '\n');
  request.method = Cut(line, ' ');
  request.path = Cut(line, '?');
  request.query = line;
  while (!text.empty() && request.headers.size() < 64) {
    std::string_view header = Cut(text, '\n');
    const std::string_view name = Cut(header, ':');
    request.headers.push_back({std::string(name), std::string(header)});
  }
  return request;
}

const State& TheState() {
  static const auto published = std::make_shared<const rankscope::metrics::Published>(
      rankscope::test::OnNode({rankscope::test::HangingJob()}));
  static const State state(published,
                           std::make_shared<const rankscope::http::Exposition>(
                               rankscope::metrics::SnapshotBuilder().Build(*published)),
                           nullptr);
  return state;
}

bool Names(const Request& request, std::string_view type) {
  std::string accept = request.JoinedHeader("Accept");
  std::transform(accept.begin(), accept.end(), accept.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return accept.find(type) != std::string::npos;
}

void CheckAnswer(const Request& request, const Response& response) {
  constexpr std::array kStatuses = {200, 304, 400, 403, 404, 405, 414, 421, 503};
  Check(std::find(kStatuses.begin(), kStatuses.end(), response.status) != kStatuses.end());
  for (const Header& header : response.headers) {
    Check(std::none_of(header.value.begin(), header.value.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }));
  }
  Check(response.status == 304 || !response.HeaderValue("Content-Type").empty());
  if (!response.scrape) return;
  const std::string_view type = response.HeaderValue("Content-Type");
  const bool open = type.starts_with("application/openmetrics-text; version=");
  const bool binary = type.starts_with("application/vnd.google.protobuf;");
  Check(open || binary || type == "text/plain; version=0.0.4; charset=utf-8");
  // Never to who has not named it.
  if (open) Check(Names(request, "application/openmetrics-text"));
  if (binary) Check(Names(request, "application/vnd.google.protobuf"));
  if (open && response.HeaderValue("Content-Encoding").empty()) {
    Check(response.Content().ends_with("# EOF\n"));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Request request = Read(text);
  static const rankscope::http::Router router;
  CheckAnswer(request, router.Handle(request, TheState()));

  // The same bytes as the two headers whose grammar is the richest.
  static constexpr rankscope::http::MediaParameter kVersion[] = {{"version", "1.0.0"}};
  static constexpr std::array<rankscope::http::Offer, 2> kOffers = {
      {{"text/plain"}, {"application/openmetrics-text", kVersion, true, true}}};
  const rankscope::http::Choice choice = rankscope::http::Choose(text, kOffers);
  if (choice.offer == 1) Check(choice.range.q > 0 && choice.range.Find("version") != nullptr);
  const auto ranges = rankscope::http::ParseAccept(text);
  Check(ranges.size() <= rankscope::http::kMaxRanges);
  for (const auto& range : ranges) Check(range.q >= 0 && range.q <= 1);
  static_cast<void>(rankscope::http::WantsGzip(text));
  return 0;
}
