// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/meters.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {

// "| [   1/   3][   100/  1000] |  399/1932 batches | ms/batch 4.5376 | train_loss 5.79e-01 | lr
// 5.0e-05": X-Transformer and other heirs of Transformer-XL: epoch, step, batch of the epoch.
bool ParseXTransformer(const CleanLine& line, RecordList& out) {
  const size_t at = line.text.substr(0, 120).find("| [");
  if (at == std::string_view::npos) return false;
  const PairList pairs(line.text.substr(at));
  if (pairs.size() < 4 || pairs[2].unit != "batches") return false;
  for (size_t i = 0; i < 3; ++i) {
    if (!pairs[i].key.empty() || !pairs[i].total || !IsIndex(pairs[i].value)) return false;
  }
  Progress progress;
  progress.format = "x_transformer";
  if (!TakeLoss(pairs, progress)) return false;
  FillFromPairs(pairs, progress);
  progress.epoch = pairs[0].value.value;
  SetStep(progress, pairs[1].value);
  progress.total_steps = pairs[1].total.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
