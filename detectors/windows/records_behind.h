// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Training records that had arrived before an incident was understood. A traceback may be followed
// by another of its chain, so it is complete some lines after it was said.
#pragma once

#include <cstdint>

#include "detectors/windows/last_words.h"

namespace rankscope::windows {

// Of the newest lines of `stream`, those that hold a record and stand behind `offset`.
inline int64_t RecordsBehind(const LastWords& said, uint32_t stream, int64_t offset) {
  int64_t count = 0;
  for (size_t age = 0; age < LastWords::kLines; ++age) {
    const SaidLine& line = said.At(age);
    if (line.offset < 0) break;
    if (line.stream == stream && line.record && line.offset > offset) ++count;
  }
  return count;
}

}  // namespace rankscope::windows
