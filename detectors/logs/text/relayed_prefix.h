// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What stands before each line of a traceback, where something relays the output of another process
// or stamps it: a logger's name and level, "[3]: ", "Feb 03 04:05:06 ". Single writer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rankscope::logs {

class RelayedPrefix {
 public:
  // The line without it. The first line of a traceback shows it; those that follow have the same,
  // but for its digits, as long as the traceback is open. Their indentation is left.
  std::string_view Strip(std::string_view text, bool traceback_open);

  // Whether a traceback has shown a prefix that the next lines may have.
  bool expects() const { return !mask_.empty(); }

  template <class A>
  void Fields(A& a) {
    a(mask_);
  }

 private:
  std::string mask_;  // its digits as 0; empty: none
};

// Where the text ends that tqdm has drawn: behind the bracket that holds the rate; text.size()
// where there is no bar. A bar has no newline of its own, so what is printed next, by whoever it
// is, stands behind it.
size_t EndOfBar(std::string_view text);

}  // namespace rankscope::logs
