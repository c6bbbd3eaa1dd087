// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "1|10|Loss: 1.25:  10%|#         | 10/100 [00:12<01:50,  1.23s/it]": epoch, step and loss stand
// in the description of torchtune's bar.
bool ParseTorchtune(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kLoss = "|Loss: ";
  const std::string_view text = Trimmed(line.text);
  const Number epoch = ReadDecimal(text);
  if (!IsIndex(epoch) || !text.substr(epoch.text.size()).starts_with('|')) return false;
  const std::string_view rest = text.substr(epoch.text.size() + 1);
  const Number step = ReadDecimal(rest);
  if (!IsIndex(step) || !rest.substr(step.text.size()).starts_with(kLoss)) return false;
  const Number loss = ReadNumber(rest.substr(step.text.size() + kLoss.size()));
  if (!loss) return false;
  Progress progress;
  progress.format = "torchtune";
  SetStep(progress, step);
  SetLoss(progress, loss);
  progress.epoch = epoch.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
