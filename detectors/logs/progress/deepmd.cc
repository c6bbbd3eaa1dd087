// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "[2026-02-03 04:05:06,789] DEEPMD INFO    batch     100: trn: rmse = 1.42e+01, rmse_e = 3.0e-01,
// lr = 1.00e-03" of DeePMD-kit 3, whose "val:" is an evaluation, and "batch     100 training time
// 3.71 s, testing time 0.02 s" of version 2, which writes its errors to a file.
bool ParseDeepmd(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kBatch = "batch ", kTrained = ": trn: ", kTime = " training time ";
  const std::string_view text = line.text;
  const size_t batch = text.find(kBatch);
  if (text.find("DEEPMD") == std::string_view::npos || batch == std::string_view::npos)
    return false;
  std::string_view rest = LeftTrimmed(text.substr(batch + kBatch.size()));
  const Number step = ReadNumber(rest.substr(0, rest.find(':')));
  if (!IsIndex(step)) return false;
  rest.remove_prefix(step.text.size());
  Progress progress;
  progress.format = "deepmd";
  SetStep(progress, step);
  if (rest.starts_with(kTrained)) {
    const PairList pairs(rest.substr(kTrained.size()));
    FillFromPairs(pairs, progress);
    const Pair* error = pairs.FindNamed("rmse");
    if (error == nullptr) error = pairs.FindNamed("loss");
    if (error != nullptr) SetLoss(progress, error->value);
  } else if (!rest.starts_with(kTime) && !rest.starts_with(": training time ")) {
    return false;
  }
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
