// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/dialects.h"
#include "detectors/logs/pairs.h"
#include "detectors/logs/prefix.h"
#include "detectors/logs/progress_fields.h"

namespace rankscope::logs {
namespace {

constexpr int kMaxStrayWords =
    3;  // "INFO", a speaker's name, "done": more is prose that happens to hold numbers

// The loss of a line that trains one model; false where it prints none or speaks of something else.
bool TakeLoss(const PairList& pairs, Progress& progress) {
  if (pairs.speaks_of_evaluation() || pairs.Find(Key::kForeignLoss)) return false;
  const Pair* loss = pairs.Find(Key::kLoss);
  if (loss == nullptr) return false;
  SetLoss(progress, loss->value);
  return true;
}

// Skips the decoration before a loop's first word: "| ", "==> ", "[", "* ", "--- ".
std::string_view SkipDecoration(std::string_view text) {
  size_t i = 0;
  while (i < text.size() && i < 8 &&
         std::string_view(" \t|=->*#[(").find(text[i]) != std::string_view::npos)
    ++i;
  return text.substr(i);
}

// "Epoch: [0][ 10/500] ...", "Train Epoch: 1 [640/60000 (1%)] ...": an epoch, then a bare index in
// the epoch.
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
  if (progress.step_seconds != progress.step_seconds) {
    if (const Pair* time = pairs.Find(Key::kTime)) progress.step_seconds = time->value.value;
  }
  out.emplace_back(progress);
  return true;
}

// "[1,  2000] loss: 2.173": epoch, batch.
bool ReadTutorial(std::string_view text, RecordList& out) {
  const Number epoch = ReadNumber(text.substr(1));
  if (!IsIndex(epoch)) return false;
  std::string_view rest = text.substr(1 + epoch.text.size());
  if (!rest.starts_with(',')) return false;
  rest = LeftTrimmed(rest.substr(1));
  const Number batch = ReadNumber(rest);
  if (!IsIndex(batch)) return false;
  rest = rest.substr(batch.text.size());
  if (!rest.starts_with(']')) return false;
  const PairList pairs(rest.substr(1));
  Progress progress;
  progress.format = "pytorch_loop";
  if (pairs.stray_words() > 0 || !TakeLoss(pairs, progress)) return false;
  FillFromPairs(pairs, progress);
  SetStep(progress, batch);
  progress.epoch = epoch.value;
  out.emplace_back(progress);
  return true;
}

// "200/ 2983 batches": an index that its unit names.
const Pair* FindCounted(const PairList& pairs) {
  for (const Pair& pair : pairs) {
    if (!pair.key.empty() || !pair.total) continue;
    for (const std::string_view unit :
         {"batches", "steps", "iters", "iterations", "batch", "step"}) {
      if (pair.unit == unit) return &pair;
    }
  }
  return nullptr;
}

// The record of a line that begins with where it is; a number elsewhere in prose is the generic
// row's business.
bool TakeLoop(const PairList& pairs, Progress& progress) {
  if (pairs.size() < 2 || pairs[0].at != 0 || pairs.stray_words() > kMaxStrayWords) return false;
  const Pair* step = pairs.Find(Key::kStep);
  if (step == nullptr) step = FindCounted(pairs);
  if (step == nullptr || !IsIndex(step->value)) return false;
  const bool begins = &pairs[0] == step || pairs[0].meaning.key == Key::kEpoch;
  if (!begins) return false;
  progress.format = "pytorch_loop";
  if (!TakeLoss(pairs, progress)) return false;
  FillFromPairs(pairs, progress);
  SetStep(progress, step->value);
  // A total within an epoch is not the run's.
  if (step->total && !pairs.Find(Key::kEpoch)) progress.total_steps = step->total.value;
  return true;
}

}  // namespace

bool ParsePytorchMeter(const CleanLine& line, RecordList& out) {
  const std::string_view text = StripLoggerPrefix(line.text);
  if (!text.starts_with("Epoch") && !text.starts_with("Train Epoch")) return false;
  const PairList pairs(text);
  if (pairs.size() == 0) return false;
  if (!KeyIs(pairs[0].key, "epoch") && !KeyIs(pairs[0].key, "train_epoch")) return false;
  return ReadMeter(pairs, "pytorch_example", out);
}

// "Train: 0 [  50/1251 (  4%)]  Loss: 6.9 (6.91) ..."
bool ParseTimm(const CleanLine& line, RecordList& out) {
  const std::string_view text = StripLoggerPrefix(line.text);
  if (!text.starts_with("Train: ")) return false;
  const PairList pairs(text);
  return pairs.size() > 0 && KeyIs(pairs[0].key, "train") && ReadMeter(pairs, "timm", out);
}

bool ParseMmengine(const CleanLine& line, RecordList& out) {
  const size_t at = line.text.find("(train)");
  if (at == std::string_view::npos || at < 4) return false;
  const bool by_iteration = line.text.substr(0, at).ends_with("Iter");
  if (!by_iteration && !line.text.substr(0, at).ends_with("Epoch")) return false;
  const PairList pairs(line.text.substr(at + 7));
  const size_t index = by_iteration ? 0 : 1;
  if (pairs.size() <= index || !pairs[index].total || !IsIndex(pairs[index].value)) return false;
  Progress progress;
  progress.format = "mmengine";
  if (!TakeLoss(pairs, progress)) return false;
  FillFromPairs(pairs, progress);
  SetStep(progress, pairs[index].value);
  if (by_iteration) {
    progress.total_steps = pairs[0].total.value;
  } else {
    progress.epoch = pairs[0].value.value;
  }
  if (const Pair* time = pairs.Find(Key::kTime)) progress.step_seconds = time->value.value;
  out.emplace_back(progress);
  return true;
}

bool ParsePytorchLoop(const CleanLine& line, RecordList& out) {
  std::string_view text = StripLoggerPrefix(line.text);
  if (text.size() > 4 && text[0] == '[' && (IsDigit(text[1]) || text[1] == ' ') &&
      ReadTutorial(text, out)) {
    return true;
  }
  text = SkipDecoration(text);
  const PairList pairs(text);
  Progress progress;
  if (!TakeLoop(pairs, progress)) return false;
  out.emplace_back(progress);
  return true;
}

bool ParsePlainLoop(std::string_view text, Progress& out) {
  PairList pairs;
  if (!pairs.ReadPlain(text) || pairs[0].meaning.key != Key::kStep) return false;
  out = {};
  return TakeLoop(pairs, out);
}

}  // namespace rankscope::logs
