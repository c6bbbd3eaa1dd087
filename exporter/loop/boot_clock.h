// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The kernel's clocks, and the one that it counts the starts of processes in (/proc/PID/stat, field
// 22): who began before a source did may have done things that nobody observed. Any thread.
#pragma once

#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace rankscope::exporter {

// Nanoseconds.
inline int64_t ReadClock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Comparable to ProcessKey::start_ticks.
inline int64_t TicksSinceBoot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const int64_t ticks = sysconf(_SC_CLK_TCK);
  return now.tv_sec * ticks + now.tv_nsec * ticks / 1'000'000'000;
}

}  // namespace rankscope::exporter
