// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Tables with a header: "step<TAB>loss" and rows of numbers below, as CSV loggers, notebooks,
// fastai, spaCy, DeePMD-kit and NequIP print them. Only a header that begins with an index and
// names a training loss opens one. One per stream, on the reader's thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detectors/logs/record.h"

namespace rankscope::logs {

class HeadedTable {
 public:
  bool open() const { return !keys_.empty(); }
  // Opens a table at a header; any other text is ignored.
  void Observe(std::string_view text);
  // Offers a line to the open table; true where it is one of its rows.
  bool Feed(const CleanLine& line, RecordList& out);

  template <class A>
  void Fields(A& a) {
    a(keys_, separator_, strays_);
  }

 private:
  void Open(std::string keys, char separator);

  std::string keys_;       // a column each: its Key as a byte
  int32_t separator_ = 0;  // '\t', ',', ';', '|' for any bar, ' ' for two blanks and more,
                           // '#' for one and more
  int32_t strays_ = 0;     // lines between rows
};

}  // namespace rankscope::logs
