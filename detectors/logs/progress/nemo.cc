// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/progress/segments.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {

// "Training epoch 0, iteration 120/149 | lr: 3e-05 | global_step: 120 | reduced_train_loss: 1.233 |
// ...": NeMo 2. Its Lightning bars are NeMo 1's (lightning.cc).
bool ParseNemo(const CleanLine& line, RecordList& out) {
  const size_t at = line.text.find("Training epoch ");
  if (at == std::string_view::npos) return false;
  std::string_view rest = line.text.substr(at + 15);
  const Number epoch = ReadNumber(rest);
  const size_t iteration = rest.find(", iteration ");
  if (!IsIndex(epoch) || iteration == std::string_view::npos || iteration > 20) return false;
  Number step;
  Number total;
  if (!ReadIteration(rest.substr(iteration + 2), step, total)) return false;
  Progress progress;
  progress.format = "nemo";
  const size_t bar = rest.find('|');
  if (bar != std::string_view::npos) TakeSegments(rest.substr(bar + 1), progress);
  if (progress.step_text.empty()) {
    SetStep(progress, step);
    progress.total_steps = total.value;
  }
  progress.epoch = epoch.value;
  out.emplace_back(progress);
  return true;
}

// "step 9 | epoch 0 | loss 0.6974 | grad_norm 1.5436 | lr 1.00e-05 | mem 24.90 GiB | tps
// 11278.56(1409.82/gpu) | num_label_tokens 21541": NeMo Automodel.
bool ParseAutomodel(const CleanLine& line, RecordList& out) {
  const std::string_view text = StripLoggerPrefix(line.text);
  if (!text.starts_with("step ") || text.find("| num_label_tokens ") == std::string_view::npos)
    return false;
  const PairList pairs(text);
  const Pair* loss = pairs.FindNamed("loss");
  if (pairs.size() < 3 || !IsIndex(pairs[0].value) || !KeyIs(pairs[1].key, "epoch") ||
      loss == nullptr) {
    return false;
  }
  Progress progress;
  progress.format = "nemo_automodel";
  FillFromPairs(pairs, progress);
  SetStep(progress, pairs[0].value);
  SetLoss(progress, loss->value);
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
