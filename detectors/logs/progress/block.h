// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A record that stands on several lines: what the lines so far gave, and the two functions that
// make a dialect of it. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detectors/logs/record.h"
#include "detectors/logs/text/number.h"

namespace rankscope::logs {

// A metric's value: a number with or without thousands separators.
inline Number ReadMetric(std::string_view text) {
  return ReadNumber(text, Ending::kDelimiter, Thousands::kYes);
}

struct Block {
  int32_t lines = 0;  // fed since it opened
  bool evaluation = false;
  double total_steps = kAbsent;
  double epoch = kAbsent;
  double step_seconds = kAbsent;
  double reward = kAbsent;
  double kl = kAbsent;
  double elapsed_seconds = kAbsent;
  double samples_per_second = kAbsent;
  std::string step;
  std::string loss;
  std::string grad_norm;
  std::string learning_rate;

  // The record; its views stay valid as long as the block does not change.
  Progress Take(std::string_view format) const;

  template <class A>
  void Fields(A& a) {
    a(lines, evaluation, total_steps, epoch, step_seconds, reward, kl, elapsed_seconds,
      samples_per_second, step, loss, grad_norm, learning_rate);
  }
};

enum class BlockLine : uint8_t {
  kForeign,  // does not belong to the block, which ends before it
  kTaken,
  kLast,  // belongs to the block, and ends it
};

struct BlockDialect {
  // Whether this line opens a block. Fills an empty block.
  bool (*open)(std::string_view text, Block& block);
  // Offers the next line; appends the record where the block has one now.
  BlockLine (*feed)(std::string_view text, Block& block, RecordList& out);
};

}  // namespace rankscope::logs
