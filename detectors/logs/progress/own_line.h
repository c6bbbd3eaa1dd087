// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a program's own code printed, without what a logger, a shell or a log shipper put before it:
// times, hosts, pods, levels, loggers' names, files, in any order. For dialects, which begin a line
// with their own words. Stateless; any thread.
#pragma once

#include <string_view>

#include "detectors/logs/record.h"
#include "detectors/logs/text/number.h"

namespace rankscope::logs {

// The line without such a prefix, its indentation left; `text` itself where it has none. No word
// goes that a record may begin with: a step, a loss, an evaluation.
std::string_view OwnLine(std::string_view text);

// A line and, once somebody asks, what of it is the program's own.
class OwnText {
 public:
  explicit OwnText(const CleanLine& line) : line_(line), own_(line) {}

  const CleanLine& line() const { return line_; }
  const CleanLine& own() {
    if (!known_) own_.text = OwnLine(line_.text);
    known_ = true;
    return own_;
  }
  CleanLine unindented() {
    CleanLine bare = own();
    bare.text = LeftTrimmed(bare.text);
    return bare;
  }
  // Whether something stands before it.
  bool prefixed() { return own().text.size() != line_.text.size(); }

 private:
  const CleanLine& line_;
  CleanLine own_;
  bool known_ = false;
};

}  // namespace rankscope::logs
