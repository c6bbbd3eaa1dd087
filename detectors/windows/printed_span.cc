// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/windows/printed_span.h"

#include "detectors/logs/text/prefix.h"
#include "detectors/logs/text/printed_time.h"

namespace rankscope::windows {

PrintedSpan ReadPrintedSpan(std::string_view first, std::string_view last, std::string_view end) {
  PrintedSpan span;
  logs::PrintedClock scheduler;
  span.end = scheduler.Advance(end);
  logs::PrintedClock program(scheduler.year());
  span.first = program.Advance(first);
  span.last = program.Advance(last);
  return span;
}

std::string_view WithoutPrefixes(std::string_view line) {
  return logs::StripLauncherPrefixes(line).text;
}

}  // namespace rankscope::windows
