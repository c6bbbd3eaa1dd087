// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How short of memory a process is: pages that it had to wait for, and how much of it the kernel
// has written to swap. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rankscope::collectors {

struct MemoryShortage {
  std::optional<int64_t> major_faults;   // since its start, of all threads
  std::optional<int64_t> swapped_bytes;  // shared memory excluded (proc(5), VmSwap)
};

// From /proc/PID/stat and /proc/PID/status; what one of them does not say is absent.
MemoryShortage ParseMemoryShortage(std::string_view stat, std::string_view status);

}  // namespace rankscope::collectors
