// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Slurm's short form of a list of nodes as the names that it stands for. Pure; any bytes; any
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

// The largest cluster that Slurm is documented to run has fewer; names are host names.
inline constexpr size_t kMaxHosts = 16'384;
inline constexpr size_t kMaxHostName = 255;

struct HostNames {
  std::vector<std::string> names;  // in the order of the list, twice what stands twice
  bool whole = true;  // false: these are more than kMaxHosts, or what follows is no list of names
};

// "n[1-3,05-07],gpu-a", "r[0-1]n[1-2]". A range keeps the zeros of its lower end.
HostNames ExpandHostList(std::string_view text);

}  // namespace rankscope
