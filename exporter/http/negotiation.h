// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// RFC 9110 content negotiation and entity tags, as far as this server needs them. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rankscope::http {

// Which of `offers` (media types; the first is the fallback) an Accept header likes best. Ties go
// to the client's order, then to the offers'. A header that wants none of them, or makes no sense,
// gets the fallback: an answer in another format helps more than 406.
size_t ChooseMediaType(std::string_view accept, std::span<const std::string_view> offers);

// A strong entity tag of this content, with its quotes.
std::string EntityTag(std::string_view content_type, std::string_view body);

// Whether an If-None-Match header names `tag`.
bool NamesTag(std::string_view if_none_match, std::string_view tag);

}  // namespace rankscope::http
