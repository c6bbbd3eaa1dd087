// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/clock.h"

#include <time.h>

#include <array>
#include <cstdio>

#include "exporter/loop/boot_clock.h"
#include "exporter/run/process_facts.h"

namespace rankscope::run {

using exporter::ReadClock;

Timestamp MonotonicNow() {
  return {ReadClock(CLOCK_MONOTONIC)};
}
int64_t WallNowNs() {
  return ReadClock(CLOCK_REALTIME);
}

Epoch ReadEpoch() {
  const int64_t before = ReadClock(CLOCK_MONOTONIC);
  const int64_t wall = ReadClock(CLOCK_REALTIME);
  const int64_t after = ReadClock(CLOCK_MONOTONIC);
  return {wall - (before + after) / 2, after - before, ReadBootId()};
}

std::string WallText(int64_t wall_ns) {
  const time_t seconds = wall_ns / 1'000'000'000;
  const int milliseconds = static_cast<int>(wall_ns / 1'000'000 % 1000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const size_t size = strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + size, text.size() - size, ".%03dZ", milliseconds);
  return text.data();
}

}  // namespace rankscope::run
