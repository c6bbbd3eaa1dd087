// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The last line of a traceback as several ranks wrote it into one pipe. torchrun starts `python
// -u`, and CPython then writes the line in pieces, each by a write of its own (Python/pythonrun.c,
// print_exception_message: module, ".", class, ": ", text, newline). Ranks that die of the same
// error in the same instant leave "ValueErrorValueError: : bad configbad config". Private to
// detectors/logs; pure, any thread.
#pragma once

#include <string>
#include <string_view>

namespace rankscope::logs {

struct UntangledLine {
  std::string type;     // dotted; empty: the line is not what several writers of one text leave
  std::string message;  // one copy of it
  int copies = 0;       // writers that the line shows, >= 2
};

// `text` is a whole line. Only equal texts are taken apart: ranks that die of different errors at
// once leave nothing that could be told apart.
UntangledLine Untangle(std::string_view text);

// A frame or an exception that begins behind what another writer left without its newline: a row of
// carets. Returns the part that begins with it; all of `text` otherwise.
std::string_view BehindCarets(std::string_view text);

// A last line with another writer's row of carets between its pieces, or whose module went to the
// line before: "json.decoder.^^JSONDecodeError^: bad" -> "json.decoder.JSONDecodeError: bad",
// ".JSONDecodeError: bad" -> "JSONDecodeError: bad". Empty when neither is there.
std::string WithoutCarets(std::string_view text);

// A message on the line below its type, several writers at work: without the pieces of "TYPE: "
// that stand in front of it and from where the next writer's begin.
std::string_view WithoutPieces(std::string_view type, std::string_view message);

}  // namespace rankscope::logs
