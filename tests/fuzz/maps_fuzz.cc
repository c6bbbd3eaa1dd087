// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as /proc/PID/maps and /proc/PID/status: each file is named once, by a name that leads
// nowhere but below map_files; and what stands in whole lines is read the same whatever follows.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "exporter/probes/attach/mappings.h"

using namespace rankscope::probes;

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

bool Same(const Mapping& a, const Mapping& b) {
  return a.range == b.range && a.device == b.device && a.inode == b.inode && a.path == b.path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<Mapping> mappings = ParseMappings(text);
  std::set<std::pair<std::string, uint64_t>> files;
  size_t bytes = 0;
  for (const Mapping& mapping : mappings) {
    Check(mapping.inode != 0 && files.emplace(mapping.device, mapping.inode).second);
    Check(mapping.range.find_first_not_of("0123456789abcdef-") == std::string::npos);
    Check(mapping.range.find('-') != std::string::npos && mapping.range.size() >= 3);
    Check(mapping.path.find('\n') == std::string::npos && !mapping.path.starts_with(' '));
    bytes += mapping.range.size() + mapping.device.size() + mapping.path.size();
  }
  Check(bytes <= size);
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', end + 1 + size / 8)) {
    const std::vector<Mapping> some = ParseMappings(text.substr(0, end + 1));
    Check(some.size() <= mappings.size());
    for (size_t i = 0; i < some.size(); ++i) Check(Same(some[i], mappings[i]));
  }
  const std::string mark = ParseCodeMark(text);
  Check(mark.size() <= size && mark.find('\n') == std::string::npos);
  return 0;
}
