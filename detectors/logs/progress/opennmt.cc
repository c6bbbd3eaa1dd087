// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "Step 50/100000; acc: 4.3; ppl: 1234.5; xent: 7.1; lr: 0.00001; ...": OpenNMT-py. Its loss is the
// cross entropy of a token.
bool ParseOpennmt(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kStep = "Step ";
  const size_t at = line.text.find(kStep);
  if (at == std::string_view::npos) return false;
  const std::string_view text = line.text.substr(at + kStep.size());
  const Number step = ReadDecimal(text);
  if (!IsIndex(step) || !text.substr(step.text.size()).starts_with('/')) return false;
  const Number total = ReadDecimal(text.substr(step.text.size() + 1));
  const size_t end = text.find("; acc: ");
  if (!IsIndex(total) || end != step.text.size() + 1 + total.text.size()) return false;
  const PairList pairs(text.substr(end + 2));
  const Pair* loss = pairs.FindNamed("xent");
  const Pair* rate = pairs.FindNamed("lr");
  if (loss == nullptr) return false;
  Progress progress;
  progress.format = "opennmt";
  SetStep(progress, step);
  SetLoss(progress, loss->value);
  if (rate != nullptr) SetLearningRate(progress, rate->value);
  progress.total_steps = total.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
