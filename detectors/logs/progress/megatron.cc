// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/progress/segments.h"

namespace rankscope::logs {
namespace {

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

bool SpeaksOfTraining(const Progress& progress) {
  return !progress.loss_text.empty() || !progress.learning_rate_text.empty() ||
         progress.step_seconds == progress.step_seconds;
}

}  // namespace

bool ReadPlainMegatron(std::string_view text, PlainItems& out) {
  Number step;
  Number total;
  if (!ReadIteration(text, step, total)) return false;
  auto bar = static_cast<size_t>(total.text.data() + total.text.size() - text.data());
  while (bar < text.size() && text[bar] == ' ') ++bar;
  if (bar == text.size() || text[bar] != '|') return false;
  out.format = "megatron";
  out.index_step = true;
  out.loss_key_missing = true;
  bool speaks = false;
  if (!out.Add(step, Key::kStep) || !out.Add(total, Key::kTotalSteps) ||
      !ReadPlainSegments(text.substr(bar + 1), out)) {
    return false;
  }
  for (size_t i = 0; i < out.size; ++i) {
    const Key key = out.item[i].key;
    if (key == Key::kLoss) out.loss_key_missing = false;
    speaks = speaks || key == Key::kLoss || key == Key::kLearningRate || key == Key::kStepTime ||
             key == Key::kStepMilliseconds;
  }
  return speaks;
}

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
  Number step;
  Number total;
  if (!begins || !ReadIteration(text.substr(at), step, total)) return ReadEvaluation(line, out);
  const size_t bar = text.find('|', at);
  if (bar == std::string_view::npos) return false;
  Progress progress;
  progress.format = "megatron";
  if (before.ends_with('|')) TakeSegments(before, progress);
  SetStep(progress, step);
  progress.total_steps = total.value;
  TakeSegments(text.substr(bar + 1), progress);
  progress.loss_key_missing = progress.loss_text.empty();
  // Without a loss it must at least speak of training.
  if (!SpeaksOfTraining(progress)) return false;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
