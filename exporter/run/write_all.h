// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Writes everything or says why not. Any thread.
#pragma once

#include <string_view>

namespace rankscope::run {

struct Written {
  size_t written = 0;
  int error = 0;  // errno of the write that failed; 0 = all is written
};

// Blocks as a plain write would, also when somebody made the descriptor non-blocking.
Written WriteAll(int fd, std::string_view bytes);

}  // namespace rankscope::run
