// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Times that collectors and log viewers set before each line, and that name nobody: "Jun 12
// 10:00:01 ", "2025-06-12 10:00:01.123<TAB>". Stateless; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace rankscope::logs {

// The end of a date as syslog writes it, "Jun 12 10:00:01 ", at the start of `text`; 0 where there
// is none.
size_t EndOfSyslogDate(std::string_view text);

// `text` behind such a time. What a node's daemons write into its log keeps its own, and so does
// the row of a table.
std::string_view StripStamp(std::string_view text);

}  // namespace rankscope::logs
