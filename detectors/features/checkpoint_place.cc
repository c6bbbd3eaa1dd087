// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/checkpoint_place.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "detectors/windows/completed_save.h"

namespace rankscope::features {
namespace {

using Parts = std::vector<std::string_view>;

constexpr size_t kMostParts = 256;

// A file, or what belongs to one checkpoint of several in the folder: global_step200, mp_rank_00.
bool IsOfOneCheckpoint(std::string_view part) {
  constexpr std::string_view kPointers[] = {"latest", "last"};
  constexpr std::string_view kRanks[] = {"mp_rank_", "zero_pp_rank_"};
  const size_t dot = part.rfind('.');
  return (dot != std::string_view::npos && dot > 0 && dot + 1 < part.size()) ||
         std::find(std::begin(kPointers), std::end(kPointers), part) != std::end(kPointers) ||
         std::any_of(std::begin(kRanks), std::end(kRanks),
                     [part](std::string_view rank) { return part.starts_with(rank); }) ||
         std::isfinite(windows::StepOfCheckpointName(part));
}

Parts FolderOf(std::string_view path) {
  // The first part of a path that was cut is not whole.
  const bool cut = path.starts_with("...");
  Parts parts;
  size_t begin = cut ? std::min(path.find('/'), path.size()) : 0;
  while (begin < path.size() && parts.size() < kMostParts) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else {
      parts.push_back(part);
    }
  }
  while (!parts.empty() && IsOfOneCheckpoint(parts.back())) parts.pop_back();
  // From where it was started upwards: what stands there is not known.
  Parts known;
  for (const std::string_view part : parts) {
    if (part != "..") known.push_back(part);
  }
  return known;
}

}  // namespace

bool MayBeOneFolder(std::string_view a, std::string_view b) {
  const Parts first = FolderOf(a), second = FolderOf(b);
  const size_t common = std::min(first.size(), second.size());
  return std::equal(first.rbegin(), first.rbegin() + static_cast<ptrdiff_t>(common),
                    second.rbegin());
}

}  // namespace rankscope::features
