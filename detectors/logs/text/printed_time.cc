// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/logs/text/printed_time.h"

#include <algorithm>
#include <cstring>

#include "detectors/model/ascii.h"

namespace rankscope::logs {
namespace {

// A time stands before the message, behind level, rank and module.
constexpr size_t kReach = 64;
// What is further ahead than this is a date in a message: an expiry, an estimate.
constexpr int64_t kFarAhead = int64_t{30} * 24 * 3600 * 1000;

// The number of `size` digits at `at`; -1 where they are not all digits.
int32_t Number(std::string_view text, size_t at, size_t size) {
  if (at + size > text.size()) return -1;
  int32_t number = 0;
  for (size_t i = at; i < at + size; ++i) {
    if (!IsDigit(text[i])) return -1;
    number = number * 10 + (text[i] - '0');
  }
  return number;
}

struct Date {
  int32_t year = 0;  // 0 = not printed
  int32_t month = 0;
  int32_t day = 0;
};

// The date that ends at `end`, exclusive.
Date DateBefore(std::string_view text, size_t end) {
  const auto separated = [&](size_t at, char separator) { return text[at] == separator; };
  if (end >= 10) {
    const size_t at = end - 10;
    for (const char separator : {'-', '/'}) {
      if (separated(at + 4, separator) && separated(at + 7, separator))
        return {Number(text, at, 4), Number(text, at + 5, 2), Number(text, at + 8, 2)};
    }
    if (separated(at + 2, '/') && separated(at + 5, '/'))
      return {Number(text, at + 6, 4), Number(text, at, 2), Number(text, at + 3, 2)};
  }
  if (end >= 5 && separated(end - 3, '/') && (end == 5 || !IsDigit(text[end - 6])))
    return {0, Number(text, end - 5, 2), Number(text, end - 2, 2)};
  // A level's letter, the month with one digit or two, the day with two.
  size_t begin = end;
  while (begin > 0 && end - begin < 5 && IsDigit(text[begin - 1])) --begin;
  const size_t digits = end - begin;
  if ((digits == 3 || digits == 4) && begin > 0 &&
      std::string_view("IWEFCDV").find(text[begin - 1]) != std::string_view::npos)
    return {0, Number(text, begin, digits - 2), Number(text, end - 2, 2)};
  return {};
}

// Days since 1970-01-01 of the Gregorian calendar (era arithmetic: a year begins in March).
int64_t Days(int32_t year, int32_t month, int32_t day) {
  const int64_t y = year - (month <= 2 ? 1 : 0);
  const int64_t era = y / 400;
  const int64_t of_era = y - era * 400;
  const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

}  // namespace

int64_t PrintedClock::Advance(std::string_view line) {
  const std::string_view text = line.substr(0, kReach);
  // "hh:mm:ss" behind a date and one character.
  for (size_t at = 0; at + 6 <= text.size();) {
    const void* found = std::memchr(text.data() + at, ':', text.size() - at);
    if (found == nullptr) break;
    const size_t colon = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    at = colon + 1;
    if (colon < 6 || colon + 6 > text.size() || text[colon + 3] != ':') continue;
    const char between = text[colon - 3];
    if (between != ' ' && between != 'T') continue;
    const int32_t hour = Number(text, colon - 2, 2), minute = Number(text, colon + 1, 2),
                  second = Number(text, colon + 4, 2);
    const Date date = DateBefore(text, colon - 3);
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) continue;
    if (date.month < 1 || date.month > 12 || date.day < 1 || date.day > 31 || date.year < 0)
      continue;
    int64_t ms = 0;
    if (colon + 6 < text.size() && (text[colon + 6] == '.' || text[colon + 6] == ','))
      ms = std::max(0, Number(text, colon + 7, 3));
    const int32_t year = date.year > 0 ? date.year : year_;
    const int64_t printed =
        ((Days(year, date.month, date.day) * 24 + hour) * 60 + minute) * 60'000 + second * 1000 +
        ms;
    if (printed < newest_ || (newest_ > 0 && printed - newest_ > kFarAhead)) break;
    newest_ = printed;
    if (date.year > 0) {
      year_ = date.year;
      year_known_ = true;
    }
    break;
  }
  return newest_;
}

}  // namespace rankscope::logs
