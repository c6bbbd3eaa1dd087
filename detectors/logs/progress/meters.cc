// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/meters.h"

#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

bool TakeLoss(const PairList& pairs, Progress& progress) {
  if (pairs.speaks_of_evaluation() || pairs.Find(Key::kForeignLoss)) return false;
  const Pair* loss = pairs.Find(Key::kLoss);
  if (loss == nullptr) return false;
  SetLoss(progress, loss->value);
  return true;
}

bool ReadMeter(const PairList& pairs, std::string_view format, RecordList& out) {
  if (pairs.size() < 3 || !pairs[1].key.empty() || !IsIndex(pairs[0].value) ||
      !IsIndex(pairs[1].value)) {
    return false;
  }
  if (!pairs[1].total) return false;
  Progress progress;
  progress.format = format;
  if (!TakeLoss(pairs, progress)) return false;
  FillFromPairs(pairs, progress);
  SetStep(progress, pairs[1].value);
  progress.epoch = pairs[0].value.value;
  // "Train Epoch: 1 [25600/60000 (43%)]": examples/mnist of PyTorch counts its samples.
  if (pairs.size() > 2 && pairs[2].percent && KeyIs(pairs[0].key, "train_epoch"))
    progress.step_unit = StepUnit::kSamples;
  if (progress.step_seconds != progress.step_seconds) {
    if (const Pair* time = pairs.Find(Key::kTime)) progress.step_seconds = time->value.value;
  }
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
