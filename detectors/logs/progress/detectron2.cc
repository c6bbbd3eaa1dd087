// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "[02/03 04:05:06 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 1.2  loss_cls: 0.8  time:
// 0.35  data_time: 0.01  lr: 0.0002  max_mem: 3000M"; its forerunner prints "loss: 1.2 (1.5)" and
// "max mem: 3000". The estimate is left out before it is known.
bool ParseDetectron2(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  // FastReID: "epoch/iter: 0/199"
  constexpr std::string_view kBoth = " epoch/iter: ";
  size_t at = text.find(" iter: ");
  const bool both = at == std::string_view::npos;
  if (both) at = text.find(kBoth);
  if (at == std::string_view::npos) return false;
  const bool memory = text.find("max_mem: ", at) != std::string_view::npos ||
                      text.find("max mem: ", at) != std::string_view::npos;
  const bool events = text.substr(0, at).find("d2.utils.events") != std::string_view::npos ||
                      text.substr(0, at).find("eta: ") != std::string_view::npos;
  if (!events && !memory) return false;
  const PairList pairs(text.substr(at + 1));
  const Pair* loss = pairs.FindNamed("total_loss");
  if (loss == nullptr) loss = pairs.FindNamed("loss");
  if (pairs.size() < 3 || !IsIndex(pairs[0].value) || loss == nullptr) return false;
  if (both && !IsIndex(pairs[0].total)) return false;
  Progress progress;
  progress.format = "detectron2";
  FillFromPairs(pairs, progress);
  SetStep(progress, both ? pairs[0].total : pairs[0].value);
  SetLoss(progress, loss->value);
  if (const Pair* time = pairs.Find(Key::kTime)) progress.step_seconds = time->value.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
