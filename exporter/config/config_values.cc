// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How a configuration's values are spelled: durations, sizes, addresses.
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "exporter/config/config.h"
#include "exporter/config/listen_address.h"

namespace rankscope::exporter {
namespace {

struct Unit {
  std::string_view name;
  int64_t scale;
};

// Largest first: a duration names its units in this order, each at most once.
constexpr std::array<Unit, 7> kDurationUnits = {{
    {"y", 365ll * 24 * 3600 * 1'000'000'000},
    {"w", 7ll * 24 * 3600 * 1'000'000'000},
    {"d", 24ll * 3600 * 1'000'000'000},
    {"h", 3600ll * 1'000'000'000},
    {"m", 60ll * 1'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
}};
constexpr size_t kHours = 3;

constexpr std::array<Unit, 5> kSizeUnits = {{
    {"TiB", int64_t{1} << 40},
    {"GiB", int64_t{1} << 30},
    {"MiB", int64_t{1} << 20},
    {"KiB", int64_t{1} << 10},
    {"B", 1},
}};

// Takes the digits off the front; nullopt without any or when they do not fit.
std::optional<int64_t> TakeNumber(std::string_view& text) {
  int64_t value = 0;
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

Error BadDuration(std::string_view text) {
  return Error{"'" + std::string(text) + "' is not a duration; write 30s, 1m30s, 500ms or 24h"};
}

Error BadSize(std::string_view text) {
  return Error{"'" + std::string(text) +
               "' is not a size; write 64MiB, 2GiB, 512KiB or plain bytes"};
}

}  // namespace

Result<Duration> ParseDuration(std::string_view text) {
  if (text == "0") return Duration{};
  std::string_view rest = text;
  int64_t total = 0;
  size_t next_unit = 0;
  if (rest.empty()) return BadDuration(text);
  while (!rest.empty()) {
    const auto value = TakeNumber(rest);
    if (!value) return BadDuration(text);
    const size_t letters = std::min(rest.find_first_of("0123456789"), rest.size());
    size_t unit = next_unit;
    while (unit < kDurationUnits.size() && kDurationUnits[unit].name != rest.substr(0, letters)) {
      ++unit;
    }
    if (unit == kDurationUnits.size()) return BadDuration(text);
    int64_t part = 0;
    if (__builtin_mul_overflow(*value, kDurationUnits[unit].scale, &part) ||
        __builtin_add_overflow(total, part, &total)) {
      return BadDuration(text);
    }
    next_unit = unit + 1;
    rest.remove_prefix(letters);
  }
  return Duration{total};
}

std::string FormatDuration(Duration duration) {
  if (duration.ns == 0) return "0s";
  std::string text;
  int64_t rest = duration.ns;
  for (size_t unit = kHours; unit < kDurationUnits.size(); ++unit) {
    const int64_t count = rest / kDurationUnits[unit].scale;
    rest -= count * kDurationUnits[unit].scale;
    if (count > 0) text += std::to_string(count) + std::string(kDurationUnits[unit].name);
  }
  return text;
}

Result<int64_t> ParseSize(std::string_view text) {
  std::string_view rest = text;
  const auto value = TakeNumber(rest);
  if (!value) return BadSize(text);
  if (rest.empty()) return *value;
  for (const Unit& unit : kSizeUnits) {
    int64_t bytes = 0;
    if (rest == unit.name && !__builtin_mul_overflow(*value, unit.scale, &bytes)) return bytes;
  }
  return BadSize(text);
}

std::string FormatSize(int64_t bytes) {
  for (const Unit& unit : kSizeUnits) {
    if (bytes >= unit.scale && bytes % unit.scale == 0 && unit.scale > 1) {
      return std::to_string(bytes / unit.scale) + std::string(unit.name);
    }
  }
  return std::to_string(bytes);
}

Result<double> ParseShare(std::string_view text) {
  double percent = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), percent, std::chars_format::fixed);
  if (error != std::errc() || std::string_view(end, text.data() + text.size()) != "%" ||
      !(percent >= 0) || !std::isfinite(percent)) {
    return Error{"'" + std::string(text) + "' is not a share; write 1% or 0.5%"};
  }
  return percent / 100;
}

std::string FormatShare(double share) {
  char digits[32];
  // Two digits after the point are finer than the least share that is taken.
  const double percent = std::round(share * 1e4) / 1e2;
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, percent);
  return std::string(digits, end) + '%';
}

std::vector<std::string> BeyondLoopback(const Config& config) {
  std::vector<std::string> beyond;
  for (const std::string& address : config.web.listen) {
    const Result<http::ListenAddress> parsed = http::ParseListenAddress(address);
    if (!parsed || !parsed->loopback) beyond.push_back(address);
  }
  return beyond;
}

Status CheckListenAddress(std::string_view text) {
  const Result<http::ListenAddress> address = http::ParseListenAddress(std::string(text));
  return address ? Status() : Status(Error{address.error()});
}

}  // namespace rankscope::exporter
