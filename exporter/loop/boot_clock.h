// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The clock that the kernel counts the starts of processes in (/proc/PID/stat, field 22): who began
// before a source did may have done things that nobody observed. Any thread.
#pragma once

#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace rankscope::exporter {

// Comparable to ProcessKey::start_ticks.
inline int64_t TicksSinceBoot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const int64_t ticks = sysconf(_SC_CLK_TCK);
  return now.tv_sec * ticks + now.tv_nsec * ticks / 1'000'000'000;
}

}  // namespace rankscope::exporter
