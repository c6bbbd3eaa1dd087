// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "Epoch[3] Batch [20]\tSpeed: 1234.5 samples/sec\taccuracy=0.5\tcross-entropy=0.75": the
// Speedometer of MXNet's Module.fit. Later versions print the batches of the interval, "Batch
// [0-20]", older ones "Train-accuracy=". Which metrics there are is the program's choice.
bool ParseMxnet(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kEpoch = "Epoch[", kBatch = "] Batch [", kSpeed = "Speed: ";
  const size_t at = line.text.find(kEpoch);
  if (at == std::string_view::npos) return false;
  std::string_view text = line.text.substr(at + kEpoch.size());
  const Number epoch = ReadNumber(text);
  if (!IsIndex(epoch) || !text.substr(epoch.text.size()).starts_with(kBatch)) return false;
  text.remove_prefix(epoch.text.size() + kBatch.size());
  const size_t close = text.find(']');
  if (close == std::string_view::npos) return false;
  std::string_view batches = text.substr(0, close);
  if (const size_t dash = batches.find('-'); dash != std::string_view::npos)
    batches.remove_prefix(dash + 1);
  const Number batch = WholeNumber(batches);
  text = LeftTrimmed(text.substr(close + 1));
  if (!IsIndex(batch) || !text.starts_with(kSpeed)) return false;
  text.remove_prefix(kSpeed.size());
  const Number speed = ReadNumber(text, Ending::kUnit);
  if (!speed) return false;
  text.remove_prefix(speed.text.size());
  if (const size_t tab = text.find("/sec"); tab != std::string_view::npos)
    text.remove_prefix(tab + 4);
  const PairList pairs(text);
  Progress progress;
  progress.format = "mxnet";
  FillFromPairs(pairs, progress);
  for (const std::string_view name : {"cross-entropy", "loss", "Train-cross-entropy", "mse"}) {
    for (const Pair& pair : pairs) {
      if (progress.loss_text.empty() && pair.key == name) SetLoss(progress, pair.value);
    }
  }
  SetStep(progress, batch);
  progress.epoch = epoch.value;
  progress.samples_per_second = speed.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
