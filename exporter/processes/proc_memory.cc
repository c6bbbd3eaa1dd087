// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/proc_memory.h"

#include <charconv>

#include "exporter/processes/proc_text.h"

namespace rankscope::collectors {
namespace {

// Field 12 of proc(5), counted from the name's end: the name may hold spaces and parentheses.
std::optional<int64_t> MajorFaults(std::string_view stat) {
  constexpr int kBetween = 10;  // fields 3 (state) to 11, and the blank before the first
  size_t at = stat.rfind(')');
  for (int i = 0; i < kBetween; ++i) {
    if (at == std::string_view::npos) return std::nullopt;
    at = stat.find(' ', at + 1);
  }
  if (at == std::string_view::npos) return std::nullopt;
  int64_t faults = 0;
  const char* const end = stat.data() + stat.size();
  const auto read = std::from_chars(stat.data() + at + 1, end, faults);
  return read.ec == std::errc() ? std::optional(faults) : std::nullopt;
}

}  // namespace

MemoryShortage ParseMemoryShortage(std::string_view stat, std::string_view status) {
  return {MajorFaults(stat), FindNumber(status, "VmSwap")};
}

}  // namespace rankscope::collectors
