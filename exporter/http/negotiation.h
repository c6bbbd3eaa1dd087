// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// RFC 9110 content negotiation and entity tags, as far as this server needs them. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::http {

struct MediaParameter {
  std::string_view name;   // any case in requests
  std::string_view value;  // of a request: as sent, without quotes
};

// What can be answered with.
struct Offer {
  std::string_view type;  // text/plain
  // Only a range whose parameter of this name is absent or has this value means the offer; other
  // parameters of ranges (charset, escaping) say nothing about it.
  std::span<const MediaParameter> parameters = {};
  bool only_by_name = false;    // wildcards do not mean it
  bool all_parameters = false;  // nor does a range that leaves a parameter out
};

struct MediaRange {
  std::string_view type;  // text/plain, text/*, */*
  std::vector<MediaParameter> parameters;
  double q = 1;

  const MediaParameter* Find(std::string_view name) const;
};

// The ranges of an Accept header in its order. What is no type/subtype is left out, an odd q says
// nothing, and what follows the first kMaxRanges is not read.
std::vector<MediaRange> ParseAccept(std::string_view accept);
inline constexpr size_t kMaxRanges = 32;  // Prometheus 3 sends 6, a browser 8

struct Choice {
  size_t offer = 0;
  MediaRange range;  // that decided; empty when none did. Views into the header
};

// Which of `offers` (the first is the fallback) an Accept header likes best. Ties go to the
// client's order, then to the offers'. A header that wants none of them, or makes no sense, gets
// the fallback: an answer in another format helps more than 406.
Choice Choose(std::string_view accept, std::span<const Offer> offers);

// Whether an Accept-Encoding header asks for gzip by name and does not like identity better. `*`
// stands for gzip only where identity is refused.
bool WantsGzip(std::string_view accept_encoding);

// FNV-1a, 64 bit.
uint64_t HashOf(std::string_view bytes);

// A strong entity tag of this content, with its quotes.
std::string EntityTag(std::string_view content_type, std::string_view body);

// Whether an If-None-Match header names `tag`.
bool NamesTag(std::string_view if_none_match, std::string_view tag);

}  // namespace rankscope::http
