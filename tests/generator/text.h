// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Text of the simulated programs: printf into a string, and calendar times. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace rankscope::generator {

[[gnu::format(printf, 1, 2)]] std::string Text(const char* format, ...);

// strftime of UTC; %f in it stands for six digits of the second.
std::string Calendar(int64_t wall_ns, const char* format);

// [MM:SS, H:MM:SS] as tqdm prints it.
std::string Clock(double seconds);

}  // namespace rankscope::generator
