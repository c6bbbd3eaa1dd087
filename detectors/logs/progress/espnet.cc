// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "3epoch:train:101-200batch: iter_time=0.01, loss_ctc=110.5, loss=73.2, grad_norm=40.1,
// optim0_lr0=5e-06, train_time=0.4": ESPnet; the mean over the batches that it names.
// "epoch:valid:" is an evaluation.
bool ParseEspnet(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kMark = "epoch:train:";
  const size_t at = line.text.find(kMark);
  if (at == std::string_view::npos) return false;
  size_t begin = at;
  while (begin > 0 && IsDigit(line.text[begin - 1])) --begin;
  const Number epoch = ReadNumber(line.text.substr(begin), Ending::kUnit);
  std::string_view text = line.text.substr(at + kMark.size());
  const Number first = ReadDecimal(text);
  if (!IsIndex(epoch) || !IsIndex(first)) return false;
  text.remove_prefix(first.text.size());
  if (!text.starts_with('-')) return false;
  const Number last = ReadNumber(text.substr(1), Ending::kUnit);
  if (!IsIndex(last)) return false;
  text.remove_prefix(1 + last.text.size());
  if (!text.starts_with("batch: ")) return false;
  const PairList pairs(text.substr(7));
  const Pair* loss = pairs.FindNamed("loss");
  if (loss == nullptr) return false;
  Progress progress;
  progress.format = "espnet";
  FillFromPairs(pairs, progress);
  SetStep(progress, last);
  SetLoss(progress, loss->value);
  if (const Pair* rate = pairs.FindNamed("optim0_lr0")) SetLearningRate(progress, rate->value);
  if (const Pair* time = pairs.FindNamed("train_time")) progress.step_seconds = time->value.value;
  progress.epoch = epoch.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
