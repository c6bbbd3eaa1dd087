// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "I0102 10:00:00.1 140 logging_writer.py:48] [100] learning_rate=0.001, train_loss=3.25": what
// CommonLoopUtils writes for Flax and T5X. Names are the program's; evaluations write by the same
// line.
bool ParseFlax(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kWriter = "logging_writer.py:";
  const size_t at = line.text.find(kWriter);
  if (at == std::string_view::npos) return false;
  const size_t open = line.text.find("] [", at);
  if (open == std::string_view::npos) return false;
  const std::string_view text = line.text.substr(open + 3);
  const Number step = ReadDecimal(text);
  if (!IsIndex(step) || !text.substr(step.text.size()).starts_with("] ")) return false;
  const PairList pairs(text.substr(step.text.size() + 2));
  const Pair* loss = pairs.Find(Key::kLoss);
  if (loss == nullptr || pairs.speaks_of_evaluation()) return false;
  Progress progress;
  progress.format = "flax";
  FillFromPairs(pairs, progress);
  SetStep(progress, step);
  SetLoss(progress, loss->value);
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
