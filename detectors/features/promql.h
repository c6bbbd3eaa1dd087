// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Queries that return the number which an evidence quotes, evaluated at the evidence's end. A
// template is PromQL with marks: $ = the matchers of the series, as in `metric{$}`; # = the time
// that the evidence covers, as in [#]; % = the same in seconds, a plain number; @ = what the number
// is counted from. Private to features; pure.
#pragma once

#include <string>
#include <string_view>

namespace rankscope::features {

struct QueryMarks {
  std::string_view matchers;
  double seconds = 0;
  double from = 0;
};

std::string FillQuery(std::string_view query, const QueryMarks& marks);

}  // namespace rankscope::features
