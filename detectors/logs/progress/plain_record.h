// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The short way for the three forms of record that come by the million: a dict of the Trainer's
// with nothing in it but metrics' names and numbers, Megatron's line of nothing but such segments,
// a loop's own lower-case words, the step's first, each with its number. No row before these
// dialects' claims such a line and no failure has an anchor in it, so it need not be searched for
// anything else. The lines of one program differ in their numbers only: what stands between them
// is learned from one line and compared in the next. One per stream, on the reader's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "detectors/logs/progress/keys.h"
#include "detectors/logs/record.h"
#include "detectors/logs/text/number.h"

namespace rankscope::logs {

// A plain line, taken apart by its dialect: its numbers in their order, and what each is.
struct PlainItems {
  struct Item {
    Number number;
    Key key = Key::kOther;  // kOther: read and not kept
  };
  static constexpr size_t kMax = 64;

  bool Add(const Number& number, Key key) {
    if (size == kMax) return false;
    item[size++] = {number, key};
    return true;
  }

  std::string_view format;
  bool index_step = false;  // the step must be a whole number
  bool loss_key_missing = false;
  size_t size = 0;
  union {  // only the first `size` are alive
    std::array<Item, kMax> item;
  };
  PlainItems() {}
};

bool ReadPlainDict(std::string_view text, PlainItems& out);      // hf_trainer.cc
bool ReadPlainMegatron(std::string_view text, PlainItems& out);  // megatron.cc
bool ReadPlainLoop(std::string_view text, PlainItems& out);      // pytorch_example.cc

class PlainReader {
 public:
  // Takes a line that can be nothing but such a record.
  bool Parse(std::string_view text, Progress& out);

 private:
  // What stands between the numbers of a line.
  struct Shape {
    struct Slot {
      uint16_t begin = 0;  // of the literal before the number, without the blanks at its end
      uint16_t size = 0;
      bool blanks = false;  // one at least stood there
      Key key = Key::kOther;
    };
    static constexpr size_t kLiterals = 768;  // the longest lines in use hold about 600 bytes
    static constexpr size_t kSlots = 48;

    bool Match(std::string_view text, Progress& out) const;
    void Learn(std::string_view text, const PlainItems& items);

    std::string_view format;
    bool index_step = false;
    bool loss_key_missing = false;
    uint16_t slots = 0;  // 0 = nothing learned
    uint16_t tail_begin = 0;
    uint16_t tail_size = 0;
    std::array<Slot, kSlots> slot;
    std::array<char, kLiterals + sizeof(uint64_t)> literals;  // compared by words
  };

  std::array<Shape, 2> shapes_;
  size_t oldest_ = 0;
};

}  // namespace rankscope::logs
