// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers as training programs print them: 12, -3.5, 1.244238E+01, 5e-05, nan, NaN, -inf, Infinity,
// 1,250. Stateless; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace rankscope::logs {

struct Number {
  std::string_view text;  // as printed; thousands separators are still in it
  double value = 0;

  explicit operator bool() const { return !text.empty(); }
};

enum class Thousands : bool { kNo, kYes };

// The number at the start of `text`; empty where there is none or where it runs on into a word
// ("5th", "1.2.3", "nano"). A unit may follow only where the caller takes the rest itself: `kUnit`
// lets letters follow.
enum class Ending : bool { kDelimiter, kUnit };
Number ReadNumber(std::string_view text, Ending after = Ending::kDelimiter,
                  Thousands thousands = Thousands::kNo);

// The number at the start of `text` where it is what nearly all are: digits, perhaps a point and
// digits, perhaps an exponent; read in one pass. Whatever else it may be, and whatever follows it,
// is the caller's to look at.
Number ReadDecimal(std::string_view text);

// The whole of `text` is one number.
Number WholeNumber(std::string_view text);

// A non-negative whole number without sign, point or exponent.
bool IsIndex(const Number& number);

constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool IsLetter(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z';
}
constexpr bool IsWordByte(char c) {
  return IsDigit(c) || IsLetter(c) || c == '_';
}
constexpr bool IsBlank(char c) {
  return c == ' ' || c == '\t';
}
constexpr std::string_view LeftTrimmed(std::string_view text) {
  size_t i = 0;
  while (i < text.size() && IsBlank(text[i])) ++i;
  return text.substr(i);
}
constexpr std::string_view Trimmed(std::string_view text) {
  text = LeftTrimmed(text);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace rankscope::logs
