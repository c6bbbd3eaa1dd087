// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Output that somebody quotes as a whole: "> " before each line of a mail, four blanks before each
// line of a code block in Markdown. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rankscope::logs {

enum class QuoteMark : uint8_t { kNone, kSign, kBlanks };

// How a text is quoted, by its beginning. A program's own indentation and its own "> " are no such
// mark: that stands before every line of one piece, which is most of the text.
QuoteMark FindQuoteMark(std::string_view beginning);

// How many bytes of a line the mark takes; 0 where the line has none.
size_t QuoteWidth(std::string_view line, QuoteMark mark);

}  // namespace rankscope::logs
