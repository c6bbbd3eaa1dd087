// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

// The four digits of "\\u001b" at `text`; -1 where there are none.
int32_t HexDigits(std::string_view text) {
  if (text.size() < 4) return -1;
  int32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    const int digit = IsDigit(c)             ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

void AppendUtf8(int32_t value, std::string& out) {
  const auto follow = [&out, value](int shift) {
    out.push_back(static_cast<char>(0x80 | ((value >> shift) & 0x3f)));
  };
  if (value < 0x80) {
    out.push_back(static_cast<char>(value));
  } else if (value < 0x800) {
    out.push_back(static_cast<char>(0xc0 | (value >> 6)));
    follow(0);
  } else if (value >= 0xd800 && value < 0xe000) {
    out.push_back('?');  // half of a pair
  } else if (value < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | (value >> 12)));
    follow(6);
    follow(0);
  } else {
    out.push_back(static_cast<char>(0xf0 | (value >> 18)));
    follow(12);
    follow(6);
    follow(0);
  }
}

}  // namespace

std::string_view UnwrapDockerLine(std::string_view text, std::string& buffer) {
  constexpr std::string_view kLog = "{\"log\":";
  if (!text.starts_with(kLog)) return text;
  size_t begin = kLog.size();
  if (begin < text.size() && text[begin] == ' ') ++begin;  // copies of it that Python wrote
  if (begin == text.size() || text[begin] != '"') return text;
  buffer.clear();
  for (size_t i = begin + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      while (!buffer.empty() && (buffer.back() == '\n' || buffer.back() == '\r')) buffer.pop_back();
      return buffer;
    }
    if (c != '\\' || ++i == text.size()) {
      buffer.push_back(c);
      continue;
    }
    const char escaped = text[i];
    if (escaped == 'u') {
      const int32_t value = HexDigits(text.substr(i + 1));
      if (value < 0) return text;
      i += 4;
      // Beyond 16 bits a character is written as a pair of surrogates.
      const bool pair = value >= 0xd800 && value < 0xdc00 && text.substr(i + 1, 2) == "\\u";
      const int32_t low = pair ? HexDigits(text.substr(i + 3)) : -1;
      if (low >= 0xdc00 && low < 0xe000) {
        AppendUtf8(0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00), buffer);
        i += 6;
      } else {
        AppendUtf8(value, buffer);
      }
    } else {
      buffer.push_back(escaped == 'n'   ? '\n'
                       : escaped == 't' ? '\t'
                       : escaped == 'r' ? '\r'
                                        : escaped);
    }
  }
  return text;  // cut off
}

std::string_view StripAnsi(std::string_view text, std::string& buffer) {
  buffer.clear();
  size_t i = 0;
  while (i < text.size()) {
    const void* found = std::memchr(text.data() + i, 0x1b, text.size() - i);
    const size_t escape = found == nullptr
                              ? text.size()
                              : static_cast<size_t>(static_cast<const char*>(found) - text.data());
    buffer.append(text, i, escape - i);
    i = escape;
    if (i == text.size()) break;
    ++i;
    if (i < text.size() &&
        text[i] == '[') {  // CSI: parameters 0x30-0x3f, intermediates 0x20-0x2f, final 0x40-0x7e
      ++i;
      while (i < text.size() && text[i] >= 0x20 && text[i] <= 0x3f) ++i;
      if (i < text.size() && text[i] >= 0x40 && text[i] <= 0x7e) ++i;
    } else if (i < text.size() &&
               text[i] == ']') {  // OSC: up to BEL or ESC \, which must come soon
      const size_t end = text.substr(i, 512).find_first_of(std::string_view("\a\x1b", 2));
      if (end != std::string_view::npos) {
        i += end + 1;
        if (i < text.size() && text[i - 1] == 0x1b && text[i] == '\\') ++i;
      }
    } else if (i < text.size() && text[i] >= 0x20 && text[i] <= 0x7e) {
      ++i;  // two-byte sequence
    }
  }
  return buffer;
}

}  // namespace rankscope::logs
