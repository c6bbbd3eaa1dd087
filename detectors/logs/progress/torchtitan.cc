// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "[titan] 2026-05-18 16:04:46,338 - root - INFO - step: 14  loss:  3.24  grad_norm:  0.83  memory:
// ...  tps: 7,282 ..."; in 2024 it said "wps".
bool ParseTorchtitan(const CleanLine& line, RecordList& out) {
  size_t at = line.text.find("step: ");
  if (at == std::string_view::npos || (line.text.find("tps: ", at) == std::string_view::npos &&
                                       line.text.find("wps: ", at) == std::string_view::npos)) {
    return false;
  }
  if (at != 0 && !IsBlank(line.text[at - 1])) return false;
  if (line.text.substr(0, at).find("validate") != std::string_view::npos) {
    out.push_back(MakeMarker(MarkerKind::kEval, "torchtitan", line));
    return true;
  }
  const PairList pairs(line.text.substr(at));
  const Pair* loss = pairs.Find(Key::kLoss);
  if (pairs.size() < 3 || !KeyIs(pairs[0].key, "step") || !IsIndex(pairs[0].value) ||
      loss == nullptr)
    return false;
  Progress progress;
  progress.format = "torchtitan";
  FillFromPairs(pairs, progress);
  SetStep(progress, pairs[0].value);
  SetLoss(progress, loss->value);
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
