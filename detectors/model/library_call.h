// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How calls into a library that may be slow have gone, by function: for /metrics. Plain data; any
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace rankscope {

// Seconds. A call into a driver takes 10 us where it reads memory and some ms where it asks the
// card's firmware; one that waits for a lock takes as long as whoever has it.
inline constexpr std::array<double, 6> kLibraryCallBounds = {0.00025, 0.001, 0.01, 0.1, 1, 10};

struct LibraryCall {
  std::string_view function;  // of a closed list, for the program's life
  // Calls that have returned, by the bound that they stayed within; the last is of longer ones.
  std::array<int64_t, kLibraryCallBounds.size() + 1> counts{};
  double seconds = 0;  // all of them
  // Those that have failed, by the library's name for it; what a card does not support, and what it
  // does not have, is no failure. None that is 0.
  std::vector<std::pair<std::string_view, int64_t>> errors;
};

}  // namespace rankscope
