// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What stands before a run's words: when it printed its first and last record and ended, by the
// dates in three of its lines, and what others have set before a line. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace rankscope::windows {

// Milliseconds since 1970 without a zone; 0 where the line has no date.
struct PrintedSpan {
  int64_t first = 0, last = 0, end = 0;
};

// `end` is text that begins with the scheduler's date of the end, which has a year; the program's
// dates may have none.
PrintedSpan ReadPrintedSpan(std::string_view first, std::string_view last, std::string_view end);

// The line without what launchers, collectors and viewers have set before it.
std::string_view WithoutPrefixes(std::string_view line);

}  // namespace rankscope::windows
