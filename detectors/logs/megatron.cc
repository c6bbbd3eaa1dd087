// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/dialects.h"
#include "detectors/logs/pairs.h"
#include "detectors/logs/progress_fields.h"

namespace rankscope::logs {
namespace {

// "key: value" between bars; the key may hold a colon of its own only behind a unit ("(ms)").
struct Segment {
  std::string_view key;
  std::string_view value;
};

bool NextSegment(std::string_view& rest, Segment& segment) {
  while (!rest.empty()) {
    const size_t bar = rest.find('|');
    const std::string_view part = Trimmed(rest.substr(0, bar));
    rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
    const size_t colon = part.find(": ");
    if (colon == std::string_view::npos) continue;
    segment = {Trimmed(part.substr(0, colon)), Trimmed(part.substr(colon + 2))};
    return true;
  }
  return false;
}

// "iteration       71/     100" at the start of `text`.
bool ReadIteration(std::string_view text, Number& step, Number& total) {
  text = LeftTrimmed(text);
  if (!text.starts_with("iteration")) return false;
  text = LeftTrimmed(text.substr(9));
  step = ReadNumber(text);
  if (!IsIndex(step)) return false;
  text.remove_prefix(step.text.size());
  if (!text.starts_with('/')) return false;
  total = ReadNumber(LeftTrimmed(text.substr(1)));
  return IsIndex(total);
}

// What a segment's key means. Forks spell keys with blanks, hyphens or underscores.
struct KeyRow {
  std::string_view key;
  void (*take)(Progress& progress, const Number& value);
  int loss_rank;  // of several losses the lowest counts; 0 = no loss
};

constexpr KeyRow kKeyRows[] = {
    {"lm_loss", SetLoss, 1},
    {"reduced_train_loss", SetLoss, 1},
    {"loss", SetLoss, 2},
    {"mlm_loss", SetLoss, 3},
    {"train_loss", SetLoss, 4},
    {"total_loss", SetLoss, 5},
    {"learning_rate", SetLearningRate, 0},
    {"lr", SetLearningRate, 0},
    {"grad_norm", SetGradNorm, 0},
    {"global_step", SetStep, 0},
    {"loss_scale", [](Progress& p, const Number& n) { p.loss_scale = n.value; }, 0},
    {"elapsed_time_per_iteration_(ms)",
     [](Progress& p, const Number& n) { p.step_seconds = n.value * 1e-3; }, 0},
    {"elapsed_time_per_iteration_(s)",
     [](Progress& p, const Number& n) { p.step_seconds = n.value; }, 0},
    {"train_step_timing_in_s", [](Progress& p, const Number& n) { p.step_seconds = n.value; }, 0},
    {"number_of_skipped_iterations",
     [](Progress& p, const Number& n) { p.skipped_iterations = n.value; }, 0},
    {"number_of_nan_iterations", [](Progress& p, const Number& n) { p.nan_iterations = n.value; },
     0},
};

// Lengths of the keys above, one bit each: most segments are none of ours.
constexpr uint64_t KeySizes() {
  uint64_t sizes = 0;
  for (const KeyRow& row : kKeyRows) sizes |= uint64_t{1} << row.key.size();
  return sizes;
}

void TakeSegment(const Segment& segment, Progress& progress, int& loss_rank) {
  constexpr uint64_t kSizes = KeySizes();
  if (segment.key.empty() || segment.key.size() >= 64 || ((kSizes >> segment.key.size()) & 1) == 0)
    return;
  for (const KeyRow& row : kKeyRows) {
    if (segment.key.size() != row.key.size() || segment.key[0] != row.key[0] ||
        segment.key.back() != row.key.back() || !KeyIs(segment.key, row.key)) {
      continue;
    }
    if (row.loss_rank > loss_rank) return;
    const Number value = ReadNumber(segment.value, Ending::kUnit);
    if (!value) return;
    if (row.loss_rank != 0) loss_rank = row.loss_rank;
    row.take(progress, value);
    return;
  }
}

void TakeSegments(std::string_view rest, Progress& progress) {
  int loss_rank = 1 << 10;
  Segment segment;
  while (NextSegment(rest, segment)) TakeSegment(segment, progress, loss_rank);
}

bool ReadEvaluation(const CleanLine& line, RecordList& out) {
  // " validation loss at iteration 7000 | lm loss value: 7.1E+00 | lm loss PPL: 1.3E+03 |"
  if (line.text.find("loss at iteration ") == std::string_view::npos &&
      line.text.find("results at iteration ") == std::string_view::npos) {
    return false;
  }
  double loss = kAbsent;
  std::string_view rest = line.text;
  Segment segment;
  while (NextSegment(rest, segment)) {
    if (segment.key.ends_with("loss value") || segment.key.ends_with("loss_value")) {
      loss = ReadNumber(segment.value, Ending::kUnit).value;
      break;
    }
  }
  out.push_back(MakeMarker(MarkerKind::kEval, "megatron", line, {}, loss));
  return true;
}

}  // namespace

// Megatron-LM, Megatron-DeepSpeed, GPT-NeoX. The loss key is left out where no iteration since the
// last line advanced.
bool ParseMegatron(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  // GPT-NeoX begins with "samples/sec: 1.2 | "; time stamps stand before "iteration" in newer
  // versions.
  const size_t at = text.substr(0, 160).find("iteration");
  if (at == std::string_view::npos) return false;
  const std::string_view before = Trimmed(text.substr(0, at));
  // Behind a bracket, a bar or a logger's mark; "epoch 0, iteration 3/4" is somebody else's.
  const bool begins =
      before.empty() || std::string_view("]|:->").find(before.back()) != std::string_view::npos;
  Progress progress;
  progress.format = "megatron";
  Number step;
  Number total;
  if (!begins || !ReadIteration(text.substr(at), step, total)) return ReadEvaluation(line, out);
  const size_t bar = text.find('|', at);
  if (bar == std::string_view::npos) return false;
  SetStep(progress, step);
  progress.total_steps = total.value;
  TakeSegments(text.substr(bar + 1), progress);
  progress.loss_key_missing = progress.loss_text.empty();
  // Without a loss it must at least speak of training.
  if (progress.loss_key_missing && progress.learning_rate_text.empty() &&
      text.find("elapsed time per iteration") == std::string_view::npos) {
    return false;
  }
  out.emplace_back(progress);
  return true;
}

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

// "Training epoch 0, iteration 120/149 | lr: 3e-05 | global_step: 120 | reduced_train_loss: 1.233 |
// ..."
bool ParseNemo(const CleanLine& line, RecordList& out) {
  const size_t at = line.text.find("Training epoch ");
  if (at == std::string_view::npos) return false;
  std::string_view rest = line.text.substr(at + 15);
  const Number epoch = ReadNumber(rest);
  const size_t iteration = rest.find(", iteration ");
  if (!IsIndex(epoch) || iteration == std::string_view::npos || iteration > 20) return false;
  Number step;
  Number total;
  if (!ReadIteration(rest.substr(iteration + 2), step, total)) return false;
  Progress progress;
  progress.format = "nemo";
  const size_t bar = rest.find('|');
  if (bar != std::string_view::npos) TakeSegments(rest.substr(bar + 1), progress);
  if (progress.step_text.empty()) {
    SetStep(progress, step);
    progress.total_steps = total.value;
  }
  progress.epoch = epoch.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
