// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Text that people wrote and no program printed. A README shows what a training prints, and a
// program's comments may: neither is a run. Pure.
#pragma once

#include <string>
#include <string_view>

namespace rankscope::replay {

// What `text`, a whole file, is instead of output: "a program's source", "a document". Empty: it
// may be output. A log that shows a program first and then what it printed is output.
std::string_view WrittenByHand(std::string_view text);

// A report of a bug tells of a run, and quotes what it printed between fences. `text`, a whole
// file, with spaces for everything that is not quoted, so that offsets stay; empty when it is no
// such report.
std::string QuotedOutput(std::string_view text);

}  // namespace rankscope::replay
