// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "[Rank 0] step=40, skipped=2, lr=[5e-05, 5e-05], mom=[...]": DeepSpeed's engine, which knows no
// loss.
bool ParseDeepspeed(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kBegin = "[Rank 0] step=";
  const size_t at = line.text.find(kBegin);
  if (at == std::string_view::npos) return false;
  std::string_view rest = line.text.substr(at + kBegin.size());
  Progress progress;
  progress.format = "deepspeed";
  const Number step = ReadNumber(rest);
  if (!IsIndex(step)) return false;
  SetStep(progress, step);
  rest.remove_prefix(step.text.size());
  constexpr std::string_view kSkipped = ", skipped=";
  if (!rest.starts_with(kSkipped)) return false;
  rest.remove_prefix(kSkipped.size());
  const Number skipped = ReadNumber(rest);
  if (!skipped) return false;
  progress.skipped_iterations = skipped.value;
  rest.remove_prefix(skipped.text.size());
  constexpr std::string_view kRate = ", lr=[";
  if (rest.starts_with(kRate)) {
    if (const Number rate = ReadNumber(LeftTrimmed(rest.substr(kRate.size()))))
      SetLearningRate(progress, rate);
  }
  out.emplace_back(progress);
  return true;
}

// "steps: 10 loss: 8.5312 iter time (s): 0.812 samples/sec: 39.409": the pipeline engine.
bool ParseDeepspeedPipe(const CleanLine& line, RecordList& out) {
  const size_t at = line.text.find("steps: ");
  const size_t time = line.text.find(" iter time (s): ");
  if (at == std::string_view::npos || time == std::string_view::npos || time < at) return false;
  const PairList pairs(line.text.substr(at, time - at));
  const Pair* loss = pairs.FindNamed("loss");
  if (pairs.size() < 2 || !IsIndex(pairs[0].value) || loss == nullptr) return false;
  Progress progress;
  progress.format = "deepspeed_pipe";
  SetStep(progress, pairs[0].value);
  SetLoss(progress, loss->value);
  const PairList rates(line.text.substr(time + sizeof(" iter time (s): ") - 1));
  if (rates.size() > 0) progress.step_seconds = rates[0].value.value;
  FillFromPairs(rates, progress);
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
