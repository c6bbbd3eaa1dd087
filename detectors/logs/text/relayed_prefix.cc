// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/relayed_prefix.h"

#include <cstring>

#include "detectors/logs/text/number.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

std::string Masked(std::string_view text) {
  std::string mask(text);
  for (char& c : mask) c = IsDigit(c) ? '0' : c;
  return mask;
}

}  // namespace

std::string_view RelayedPrefix::Strip(std::string_view text, bool traceback_open) {
  constexpr std::string_view kTitle = "Traceback (most recent call last):";
  constexpr size_t kWidest = 64;
  if (!text.empty() && text.back() == ':' && text.ends_with(kTitle)) {
    const std::string_view prefix = text.substr(0, text.size() - kTitle.size());
    const bool bar = prefix.find("%|") != std::string_view::npos;
    const bool known = prefix.size() <= kWidest || StripLoggerPrefix(text) == kTitle;
    mask_ = !bar && known ? Masked(prefix) : std::string();
    return text.substr(mask_.size());
  }
  if (mask_.empty()) return text;
  if (traceback_open) {
    if (Masked(text.substr(0, mask_.size())) == mask_) return text.substr(mask_.size());
    // An empty line, whose blanks somebody took.
    if (Masked(text) == Trimmed(mask_)) return {};
    // A logger's time, name and level of another text.
    const size_t stripped = text.size() - StripLoggerPrefix(text).size();
    if (stripped >= mask_.size()) return text.substr(mask_.size());
  }
  mask_.clear();
  return text;
}

size_t EndOfBar(std::string_view text) {
  // "[06:43<59:57,  1.00s/it]": few other lines hold that sign, and most bars are all of their
  // line.
  if (text.empty() || text.back() == ']' || std::memchr(text.data(), '<', text.size()) == nullptr)
    return text.size();
  for (const std::string_view rate : {"it/s", "s/it"}) {
    const size_t at = text.rfind(rate);
    if (at == std::string_view::npos) continue;
    const size_t close = text.find(']', at);
    return close == std::string_view::npos ? text.size() : close + 1;
  }
  return text.size();
}

}  // namespace rankscope::logs
