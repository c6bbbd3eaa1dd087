// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/target.h"

#include <algorithm>
#include <chrono>

namespace rankscope::http {
namespace {

// Nobody asks with more; Prometheus repeats collect[]= a dozen times at most.
constexpr size_t kMaxParameters = 64;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

}  // namespace

std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (IsControl(c)) return std::nullopt;
    out.push_back(c);
  }
  return out;
}

Result<std::string> DecodePath(std::string_view path) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!path.starts_with(scheme)) continue;
    const size_t slash = path.find('/', scheme.size());
    path = slash == std::string_view::npos ? "/" : path.substr(slash);
    break;
  }
  if (!path.starts_with('/')) return Error{"the path does not begin with '/'"};
  std::optional<std::string> decoded = PercentDecode(path, false);
  if (!decoded) return Error{"the path is not percent-encoded text; write '%' as %25"};
  return *std::move(decoded);
}

Result<Parameters> ParseQuery(std::string_view query) {
  Parameters parameters;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    if (one.empty()) continue;
    if (parameters.size() == kMaxParameters) {
      return Error{"more than " + std::to_string(kMaxParameters) + " query parameters"};
    }
    const size_t equals = one.find('=');
    const auto name = PercentDecode(one.substr(0, equals), true);
    const auto value = equals == std::string_view::npos
                           ? std::optional<std::string>("")
                           : PercentDecode(one.substr(equals + 1), true);
    if (!name || !value) {
      return Error{"the query is not percent-encoded text; write '%' as %25"};
    }
    parameters.emplace_back(*name, *value);
  }
  return parameters;
}

Result<std::optional<std::string>> JobIdOf(const Parameters& parameters) {
  std::optional<std::string> job_id;
  for (const auto& [name, value] : parameters) {
    if (name != "job_id" && name != "slurm_job_id") continue;
    if (value.empty())
      return Error{name + " is empty; give a job id, or leave it out for all jobs"};
    if (job_id && *job_id != value) {
      return Error{"two different jobs are asked for ('" + *job_id + "' and '" + value +
                   "'); ask for one at a time"};
    }
    job_id = value;
  }
  return job_id;
}

namespace {

// Digits at the front of `text`, which loses them; nullopt: fewer than `least` or more than `most`.
std::optional<int64_t> TakeDigits(std::string_view& text, size_t least, size_t most) {
  size_t n = 0;
  int64_t value = 0;
  for (; n < text.size() && text[n] >= '0' && text[n] <= '9'; ++n) {
    if (n == most) return std::nullopt;
    value = 10 * value + (text[n] - '0');
  }
  if (n < least) return std::nullopt;
  text.remove_prefix(n);
  return value;
}

bool TakeChar(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// ".496" as nanoseconds; 0 where there is none.
std::optional<int64_t> TakeFraction(std::string_view& text) {
  if (!TakeChar(text, '.')) return 0;
  const size_t before = text.size();
  auto value = TakeDigits(text, 1, 9);
  if (!value) return std::nullopt;
  for (size_t n = before - text.size(); n < 9; ++n) *value *= 10;
  return value;
}

std::optional<int64_t> TakeClock(std::string_view& text) {
  const auto hours = TakeDigits(text, 2, 2);
  if (!hours || !TakeChar(text, ':')) return std::nullopt;
  const auto minutes = TakeDigits(text, 2, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  return *hours * 3600 + *minutes * 60;
}

// Of what follows a time of day: "Z", "+01:00".
std::optional<int64_t> TakeZone(std::string_view& text) {
  if (TakeChar(text, 'Z')) return 0;
  const bool east = text.starts_with('+');
  if (!east && !text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  const auto offset = TakeClock(text);
  if (!offset) return std::nullopt;
  return east ? *offset : -*offset;
}

}  // namespace

std::optional<int64_t> ParseWallTime(std::string_view text) {
  constexpr int64_t kSecond = 1'000'000'000;
  std::string_view rest = text;
  if (const auto year = TakeDigits(rest, 4, 4); year && TakeChar(rest, '-')) {
    const auto month = TakeDigits(rest, 2, 2);
    if (!month || !TakeChar(rest, '-')) return std::nullopt;
    const auto day = TakeDigits(rest, 2, 2);
    const std::chrono::year_month_day date{
        std::chrono::year(static_cast<int>(*year)),
        std::chrono::month(static_cast<unsigned>(*month)),
        std::chrono::day(static_cast<unsigned>(day.value_or(0)))};
    if (!date.ok() || !TakeChar(rest, 'T')) return std::nullopt;
    const auto clock = TakeClock(rest);
    if (!clock || !TakeChar(rest, ':')) return std::nullopt;
    const auto seconds = TakeDigits(rest, 2, 2);
    const auto fraction = TakeFraction(rest);
    const auto zone = TakeZone(rest);
    if (!seconds || *seconds > 60 || !fraction || !zone || !rest.empty()) return std::nullopt;
    const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    const int64_t total = days * 86'400 + *clock + *seconds - *zone;
    if (total < 0 || total > 9'000'000'000) return std::nullopt;
    return total * kSecond + *fraction;
  }
  rest = text;
  const auto seconds = TakeDigits(rest, 1, 10);
  const auto fraction = TakeFraction(rest);
  if (!seconds || *seconds > 9'000'000'000 || !fraction || !rest.empty()) return std::nullopt;
  return *seconds * kSecond + *fraction;
}

}  // namespace rankscope::http
