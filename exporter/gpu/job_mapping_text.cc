// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/job_mapping_text.h"

namespace rankscope::collectors {
namespace {

bool IsDigits(std::string_view text, size_t cap) {
  return !text.empty() && text.size() <= cap && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

bool IsGpuName(std::string_view name) {
  const size_t dot = name.find('.');
  return IsDigits(name.substr(0, dot), 4) &&
         (dot == name.npos || IsDigits(name.substr(dot + 1), 4));
}

std::vector<std::string> ReadJobIds(std::string_view text, bool whole) {
  constexpr size_t kIdDigits = 10;
  std::vector<std::string> ids;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == text.npos && !whole) break;
    std::string_view line = text.substr(0, end);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (IsDigits(line, kIdDigits)) ids.emplace_back(line);
  }
  return ids;
}

}  // namespace rankscope::collectors
