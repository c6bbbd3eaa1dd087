// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/document/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "detectors/model/hidden_text.h"
#include "detectors/model/utf8.h"

namespace rankscope {

// Shortest text that reads back as the same double; plain digits where a person would write them.
// JSON has no NaN.
std::string JsonNumber(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  if (value == 0) return "0";
  const double size = std::fabs(value);
  const bool plain = size >= 1e-5 && size < 1e15;
  char buffer[40];
  const auto end =
      plain ? std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed)
            : std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  return {buffer, end.ptr};
}

double SixDigits(double value) {
  if (!std::isfinite(value)) return value;
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific, 5);
  double rounded = value;
  std::from_chars(buffer, end.ptr, rounded);
  return rounded;
}

void AppendJsonString(std::string_view text, std::string& out) {
  out.push_back('"');
  while (!text.empty()) {
    const size_t size = Utf8Sequence(text);
    const char first = text.front();
    if (size == 0) {
      out.append("\xEF\xBF\xBD");
    } else if (first == '"' || first == '\\') {
      out.push_back('\\');
      out.push_back(first);
    } else if (static_cast<uint8_t>(first) < 0x20 || first == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(first));
      out.append(first == '\n' ? "\\n" : first == '\t' ? "\\t" : first == '\r' ? "\\r" : escape);
    } else if (HiddenSequence(text) != 0) {
      AppendWrittenOut(CodePoint(text, size), out);
    } else {
      out.append(text.substr(0, size));
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out.push_back('"');
}

std::string Rfc3339(int64_t wall_ns) {
  // Floor division, so that times before 1970 are right too.
  constexpr int64_t kMillisPerDay = 86'400'000;
  int64_t millis = wall_ns / 1'000'000 - (wall_ns % 1'000'000 < 0 ? 1 : 0);
  int64_t days = millis / kMillisPerDay;
  millis %= kMillisPerDay;
  if (millis < 0) {
    millis += kMillisPerDay;
    --days;
  }
  // Civil date from days since 1970-01-01 (H. Hinnant, "chrono-compatible low-level date
  // algorithms"): years begin in March.
  days += 719'468;
  const int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const int64_t day_of_era = days - era * 146'097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t march_month = (5 * day_of_year + 2) / 153;
  const int64_t day = day_of_year - (153 * march_month + 2) / 5 + 1;
  const int64_t month = march_month < 10 ? march_month + 3 : march_month - 9;
  const int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                static_cast<int>(year), static_cast<int>(month), static_cast<int>(day),
                static_cast<int>(millis / 3'600'000), static_cast<int>(millis / 60'000 % 60),
                static_cast<int>(millis / 1'000 % 60), static_cast<int>(millis % 1'000));
  return buffer;
}

}  // namespace rankscope
