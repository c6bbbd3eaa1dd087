// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/meters.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/plain_record.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

constexpr int kMaxStrayWords =
    3;  // "INFO", a speaker's name, "done": more is prose that happens to hold numbers

// Skips the decoration before a loop's first word: "| ", "==> ", "[", "* ", "--- ".
std::string_view SkipDecoration(std::string_view text) {
  size_t i = 0;
  while (i < text.size() && i < 8 &&
         std::string_view(" \t|=->*#[(").find(text[i]) != std::string_view::npos)
    ++i;
  return text.substr(i);
}

// "[1,  2000] loss: 2.173": epoch, batch.
bool ReadTutorial(std::string_view text, RecordList& out) {
  const std::string_view inner = LeftTrimmed(text.substr(1));
  const Number epoch = ReadNumber(inner);
  if (!IsIndex(epoch)) return false;
  std::string_view rest = inner.substr(epoch.text.size());
  if (!rest.starts_with(',')) return false;
  const bool glued = rest.size() > 1 && IsDigit(rest[1]);
  rest = LeftTrimmed(rest.substr(1));
  const Number batch = ReadNumber(rest);
  if (!IsIndex(batch)) return false;
  // "[ 48,050]": one number, padded, with its thousands set off.
  if (glued && IsBlank(text[1]) && batch.text.size() == 3) return false;
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

// "[10/600] loss 2.1", "10/600, train_loss: 2.1", "10 | loss 2.1 | lr 1e-4 | 340ms", "Training  [
// 10/125000]  eta: ...": a number without a word that names it, directly before what is known. A
// lone number needs a total, its thousands or a column of its own: it may be a rank.
const Pair* FindBare(std::string_view text, const PairList& pairs) {
  if (pairs.size() < 2 || pairs[0].at != 0) return nullptr;
  const Pair& first = pairs[0];
  const Pair& second = pairs[1];
  if (!IsIndex(first.value) || first.percent || second.key.empty()) return nullptr;
  const bool head = KeyIs(first.key, "train") || KeyIs(first.key, "training");
  if (!first.key.empty() && !head) return nullptr;
  if (pairs.stray_words() > 0 && !head) return nullptr;
  const Number& last = first.total ? first.total : first.value;
  const auto end = static_cast<size_t>(last.text.data() + last.text.size() - text.data());
  if (end > second.at) return nullptr;
  const std::string_view between = text.substr(end, second.at - end);
  if (between.find_first_not_of(" \t|,:;])-") != std::string_view::npos) return nullptr;
  const bool thousands = first.value.text.find(',') != std::string_view::npos;
  const bool column =
      Trimmed(between) == "|" && pairs.size() > 2 && pairs.Find(Key::kLearningRate) != nullptr;
  if (!first.total && (head || !(thousands || column))) return nullptr;
  // Of a meter or a summary, whatever stands first.
  const bool known =
      head || (second.meaning.key != Key::kOther && second.meaning.key != Key::kEpoch);
  return known ? &first : nullptr;
}

// "TRAIN Batch 0/400 loss 119.2 loss_att 95.4 lr 4e-06 rank 0" (WeNet): epoch and batch.
bool ReadWenet(const PairList& pairs, RecordList& out) {
  const Pair* batch = pairs.Find(Key::kStep);
  Progress progress;
  progress.format = "pytorch_loop";
  if (batch == nullptr || !batch->total || !TakeLoss(pairs, progress)) return false;
  FillFromPairs(pairs, progress);
  SetStep(progress, batch->total);
  progress.epoch = batch->value.value;
  out.emplace_back(progress);
  return true;
}

// The record of a line that begins with where it is; a number elsewhere in prose is the generic
// row's business.
bool TakeLoop(std::string_view text, const PairList& pairs, Progress& progress) {
  if (pairs.size() < 2 || pairs[0].at != 0 || pairs.stray_words() > kMaxStrayWords) return false;
  const Pair* step = pairs.Find(Key::kStep);
  if (step == nullptr) step = FindCounted(pairs);
  if (step == nullptr) step = FindBare(text, pairs);
  if (step == nullptr || (!IsIndex(step->value) && !IsRounded(*step))) return false;
  const bool begins = &pairs[0] == step || pairs[0].meaning.key == Key::kEpoch;
  if (!begins) return false;
  progress.format = "pytorch_loop";
  if (!TakeLoss(pairs, progress)) return false;
  FillFromPairs(pairs, progress);
  if (IsRounded(*step)) return true;
  SetStep(progress, step->value);
  // A total within an epoch is not the run's.
  if (step->total && !pairs.Find(Key::kEpoch)) progress.total_steps = step->total.value;
  return true;
}

}  // namespace

// "train Loss: 0.5695 Acc: 0.7123" below "Epoch 3/24" (PyTorch's tutorial on transfer learning);
// "val Loss: ..." is the next line.
bool ParseEpochPhase(const CleanLine& line, RecordList& out) {
  const std::string_view text = Trimmed(StripLoggerPrefix(line.text));
  const PairList pairs(text);
  if (pairs.size() < 2 || pairs.stray_words() != 0 || pairs[0].at != 0) return false;
  if (!KeyIs(pairs[0].key, "train_loss") || !KeyIs(pairs[1].key, "acc")) return false;
  Progress progress;
  progress.format = "epoch_phase";
  SetLoss(progress, pairs[0].value);
  out.emplace_back(progress);
  return true;
}

bool ParsePytorchMeter(const CleanLine& line, RecordList& out) {
  const std::string_view text = StripLoggerPrefix(line.text);
  if (!text.starts_with("Epoch") && !text.starts_with("Train Epoch")) return false;
  if (text.find("it/s") != std::string_view::npos) return false;  // a bar
  const PairList pairs(text);
  if (pairs.size() == 0) return false;
  if (!KeyIs(pairs[0].key, "epoch") && !KeyIs(pairs[0].key, "train_epoch")) return false;
  return ReadMeter(pairs, "pytorch_example", out);
}

bool ParsePytorchLoop(const CleanLine& line, RecordList& out) {
  std::string_view text = StripLoggerPrefix(line.text);
  if (text.size() > 4 && text[0] == '[' && (IsDigit(text[1]) || text[1] == ' ') &&
      ReadTutorial(text, out)) {
    return true;
  }
  // "Step... (500 | Loss: 2.1, Learning Rate: 1e-05)" (the Flax examples of transformers)
  constexpr std::string_view kFlaxStep = "Step... ";
  if (text.starts_with(kFlaxStep)) text.remove_prefix(kFlaxStep.size());
  text = SkipDecoration(text);
  const PairList pairs(text);
  Progress progress;
  if (text.starts_with("TRAIN Batch ")) return ReadWenet(pairs, out);
  if (!TakeLoop(text, pairs, progress)) return false;
  out.emplace_back(progress);
  return true;
}

// "loss: 2.301026  [ 6464/60000]": the samples of the epoch so far (PyTorch's quickstart tutorial).
bool ParseQuickstart(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kLoss = "loss: ";
  std::string_view text = line.text;
  if (!text.starts_with(kLoss)) return false;
  text = LeftTrimmed(text.substr(kLoss.size()));
  const Number loss = ReadNumber(text);
  if (!loss) return false;
  text = Trimmed(text.substr(loss.text.size()));
  const size_t slash = text.find('/');
  if (!text.starts_with('[') || !text.ends_with(']') || slash == std::string_view::npos)
    return false;
  const Number step = WholeNumber(Trimmed(text.substr(1, slash - 1)));
  const Number samples = WholeNumber(Trimmed(text.substr(slash + 1, text.size() - slash - 2)));
  if (!IsIndex(step) || !IsIndex(samples)) return false;
  Progress progress;
  progress.format = "quickstart";
  SetStep(progress, step);
  progress.step_unit = StepUnit::kSamples;
  SetLoss(progress, loss);
  out.emplace_back(progress);
  return true;
}

bool ReadPlainLoop(std::string_view text, PlainItems& out) {
  PairList pairs;
  Progress progress;
  if (!pairs.ReadPlain(text) || pairs[0].meaning.key != Key::kStep ||
      !TakeLoop(text, pairs, progress))
    return false;
  out.format = progress.format;
  out.index_step = true;
  for (const Pair& pair : pairs) {
    Key key = pair.meaning.key;
    const bool milliseconds = pair.unit == "ms";
    // A duration in another unit than the two that a key can stand for.
    if (key == Key::kElapsed && !pair.unit.empty() && pair.unit != "s") return false;
    if (key == Key::kStepTime && pair.unit.starts_with("u")) return false;
    if (pairs.Find(key) != &pair || key == Key::kTime ||
        (key == Key::kStepMilliseconds && pairs.Find(Key::kStepTime) != nullptr)) {
      key = Key::kOther;
    }
    if (key == Key::kStepTime && milliseconds) key = Key::kStepMilliseconds;
    if (!out.Add(pair.value, key)) return false;
  }
  return true;
}

}  // namespace rankscope::logs
