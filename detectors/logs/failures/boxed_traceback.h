// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Tracebacks as the library rich draws them (`rich.traceback.install`, typer's programs, accelerate
// up to 0.20): a box with a frame's place, the lines around it and the line itself behind "❱", and
// the exception below the box, wrapped to the box's width. Private to detectors/logs; pure, any
// thread.
//
//   ╭──────── Traceback (most recent call last) ────────╮
//   │ /job/train.py:8 in build                          │
//   │                                                   │
//   │ ❱ 8 │   return open(path)                         │
//   ╰───────────────────────────────────────────────────╯
//   FileNotFoundError: [Errno 2] No such file or
//   directory: '/data/vocab.json'
#pragma once

#include <cstdint>
#include <string_view>

namespace rankscope::logs {

struct BoxedLine {
  enum class Kind : uint8_t {
    kNone,   // no line of such a box
    kTop,    // the box begins
    kFrame,  // `file`, `line`, `function`
    kCode,   // `code`: the line that the frame stands at
    kOther,  // of the box: lines around, local variables, empty
    kBottom,
  };
  Kind kind = Kind::kNone;
  std::string_view file, function, code;
  int32_t line = 0;
  int32_t width = 0;  // of kTop, in characters: what the text below is wrapped to
};

// `text` is a whole line without trailing blanks. The views point into it.
BoxedLine ParseBoxed(std::string_view text);

// Characters (not bytes) of UTF-8 text; what is no UTF-8 counts by its leading bytes.
int32_t Characters(std::string_view text);

}  // namespace rankscope::logs
