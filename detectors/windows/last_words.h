// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The newest lines that say something, so that a verdict can quote how a run took its leave: its
// final metrics, its word that it completed, its very last line. Lines without words (rules, blank
// lines) are not kept, and of a progress bar only the newest state. Bounded; the strings keep their
// room, so that a line costs a copy and no allocation. Single writer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "detectors/model/time.h"

namespace rankscope::windows {

struct SaidLine {
  uint32_t stream = 0;
  int64_t offset = -1;  // -1 = nothing was said
  bool bar = false;     // a progress bar's state
  bool record = false;  // holds a training record
  Timestamp t;
  std::string text;

  template <class A>
  void Fields(A& a) {
    a(stream, offset, bar, record, t, text);
  }
};

class LastWords {
 public:
  static constexpr size_t kLines = 32;
  static constexpr size_t kLongest = 300;  // bytes of a line: what a verdict may quote

  void Add(uint32_t stream, int64_t offset, std::string_view text, Timestamp t);
  void MarkRecord();  // the newest line was a training record

  // `age` 0 is the newest; offset -1 past the oldest.
  const SaidLine& At(size_t age) const;

  template <class A>
  void Fields(A& a) {
    a(lines_, count_);
    if (count_ < 0) count_ = 0;  // restored from damaged bytes
  }

 private:
  std::array<SaidLine, kLines> lines_;
  int64_t count_ = 0;
};

}  // namespace rankscope::windows
