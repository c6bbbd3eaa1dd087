// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Lines for a terminal: what a job printed is made harmless, and long text is broken or cut at the
// terminal's width. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rankscope {

inline constexpr size_t kColumns = 100;

// One line of printable text: control characters (C0, DEL, C1) become '?', line ends and tabs a
// blank; what nobody would see is written out.
std::string Printable(std::string_view text);

// Appends lines, broken at blanks; a word longer than a line is broken where the line ends. `first`
// begins the first line, as many blanks the others.
void Wrap(std::string_view first, std::string_view text, std::string& out);

// One line, with "..." where it would be longer than the terminal is wide.
std::string Cut(std::string_view first, std::string_view text);

template <typename Range>
std::string Join(const Range& values, std::string_view separator) {
  std::string out;
  for (const auto& value : values) {
    if (!out.empty()) out.append(separator);
    if constexpr (std::is_integral_v<std::decay_t<decltype(value)>>) {
      out.append(std::to_string(value));
    } else {
      out.append(value);
    }
  }
  return out;
}

// "3", "0-5,7": numbers in order, runs of them as ranges; the first `limit` ranges, then how many
// numbers more.
template <typename Repeated>
std::string Ranges(const Repeated& values, size_t limit) {
  std::vector<int64_t> numbers(values.begin(), values.end());
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string out;
  size_t ranges = 0;
  for (size_t i = 0; i < numbers.size();) {
    if (ranges++ == limit) return out + " and " + std::to_string(numbers.size() - i) + " more";
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    out += (out.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (last > i) out += (last == i + 1 ? "," : "-") + std::to_string(numbers[last]);
    i = last + 1;
  }
  return out;
}

// "rank 3", "ranks 0-5,7"; empty where there is none.
template <typename Repeated>
std::string RankWords(const Repeated& ranks, size_t limit) {
  if (ranks.empty()) return {};
  return (ranks.size() == 1 ? "rank " : "ranks ") + Ranges(ranks, limit);
}

}  // namespace rankscope
