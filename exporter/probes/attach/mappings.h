// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What /proc tells of the code that a process runs, as text: which files it is mapped from, and
// whether that has changed. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::probes {

// One file that code is mapped from.
struct Mapping {
  std::string range;   // as /proc/PID/map_files names it
  std::string device;  // as the maps print it: major:minor
  uint64_t inode = 0;
  std::string path;
};
// The executable ones of /proc/PID/maps, each file once. Pure.
std::vector<Mapping> ParseMappings(std::string_view maps);
// What of /proc/PID/status changes with every exec and every dlopen: the name, and how much code is
// mapped. Empty where there is none: the process has ended. Pure.
std::string ParseCodeMark(std::string_view status);

}  // namespace rankscope::probes
