// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/number.h"

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <system_error>

namespace rankscope::logs {
namespace {

constexpr char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

// Length of "nan", "inf" or "infinity" at the start of `text`, whatever its case; 0 where there is
// none.
size_t NonFiniteLength(std::string_view text) {
  if (text.size() < 3) return 0;
  const auto is = [text](std::string_view word) {
    if (text.size() < word.size()) return false;
    for (size_t i = 0; i < word.size(); ++i) {
      if (Lower(text[i]) != word[i]) return false;
    }
    return true;
  };
  if (is("nan")) return 3;
  if (is("infinity")) return 8;
  if (is("inf")) return 3;
  return 0;
}

// A longer run of digits is no number anybody prints; reading it would cost time in a hostile line.
constexpr size_t kMaxDigits = 400;

size_t SkipDigits(std::string_view text, size_t i) {
  while (i < text.size() && IsDigit(text[i])) ++i;
  return i;
}

// End of "1,234,567" beginning at i, or `i` where the commas do not stand every three digits.
size_t SkipThousands(std::string_view text, size_t i) {
  const size_t begin = i;
  size_t end = SkipDigits(text, i);
  if (end == begin || end - begin > 3) return begin;
  bool any = false;
  while (end + 3 < text.size() && text[end] == ',') {
    const size_t group = SkipDigits(text, end + 1);
    if (group != end + 4) break;
    end = group;
    any = true;
  }
  return any ? end : begin;
}

constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

constexpr uint64_t kShift[] = {1,       10,        100,        1'000,      10'000,
                               100'000, 1'000'000, 10'000'000, 100'000'000};

// Eight digits, the first of them in the lowest byte, as a number (Lemire, "Quickly parsing eight
// digits", 2022).
inline uint32_t EightDigits(uint64_t bytes) {
  bytes = bytes * 10 + (bytes >> 8);
  return static_cast<uint32_t>((((bytes & 0x000000ff000000ff) * 0x000f424000000064) +
                                (((bytes >> 16) & 0x000000ff000000ff) * 0x0000271000000001)) >>
                               32);
}

// Adds the digits at p to the mantissa; returns where they end. Eight bytes at a time, of the last
// of which the digits are counted and the others shifted out: lengths vary from number to number,
// so a branch for each digit would be guessed wrongly.
inline const char* TakeDigits(const char* p, const char* end, uint64_t& mantissa) {
  while (std::endian::native == std::endian::little && end - p >= 8 && IsDigit(*p)) {
    uint64_t word;
    std::memcpy(&word, p, sizeof word);
    word ^= 0x3030303030303030;  // digits are 0 to 9 now, and the first other byte is not
    const uint64_t others = ((word + 0x7676767676767676) | word) & 0x8080808080808080;
    if (others != 0) {
      const int count = std::countr_zero(others) / 8;
      mantissa = mantissa * kShift[count] + EightDigits(word << (64 - 8 * count));
      return p + count;
    }
    mantissa = mantissa * kShift[8] + EightDigits(word);
    p += 8;
  }
  for (; p != end && IsDigit(*p); ++p) mantissa = mantissa * 10 + static_cast<uint64_t>(*p - '0');
  return p;
}

// Nearly every number in a log: at most 19 digits and a small exponent, so that the mantissa fits a
// word and the power of ten is exact. Correctly rounded up to 2^53, one unit in the last place off
// at most above. Returns where it ends; nullptr where from_chars must do it.
[[gnu::always_inline]] inline const char* FastDecimal(const char* p, const char* end,
                                                      double& value) {
  const bool negative = p != end && *p == '-';
  if (negative) ++p;
  uint64_t mantissa = 0;
  const char* const begin = p;
  if (p != end && IsDigit(*p)) mantissa = static_cast<uint64_t>(*p++ - '0');  // often the only one
  p = TakeDigits(p, end, mantissa);
  ptrdiff_t digits = p - begin;
  ptrdiff_t power = 0;
  if (p != end && *p == '.') {
    const char* const point = ++p;
    p = TakeDigits(p, end, mantissa);
    power = point - p;
    digits -= power;
  }
  if (digits == 0 || digits > 19) return nullptr;
  if (p != end && (*p | 0x20) == 'e') {
    const char* q = p + 1;
    const bool minus = q != end && *q == '-';
    if (q != end && (*q == '-' || *q == '+')) ++q;
    const char* const first = q;
    ptrdiff_t exponent = 0;
    for (; q != end && IsDigit(*q) && q - first < 4; ++q) exponent = exponent * 10 + (*q - '0');
    if (q != first) p = q;
    power += minus ? -exponent : exponent;
  }
  if (power < -22 || power > 22) return nullptr;
  const auto scaled = static_cast<double>(mantissa);
  value = power < 0 ? scaled / kPowersOfTen[-power] : scaled * kPowersOfTen[power];
  if (negative) value = -value;
  return p;
}

double ToDouble(std::string_view digits) {
  if (digits.front() == '+') digits.remove_prefix(1);
  double value = 0;
  const char* const last = digits.data() + digits.size();
  if (FastDecimal(digits.data(), last, value) == last) return value;
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  if (error != std::errc::result_out_of_range) return value;
  // Beyond a double: what strtod would say.
  const size_t exponent = digits.find_first_of("eE");
  const bool tiny = exponent != std::string_view::npos && exponent + 1 < digits.size() &&
                    digits[exponent + 1] == '-';
  const double magnitude = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  return digits.front() == '-' ? -magnitude : magnitude;
}

double ThousandsToDouble(std::string_view text) {
  double value = 0;
  double scale = 1;
  bool fraction = false;
  for (const char c : text) {
    fraction = fraction || c == '.';
    if (!IsDigit(c)) continue;
    value = value * 10 + (c - '0');
    if (fraction) scale *= 10;
  }
  value /= scale;
  return text.front() == '-' ? -value : value;
}

bool MayFollow(std::string_view text, size_t end, Ending after) {
  if (end == text.size()) return true;
  const char next = text[end];
  if (after == Ending::kDelimiter && IsWordByte(next)) return false;
  return next != '.' || end + 1 == text.size() || !IsWordByte(text[end + 1]);  // 1.2.3
}

Number ReadAnyNumber(std::string_view text, Ending after, Thousands thousands) {
  size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  if (i >= text.size()) return {};
  if (const size_t word = NonFiniteLength(text.substr(i)); word != 0) {
    const size_t end = i + word;
    if (end < text.size() && IsWordByte(text[end])) return {};
    const bool nan = Lower(text[i]) == 'n';
    const double infinity = std::numeric_limits<double>::infinity();
    return {text.substr(0, end), nan ? std::numeric_limits<double>::quiet_NaN()
                                     : (text[0] == '-' ? -infinity : infinity)};
  }
  const size_t digits = i;
  if (thousands == Thousands::kYes) {
    size_t end = SkipThousands(text, i);
    if (end != i && end + 1 < text.size() && text[end] == '.' && IsDigit(text[end + 1]))
      end = SkipDigits(text, end + 1);
    if (end != i && (end == text.size() || (!IsWordByte(text[end]) && text[end] != '.'))) {
      return {text.substr(0, end), ThousandsToDouble(text.substr(0, end))};
    }
  }
  i = SkipDigits(text, i);
  size_t count = i - digits;
  if (i < text.size() && text[i] == '.') {
    const size_t fraction = i + 1;
    const size_t end = SkipDigits(text, fraction);
    count += end - fraction;
    // "5." at the end of a sentence: the point is not the number's, unless Python printed it
    // ("[1.]").
    if (end != fraction || (count != 0 && end < text.size() && !IsBlank(text[end]))) i = end;
  }
  if (count == 0 || count > kMaxDigits) return {};
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    size_t exponent = i + 1;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    const size_t end = SkipDigits(text, exponent);
    if (end != exponent) i = end;
  }
  if (!MayFollow(text, i, after)) return {};
  return {text.substr(0, i), ToDouble(text.substr(0, i))};
}

}  // namespace

namespace {

[[gnu::always_inline]] inline Number Decimal(std::string_view text) {
  const size_t sign = !text.empty() && text[0] == '-' ? 1 : 0;
  if (text.size() <= sign || !IsDigit(text[sign])) return {};
  double value = 0;
  const char* const last = text.data() + text.size();
  const char* const end = FastDecimal(text.data(), last, value);
  if (end == nullptr || end[-1] == '.' || (end != last && IsDigit(*end))) return {};
  return {text.substr(0, static_cast<size_t>(end - text.data())), value};
}

}  // namespace

Number ReadDecimal(std::string_view text) {
  return Decimal(text);
}

Number ReadNumber(std::string_view text, Ending after, Thousands thousands) {
  if (const Number number = Decimal(text)) {
    const size_t end = number.text.size();
    if (thousands == Thousands::kNo || end == text.size() || text[end] != ',')
      return MayFollow(text, end, after) ? number : Number{};
  }
  return ReadAnyNumber(text, after, thousands);
}

Number WholeNumber(std::string_view text) {
  if (const Number number = ReadDecimal(text); number && number.text.size() == text.size())
    return number;
  if (!text.empty() && IsDigit(text.front()) && text.size() < kMaxDigits) {
    double value = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (end != last) return {};
    if (error == std::errc()) return {text, value};
  }
  const Number number = ReadNumber(text);
  return number.text.size() == text.size() ? number : Number{};
}

bool IsIndex(const Number& number) {
  if (number.text.empty() || number.text.size() > 15) return false;
  for (const char c : number.text) {
    if (!IsDigit(c) && c != ',') return false;
  }
  return true;
}

}  // namespace rankscope::logs
