// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Where a secret stands in a text, and what the redactor's rules find it with. Stateless; any
// thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "detectors/logs/text/number.h"

namespace rankscope::logs {

struct Span {
  size_t begin = 0;
  size_t end = 0;  // begin == end: no secret
  bool found() const { return end > begin; }
};

inline bool IsTokenByte(char c) {
  return IsWordByte(c) || c == '-';
}
inline bool IsBase64UrlByte(char c) {
  return IsWordByte(c) || c == '-' || c == '=';
}
inline bool IsCredentialByte(char c) {
  return IsBase64UrlByte(c) || c == '.' || c == '~' || c == '+' || c == '/';
}

template <typename Pred>
size_t SkipWhile(std::string_view text, size_t i, Pred pred) {
  while (i < text.size() && pred(text[i])) ++i;
  return i;
}

inline bool StartsWord(std::string_view text, size_t i) {
  return i == 0 || !IsWordByte(text[i - 1]);
}

inline bool HasDigit(std::string_view text) {
  return std::any_of(text.begin(), text.end(), IsDigit);
}

}  // namespace rankscope::logs
