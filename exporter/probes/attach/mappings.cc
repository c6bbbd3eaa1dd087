// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/mappings.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace rankscope::probes {
namespace {

std::string_view TakeField(std::string_view& line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const size_t end = std::min(line.find(' ', begin), line.size());
  const std::string_view field = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return field;
}

// "7f0a4c000000-7f0a4c022000", which becomes a name below /proc/PID/map_files.
bool IsRange(std::string_view text) {
  const size_t dash = text.find('-');
  return dash != 0 && dash != text.npos && dash + 1 < text.size() &&
         text.find('-', dash + 1) == text.npos &&
         text.find_first_not_of("0123456789abcdef-") == text.npos;
}

}  // namespace

std::vector<Mapping> ParseMappings(std::string_view maps) {
  std::vector<Mapping> mappings;
  std::set<std::pair<std::string_view, uint64_t>> known;
  while (!maps.empty()) {
    const size_t end = std::min(maps.find('\n'), maps.size());
    std::string_view line = maps.substr(0, end);
    maps.remove_prefix(std::min(end + 1, maps.size()));
    const std::string_view range = TakeField(line);
    const std::string_view rights = TakeField(line);
    TakeField(line);  // offset
    const std::string_view device = TakeField(line);
    const std::string_view inode = TakeField(line);
    if (rights.size() < 3 || rights[2] != 'x' || !IsRange(range)) continue;
    uint64_t number = 0;
    std::from_chars(inode.data(), inode.data() + inode.size(), number);
    if (number == 0 || !known.emplace(device, number).second) continue;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    mappings.push_back({std::string(range), std::string(device), number, std::string(line)});
  }
  return mappings;
}

std::string ParseCodeMark(std::string_view status) {
  std::string mark;
  bool mapped = false;
  while (!status.empty()) {
    const size_t end = std::min(status.find('\n'), status.size());
    const std::string_view line = status.substr(0, end);
    status.remove_prefix(std::min(end + 1, status.size()));
    const bool size = line.starts_with("VmExe:") || line.starts_with("VmLib:");
    if (size || line.starts_with("Name:")) mark.append(line);
    mapped |= size;
  }
  return mapped ? mark : std::string();
}

}  // namespace rankscope::probes
