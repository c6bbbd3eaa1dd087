// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Digits and letters as ASCII has them, whatever the locale. For everybody who reads numbers in
// text outside the log, whose own are in logs/text/number.h. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace rankscope {

constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// At least one.
constexpr bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A to Z become a to z; every other byte stays.
inline std::string LowerAscii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return lower;
}

}  // namespace rankscope
