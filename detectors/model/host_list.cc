// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/host_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

namespace rankscope {
namespace {

constexpr size_t kMaxDigits = 18;  // fit an int64

// "[1-3,05]" multiplies what stands before it: each pair of brackets is one step of Widen.
struct Range {
  int64_t low = 0;
  int64_t high = 0;
  size_t width = 0;  // of the lower end, as it is written
};

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == ':';
}

bool AreDigits(std::string_view text) {
  return !text.empty() && text.size() <= kMaxDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int64_t NumberOf(std::string_view digits) {
  int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// Without blanks around it; empty where it is one of Slurm's words for nothing.
std::string_view Listed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  constexpr std::string_view kNothing[] = {"(null)", "None", "N/A",  "None assigned", "Unknown",
                                           "n/a",    "NONE", "none", "Not Set"};
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
  const bool nothing =
      std::find(std::begin(kNothing), std::end(kNothing), text) != std::end(kNothing);
  return nothing ? std::string_view() : text;
}

std::optional<Range> ReadRange(std::string_view text) {
  const size_t dash = text.find('-');
  const std::string_view low = text.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : text.substr(dash + 1);
  if (!AreDigits(low) || !AreDigits(high)) return std::nullopt;
  const Range range{NumberOf(low), NumberOf(high), low.size()};
  if (range.high < range.low) return std::nullopt;
  return range;
}

std::string Padded(int64_t number, size_t width) {
  std::string digits = std::to_string(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

// Every name begun so far, with every number of the brackets' inside behind it. nullopt: no list of
// ranges, or more than `room` names.
std::optional<std::vector<std::string>> Widen(const std::vector<std::string>& begun,
                                              std::string_view inside, size_t room) {
  std::vector<std::string> numbers;
  size_t at = 0;
  while (at <= inside.size()) {
    const size_t comma = std::min(inside.find(',', at), inside.size());
    const auto range = ReadRange(inside.substr(at, comma - at));
    at = comma + 1;
    if (!range) return std::nullopt;
    // Subtraction of two that are not negative does not overflow.
    if (static_cast<uint64_t>(range->high - range->low) >= room - numbers.size()) {
      return std::nullopt;
    }
    for (int64_t n = range->low; n <= range->high; ++n) numbers.push_back(Padded(n, range->width));
  }
  if (begun.size() > room / numbers.size()) return std::nullopt;
  std::vector<std::string> wide;
  wide.reserve(begun.size() * numbers.size());
  for (const std::string& name : begun) {
    for (const std::string& number : numbers) {
      wide.push_back(name + number);
      if (wide.back().size() > kMaxHostName) return std::nullopt;
    }
  }
  return wide;
}

// One item between commas outside of brackets.
std::optional<std::vector<std::string>> ExpandItem(std::string_view item, size_t room) {
  std::vector<std::string> names = {""};
  while (!item.empty()) {
    if (item.front() == '[') {
      const size_t close = item.find(']');
      if (close == std::string_view::npos) return std::nullopt;
      auto wide = Widen(names, item.substr(1, close - 1), room);
      if (!wide) return std::nullopt;
      names = *std::move(wide);
      item.remove_prefix(close + 1);
      continue;
    }
    const std::string_view plain = item.substr(0, item.find('['));
    item.remove_prefix(plain.size());
    if (!std::all_of(plain.begin(), plain.end(), IsNameByte)) return std::nullopt;
    if (plain.size() > kMaxHostName) return std::nullopt;
    for (std::string& name : names) {
      name += plain;
      if (name.size() > kMaxHostName) return std::nullopt;
    }
  }
  return names;
}

}  // namespace

HostNames ExpandHostList(std::string_view text) {
  HostNames hosts;
  text = Listed(text);
  bool bracket = false;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size() && !text.empty(); ++i) {
    if (i < text.size()) {
      if (text[i] == '[') bracket = true;
      if (text[i] == ']') bracket = false;
      if (text[i] != ',' || bracket) continue;
    }
    const std::string_view item = text.substr(begin, i - begin);
    begin = i + 1;
    const size_t room = kMaxHosts - hosts.names.size();
    auto names = item.empty() || room == 0 ? std::nullopt : ExpandItem(item, room);
    if (!names) {
      // What follows is not looked at: each item costs up to kMaxHosts names, right or wrong.
      hosts.whole = false;
      break;
    }
    hosts.names.insert(hosts.names.end(), std::make_move_iterator(names->begin()),
                       std::make_move_iterator(names->end()));
  }
  return hosts;
}

}  // namespace rankscope
