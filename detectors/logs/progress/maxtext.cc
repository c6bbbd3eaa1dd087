// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "completed step: 10, seconds: 1.25, TFLOP/s/device: 150.5, Tokens/s/device: 3000.5,
// total_weights: 65536, loss: 8.125": MaxText and what is built on it.
bool ParseMaxText(const CleanLine& line, RecordList& out) {
  const size_t at = line.text.find("completed step: ");
  if (at == std::string_view::npos) return false;
  const PairList pairs(line.text.substr(at));
  const Pair* seconds = pairs.FindNamed("seconds");
  const Pair* loss = pairs.FindNamed("loss");
  if (pairs.size() < 3 || !IsIndex(pairs[0].value) || seconds == nullptr || loss == nullptr)
    return false;
  Progress progress;
  progress.format = "maxtext";
  FillFromPairs(pairs, progress);
  SetStep(progress, pairs[0].value);
  SetLoss(progress, loss->value);
  progress.step_seconds = seconds->value.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
