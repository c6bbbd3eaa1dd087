// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "epoch: 1 step: 1875, loss is 0.054", by MindSpore's LossMonitor
// (mindspore/train/callback/_loss_monitor.py). The step is counted within the epoch.
bool ParseMindspore(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kEpoch = "epoch: ", kStep = " step: ", kLoss = ", loss is ";
  const size_t at = line.text.find(kEpoch);
  if (at == std::string_view::npos) return false;
  std::string_view text = line.text.substr(at + kEpoch.size());
  const Number epoch = ReadNumber(text);
  if (!IsIndex(epoch)) return false;
  text.remove_prefix(epoch.text.size());
  if (!text.starts_with(kStep)) return false;
  text.remove_prefix(kStep.size());
  const Number step = ReadNumber(text);
  if (!IsIndex(step)) return false;
  text.remove_prefix(step.text.size());
  if (!text.starts_with(kLoss)) return false;
  const Number loss = ReadNumber(text.substr(kLoss.size()));
  if (!loss) return false;
  Progress progress;
  progress.format = "mindspore";
  SetStep(progress, step);
  SetLoss(progress, loss);
  progress.epoch = epoch.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
