// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/negotiation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>

namespace rankscope::http {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Cuts the part before the first `separator` outside quotes off `rest`.
std::string_view Next(std::string_view& rest, char separator) {
  bool quoted = false;
  size_t end = 0;
  for (; end < rest.size() && (quoted || rest[end] != separator); ++end) {
    if (rest[end] == '"') quoted = !quoted;
    if (rest[end] == '\\' && quoted) ++end;
  }
  end = std::min(end, rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.size(), end + 1));
  return Trim(part);
}

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool SameText(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

// token of RFC 9110; `*` is one too.
bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    const char lower = Lower(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool IsType(std::string_view text) {
  const size_t slash = text.find('/');
  return slash != std::string_view::npos && IsToken(text.substr(0, slash)) &&
         IsToken(text.substr(slash + 1));
}

// Without its quotes; values of interest have no escapes inside.
std::string_view Unquoted(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return value;
  return value.substr(1, value.size() - 2);
}

double Weight(std::string_view text) {
  double q = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), q);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return whole && q >= 0 && q <= 1 ? q : 1;
}

// How closely `range` means `offer`: 3 and more by its name (each parameter that both name counts),
// 2 as type/*, 1 as */*, 0 not at all.
size_t Specificity(const MediaRange& range, const Offer& offer) {
  if (SameText(range.type, offer.type)) {
    size_t specificity = 3;
    for (const MediaParameter& wanted : offer.parameters) {
      const MediaParameter* sent = range.Find(wanted.name);
      if (sent == nullptr) {
        if (offer.all_parameters) return 0;
      } else if (SameText(sent->value, wanted.value)) {
        ++specificity;
      } else {
        return 0;
      }
    }
    return specificity;
  }
  if (offer.only_by_name) return 0;
  if (range.type == "*/*") return 1;
  const std::string_view family = offer.type.substr(0, offer.type.find('/') + 1);
  const bool whole_family =
      range.type.ends_with("/*") && SameText(range.type.substr(0, range.type.size() - 1), family);
  return whole_family ? 2 : 0;
}

// The q that an Accept-Encoding header gives `coding`; nothing when it does not name it.
std::optional<double> WeightOf(std::string_view accept_encoding, std::string_view coding) {
  while (!accept_encoding.empty()) {
    std::string_view parameters = Next(accept_encoding, ',');
    if (!SameText(Next(parameters, ';'), coding)) continue;
    std::string_view value = Next(parameters, ';');
    return SameText(Next(value, '='), "q") ? Weight(value) : 1;
  }
  return std::nullopt;
}

uint64_t Continue(uint64_t hash, std::string_view bytes) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace

const MediaParameter* MediaRange::Find(std::string_view name) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const MediaParameter& p) { return SameText(p.name, name); });
  return found == parameters.end() ? nullptr : &*found;
}

std::vector<MediaRange> ParseAccept(std::string_view accept) {
  std::vector<MediaRange> ranges;
  while (!accept.empty() && ranges.size() < kMaxRanges) {
    std::string_view rest = Next(accept, ',');
    MediaRange range;
    range.type = Next(rest, ';');
    if (range.type == "*") range.type = "*/*";  // what Java's old client sends
    if (!IsType(range.type)) continue;
    while (!rest.empty()) {
      std::string_view value = Next(rest, ';');
      const std::string_view name = Next(value, '=');
      if (SameText(name, "q")) {
        range.q = Weight(value);
      } else if (IsToken(name)) {
        range.parameters.push_back({name, Unquoted(value)});
      }
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

Choice Choose(std::string_view accept, std::span<const Offer> offers) {
  std::vector<MediaRange> ranges = ParseAccept(accept);
  size_t best = 0;
  size_t best_place = ranges.size();
  double best_q = 0;
  for (size_t offer = 0; offer < offers.size(); ++offer) {
    // The most specific range decides about an offer.
    size_t specificity = 0;
    size_t place = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const size_t match = Specificity(ranges[i], offers[offer]);
      if (match <= specificity) continue;
      specificity = match;
      place = i;
    }
    if (specificity == 0) continue;
    const double q = ranges[place].q;
    if (q > best_q || (q > 0 && q == best_q && place < best_place)) {
      best = offer;
      best_q = q;
      best_place = place;
    }
  }
  if (best_place == ranges.size()) return {};
  return {best, std::move(ranges[best_place])};
}

bool WantsGzip(std::string_view accept_encoding) {
  const std::optional<double> identity = WeightOf(accept_encoding, "identity");
  std::optional<double> gzip = WeightOf(accept_encoding, "gzip");
  if (!gzip) gzip = WeightOf(accept_encoding, "x-gzip");
  if (!gzip && identity == 0) gzip = WeightOf(accept_encoding, "*");
  return gzip.value_or(0) > 0 && *gzip >= identity.value_or(0);
}

uint64_t HashOf(std::string_view bytes) {
  return Continue(0xCBF29CE484222325u, bytes);
}

std::string EntityTag(std::string_view content_type, std::string_view body) {
  const uint64_t hash = Continue(HashOf(content_type), body);
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
