// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The files of a recording's directory, and how they are opened. Any thread.
//
//     bulk-00000001.rec   every observation in order; the oldest segments are removed as new ones
//     come bulk-00000002.rec   ... begins with the engine's state. A number left out means:
//     observations were lost there. facts.rec           a copy of all that is neither text, number
//     nor tick progress.rec        lines worth keeping out of the segments that were removed
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/loop/owned_fd.h"

namespace rankscope::replay {

inline constexpr char kFactsName[] = "facts.rec";
inline constexpr char kProgressName[] = "progress.rec";

std::string SegmentName(int64_t number);

// 0 when `name` is not a segment's.
int64_t SegmentNumber(std::string_view name);

// Numbers of the segments in the directory, rising. Looks at no more than `most_entries` entries:
// the directory may be a stranger's.
std::vector<int64_t> ListSegments(int directory_fd, size_t most_entries = 4096);

// Opens for reading, follows no link, never waits, and takes nothing but a regular file; errno says
// why not.
OwnedFd OpenForReading(int directory_fd, const std::string& name);

}  // namespace rankscope::replay
