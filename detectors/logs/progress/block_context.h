// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The open block of a stream, of whichever dialect whose records span lines (FormatRow::block). One
// per stream, on the reader's thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "detectors/logs/progress/block.h"
#include "detectors/logs/record.h"

namespace rankscope::logs {

class BlockContext {
 public:
  bool open() const { return dialect_ >= 0; }
  // Opens a block where this line begins one; any other text is ignored.
  void Observe(std::string_view text);
  // Offers a line to the open block; true where it belongs there. The views of the record that it
  // may append stay valid until the next call.
  bool Feed(const CleanLine& line, RecordList& out);

  template <class A>
  void Fields(A& a) {
    a(dialect_, block_);
  }

 private:
  int32_t dialect_ = -1;  // row of Formats(); -1 = none is open
  Block block_;
};

}  // namespace rankscope::logs
