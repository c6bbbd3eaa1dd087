// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Log records that are printed as JSON, one object in each line: what a text inside one of them
// said. Stateless; any thread.
#pragma once

#include <string>
#include <string_view>

namespace rankscope::logs {

// The string of the object `line` in which a traceback of Python's begins, without its escapes,
// from the traceback on; empty where there is none. python-json-logger and structlog put it under
// "exc_info" or "exception". Kept in `buffer`, at most 64 KiB.
std::string_view TracebackInJson(std::string_view line, std::string& buffer);

}  // namespace rankscope::logs
