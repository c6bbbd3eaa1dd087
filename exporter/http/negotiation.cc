// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/negotiation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace rankscope::http {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Cuts the part before the first `separator` off `rest`.
std::string_view Next(std::string_view& rest, char separator) {
  const std::string_view part = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return Trim(part);
}

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool SameText(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

struct MediaRange {
  std::string_view type;  // text/plain, text/*, */*
  double q = 1;
};

std::vector<MediaRange> ParseAccept(std::string_view accept) {
  std::vector<MediaRange> ranges;
  while (!accept.empty()) {
    std::string_view parameters = Next(accept, ',');
    MediaRange range{Next(parameters, ';')};
    while (!parameters.empty()) {
      std::string_view value = Next(parameters, ';');
      if (!SameText(Next(value, '='), "q")) continue;
      double q = 0;
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), q);
      // What is no number says nothing.
      range.q = parsed.ec == std::errc() && q >= 0 && q <= 1 ? q : 1;
    }
    if (!range.type.empty()) ranges.push_back(range);
  }
  return ranges;
}

// 3: the very type, 2: type/*, 1: */*, 0: no match.
int Specificity(std::string_view range, std::string_view offer) {
  if (SameText(range, offer)) return 3;
  if (range == "*/*" || range == "*") return 1;
  const std::string_view family = offer.substr(0, offer.find('/') + 1);
  const bool whole_family =
      range.ends_with("/*") && SameText(range.substr(0, range.size() - 1), family);
  return whole_family ? 2 : 0;
}

}  // namespace

size_t ChooseMediaType(std::string_view accept, std::span<const std::string_view> offers) {
  const std::vector<MediaRange> ranges = ParseAccept(accept);
  size_t best = 0;
  double best_q = 0;
  size_t best_place = 0;
  for (size_t offer = 0; offer < offers.size(); ++offer) {
    // The most specific range decides about an offer.
    int specificity = 0;
    double q = 0;
    size_t place = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const int match = Specificity(ranges[i].type, offers[offer]);
      if (match <= specificity) continue;
      specificity = match;
      q = ranges[i].q;
      place = i;
    }
    if (q > best_q || (q > 0 && q == best_q && place < best_place)) {
      best = offer;
      best_q = q;
      best_place = place;
    }
  }
  return best;
}

std::string EntityTag(std::string_view content_type, std::string_view body) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a, 64 bit
  for (const std::string_view part : {content_type, body}) {
    for (const char c : part) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    }
  }
  std::array<char, 24> text{};
  const int size =
      std::snprintf(text.data(), text.size(), "\"%016llx\"", static_cast<unsigned long long>(hash));
  return {text.data(), static_cast<size_t>(size)};
}

bool NamesTag(std::string_view if_none_match, std::string_view tag) {
  while (!if_none_match.empty()) {
    std::string_view one = Next(if_none_match, ',');
    if (one == "*") return true;
    if (one.starts_with("W/")) one.remove_prefix(2);  // weak comparison: RFC 9110, 13.1.2
    if (one == tag) return true;
  }
  return false;
}

}  // namespace rankscope::http
