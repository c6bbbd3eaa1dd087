// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/json_text.h"

#include <cstddef>

namespace rankscope::logs {
namespace {

constexpr size_t kMost = size_t{64} * 1024;
constexpr size_t kHexDigits = 4;

// The byte that an escape stands for; '?' where that is no byte of ASCII's, which no part of a
// traceback that matters is.
char ByteOfHex(std::string_view digits) {
  unsigned value = 0;
  for (const char c : digits) {
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<unsigned>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<unsigned>(lower - 'a' + 10);
    } else {
      return '?';
    }
  }
  return value >= 0x20 && value < 0x7f ? static_cast<char>(value) : '?';
}

char ByteOf(char escape) {
  switch (escape) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
    case 'b':
    case 'f':
      return ' ';
    default:
      return escape;
  }
}

}  // namespace

std::string_view TracebackInJson(std::string_view line, std::string& buffer) {
  constexpr std::string_view kTitle = "Traceback (most recent call last):\\n";
  if (line.empty() || line.front() != '{') return {};
  const size_t begin = line.find(kTitle);
  if (begin == std::string_view::npos) return {};
  buffer.clear();
  for (size_t i = begin; i < line.size() && buffer.size() < kMost; ++i) {
    const char c = line[i];
    if (c == '"') return buffer;
    if (c != '\\') {
      buffer.push_back(c);
      continue;
    }
    if (++i == line.size()) break;
    if (line[i] == 'u') {
      buffer.push_back(ByteOfHex(line.substr(i + 1, kHexDigits)));
      i += kHexDigits;
    } else {
      buffer.push_back(ByteOf(line[i]));
    }
  }
  return buffer;
}

}  // namespace rankscope::logs
