// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/dict.h"
#include "detectors/logs/progress/meters.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

// fairseq's and metaseq's own keys, one of which every line of theirs holds.
bool IsOwnKey(std::string_view key) {
  return key == "num_updates" || key == "wps" || key == "wpb" || key == "ups" || key == "gnorm";
}

void TakeOwn(std::string_view key, const Number& value, Progress& progress) {
  if (key == "num_updates") {
    SetStep(progress, value);
  } else if (key == "loss") {
    SetLoss(progress, value);
  } else if (key == "gnorm") {
    SetGradNorm(progress, value);
  } else if (key == "lr") {
    SetLearningRate(progress, value);
  } else if (key == "ups") {
    if (value.value > 0) progress.step_seconds = 1 / value.value;
  } else {
    SetFact(progress, MeaningOf(key).key, value.value);
  }
}

}  // namespace

// "| INFO | train_inner | epoch 001:    100 / 1234 loss=13.25, wps=9620, ups=0.5, num_updates=100,
// lr=1.25e-05, gnorm=3.5": within an epoch. "| INFO | train | epoch 001 | loss 9.75 | wps 9620 |
// num_updates 1234": at its end. Before version 0.9 neither had a logger's prefix, only "| ".
bool ParseFairseq(const CleanLine& line, RecordList& out) {
  std::string_view text = line.text;
  const size_t at = text.substr(0, 160).find("epoch ");
  if (at == std::string_view::npos) return false;
  const std::string_view before = Trimmed(text.substr(0, at));
  if (!before.empty() && !before.ends_with('|')) return false;
  if (before.ends_with("| valid |") || before.ends_with("| test |")) return false;
  const PairList pairs(text.substr(at));
  if (pairs.size() < 3 || !KeyIs(pairs[0].key, "epoch") || !IsIndex(pairs[0].value)) return false;
  Progress progress;
  progress.format = "fairseq";
  if (!TakeLoss(pairs, progress)) return false;
  bool own = false;
  for (const Pair& pair : pairs) {
    own = own || IsOwnKey(pair.key);
    if (!pair.key.empty()) TakeOwn(pair.key, pair.value, progress);
  }
  if (!own) return false;
  if (progress.step_text.empty() && pairs[1].key.empty() && pairs[1].total)
    SetStep(progress, pairs[1].value);
  progress.epoch = pairs[0].value.value;
  out.emplace_back(progress);
  return true;
}

// "| INFO | train_inner | {"epoch": 1, "update": 0.05, "loss": "13.25", "wps": "9620",
// "num_updates": "100", "lr": "1.25e-05", "gnorm": "3.5"}"; at an epoch's end all keys begin with
// "train_", in an evaluation with "valid_".
bool ParseFairseqJson(const CleanLine& line, RecordList& out) {
  constexpr size_t kMaxBefore = 200;
  const size_t brace = line.text.substr(0, kMaxBefore).find("{\"");
  if (brace == std::string_view::npos) return false;
  DictCursor cursor(line.text.substr(brace + 1));
  DictItem item;
  Progress progress;
  progress.format = "fairseq_json";
  bool own = false;
  double valid_loss = kAbsent;
  bool valid = false;
  while (cursor.Next(item)) {
    std::string_view key = item.key;
    const Number value = DictNumber(item);
    if (key.starts_with("valid")) {
      valid = true;
      if (key == "valid_loss" && value) valid_loss = value.value;
      continue;
    }
    if (key.starts_with("train_")) key.remove_prefix(6);
    own = own || IsOwnKey(key);
    if (!value) continue;
    TakeOwn(key, value, progress);
  }
  if (!cursor.closed()) return false;
  if (valid) {
    out.push_back(MakeMarker(MarkerKind::kEval, "fairseq", line, {}, valid_loss));
    return true;
  }
  if (!own || progress.step_text.empty() || progress.loss_text.empty()) return false;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
