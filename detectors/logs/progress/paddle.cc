// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

bool Emit(const PairList& pairs, std::string_view format, RecordList& out) {
  const Pair* step = pairs.FindNamed("global_step");
  const Pair* loss = pairs.FindNamed("loss");
  if (step == nullptr || loss == nullptr || !IsIndex(step->value)) return false;
  Progress progress;
  progress.format = format;
  FillFromPairs(pairs, progress);
  SetStep(progress, step->value);
  SetLoss(progress, loss->value);
  out.emplace_back(progress);
  return true;
}

}  // namespace

// "loss: 2.3, learning_rate: 1e-05, global_step: 10, interval_runtime: 5.2, ...": PaddleNLP's
// Trainer. Its evaluations print "eval_loss: ", its end "train_loss: ".
bool ParsePaddleTrainer(const CleanLine& line, RecordList& out) {
  const std::string_view text = Trimmed(StripLoggerPrefix(line.text));
  if (!text.starts_with("loss: ")) return false;
  return Emit(PairList(text), "paddle_trainer", out);
}

// "epoch: [1/500], global_step: 20, lr: 0.001, loss: 5.3, ...": PaddleOCR and its siblings.
bool ParsePaddleMeter(const CleanLine& line, RecordList& out) {
  std::string_view text = Trimmed(StripLoggerPrefix(line.text));
  constexpr std::string_view kEpoch = "epoch: [";
  const size_t at = text.find(kEpoch);
  if (at == std::string_view::npos) return false;
  text.remove_prefix(at + kEpoch.size());
  const Number epoch = ReadNumber(text);
  const size_t close = text.find("], global_step: ");
  if (!IsIndex(epoch) || close == std::string_view::npos) return false;
  if (!Emit(PairList(text.substr(close + 3)), "paddle_meter", out)) return false;
  std::get<Progress>(out.back()).epoch = epoch.value;
  return true;
}

}  // namespace rankscope::logs
