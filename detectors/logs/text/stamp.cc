// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/stamp.h"

#include <algorithm>

#include "detectors/logs/text/number.h"

namespace rankscope::logs {
namespace {

// Whether `text` begins as `shape`: d is a digit, A a letter, _ a digit or a blank.
bool HasShape(std::string_view text, std::string_view shape) {
  if (text.size() < shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const char c = text[i];
    const bool fits = shape[i] == 'd'   ? IsDigit(c)
                      : shape[i] == 'A' ? IsLetter(c)
                      : shape[i] == '_' ? IsDigit(c) || c == ' '
                                        : c == shape[i];
    if (!fits) return false;
  }
  return true;
}

// "node7 kernel: text", "node7 slurmd[812]: text": a host and who speaks there.
bool IsOfDaemon(std::string_view text) {
  const size_t host = std::min(text.find(' '), text.size());
  const auto of_name = [](char c) { return IsWordByte(c) || c == '-' || c == '.'; };
  if (host == 0 || host + 1 >= text.size() ||
      !std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(host), of_name))
    return false;
  const std::string_view rest = text.substr(host + 1);
  const std::string_view name = rest.substr(0, rest.find(' '));
  return !name.empty() && IsLetter(name.front()) && name.ends_with(':');
}

// Log viewers that export lines set a TAB behind the time; so does a table, whose rows hold more
// of them, or nothing but a number.
std::string_view BehindTab(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-dd";
  constexpr std::string_view kTime = "dd:dd:dd";
  const size_t clock = kShape.size() + 1;
  if (!HasShape(text, kShape) || !HasShape(text.substr(std::min(clock, text.size())), kTime) ||
      (text[kShape.size()] != ' ' && text[kShape.size()] != 'T'))
    return text;
  size_t i = clock + kTime.size();
  if (i < text.size() && (text[i] == '.' || text[i] == ',')) {
    while (++i < text.size() && IsDigit(text[i])) continue;
  }
  if (i < text.size() && text[i] == 'Z') ++i;
  if (i >= text.size() || text[i] != '\t') return text;
  const std::string_view rest = text.substr(i + 1);
  if (rest.find('\t') != std::string_view::npos || WholeNumber(Trimmed(rest))) return text;
  return rest;
}

}  // namespace

size_t EndOfSyslogDate(std::string_view text) {
  constexpr std::string_view kShape = "AAA _d dd:dd:dd ";
  return HasShape(text, kShape) ? kShape.size() : 0;
}

std::string_view StripStamp(std::string_view text) {
  if (text.empty()) return text;
  if (IsDigit(text.front())) return BehindTab(text);
  const size_t end = EndOfSyslogDate(text);
  return end == 0 || IsOfDaemon(text.substr(end)) ? text : text.substr(end);
}

}  // namespace rankscope::logs
