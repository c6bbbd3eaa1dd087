// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/promql.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace rankscope::features {
namespace {

// A number below 0 would need brackets; what is counted from is none.
std::string Plain(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", std::max(0.0, value));
  return text;
}

}  // namespace

std::string FillQuery(std::string_view query, const QueryMarks& marks) {
  // A range of no time is an error.
  const std::string seconds = Plain(std::max(1.0, std::round(marks.seconds)));
  std::string out;
  for (const char c : query) {
    if (c == '$') {
      out += marks.matchers;
    } else if (c == '#') {
      out += seconds + 's';
    } else if (c == '%') {
      out += seconds;
    } else if (c == '@') {
      out += Plain(marks.from);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace rankscope::features
