// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/dict.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {

// "INFO:tensorflow:loss = 1.25, step = 100 (0.4 sec)": the Estimator's hook; the keys stand in the
// order of a dict, with others between them. The seconds are those since the last line.
bool ParseTfEstimator(const CleanLine& line, RecordList& out) {
  const std::string_view text = StripLoggerPrefix(line.text);
  if (text.starts_with("Saving dict for global step ")) {
    const PairList pairs(text);
    const Pair* loss = pairs.FindNamed("loss");
    out.push_back(MakeMarker(MarkerKind::kEval, "tf_estimator", line, {},
                             loss == nullptr ? kAbsent : loss->value.value));
    return true;
  }
  if (text.find("loss = ") == std::string_view::npos ||
      text.find("step = ") == std::string_view::npos) {
    return false;
  }
  const PairList pairs(text);
  if (pairs.size() < 2 || pairs[0].at != 0 || pairs.stray_words() > 1) return false;
  const Pair* loss = pairs.FindNamed("loss");
  const Pair* step = pairs.FindNamed("step");
  if (step == nullptr) step = pairs.FindNamed("global_step");
  if (loss == nullptr || step == nullptr || !IsIndex(step->value)) return false;
  const bool first = &pairs[0] == loss || &pairs[0] == step;
  const bool timed = text.ends_with(" sec)");
  // Where neither the logger nor the time names it, it is a loop of one's own.
  if (!first && !timed) return false;
  if (!timed && line.text.find("tensorflow") == std::string_view::npos &&
      line.text.find("basic_session_run_hooks") == std::string_view::npos) {
    return false;
  }
  Progress progress;
  progress.format = "tf_estimator";
  FillFromPairs(pairs, progress);
  SetStep(progress, step->value);
  SetLoss(progress, loss->value);
  out.emplace_back(progress);
  return true;
}

// "INFO:tensorflow:global step 60: loss = 11.75 (0.427 sec/step)": TF-Slim.
bool ParseTfSlim(const CleanLine& line, RecordList& out) {
  const std::string_view text = StripLoggerPrefix(line.text);
  constexpr std::string_view kBegin = "global step ";
  if (!text.starts_with(kBegin)) return false;
  const Number step = ReadNumber(text.substr(kBegin.size()));
  if (!IsIndex(step)) return false;
  std::string_view rest = text.substr(kBegin.size() + step.text.size());
  constexpr std::string_view kLoss = ": loss = ";
  if (!rest.starts_with(kLoss)) return false;
  rest.remove_prefix(kLoss.size());
  const Number loss = ReadNumber(rest);
  if (!loss) return false;
  Progress progress;
  progress.format = "tf_slim";
  SetStep(progress, step);
  SetLoss(progress, loss);
  rest = LeftTrimmed(rest.substr(loss.text.size()));
  if (rest.starts_with('(') && rest.find(" sec/step)") != std::string_view::npos) {
    if (const Number seconds = ReadNumber(rest.substr(1))) progress.step_seconds = seconds.value;
  }
  out.emplace_back(progress);
  return true;
}

// "train | step:    100 | steps/sec:   10.1 | output: {'training_loss': 1.25, 'learning_rate':
// 0.1}": Orbit, the loop of the TensorFlow models. A longer dict stands on the lines below
// (kTfDictBlock).
bool ParseTfOrbit(const CleanLine& line, RecordList& out) {
  std::string_view text = LeftTrimmed(StripLoggerPrefix(line.text));
  const bool evaluation = text.starts_with("eval | step: ");
  if (!evaluation && !text.starts_with("train | step: ")) return false;
  const size_t output = text.find("| output: ");
  if (output == std::string_view::npos) return false;
  const PairList pairs(text.substr(0, output));
  const size_t brace = text.find('{', output);
  if (pairs.size() == 0 || !IsIndex(pairs[0].value)) return false;
  Progress progress;
  progress.format = "tf_orbit";
  double loss = kAbsent;
  if (brace != std::string_view::npos) {
    DictCursor cursor(text.substr(brace + 1));
    DictItem item;
    while (cursor.Next(item)) {
      const Number value = DictNumber(item);
      if (!value) continue;
      if (item.key.ends_with("loss") && loss != loss) loss = value.value;
      TakeNamed(item.key, value, progress);
    }
  }
  if (evaluation) {
    out.push_back(MakeMarker(MarkerKind::kEval, "tf_orbit", line, {}, loss));
    return true;
  }
  if (progress.loss_text.empty()) return false;
  SetStep(progress, pairs[0].value);
  if (const Pair* rate = pairs.FindNamed("steps_sec"); rate != nullptr && rate->value.value > 0)
    progress.step_seconds = 1 / rate->value.value;
  out.emplace_back(progress);
  return true;
}

// "INFO:tensorflow:Step 100 per-step time 0.456s loss=0.875": the object detection API. Since 2021
// the losses stand in a dict on the lines below (kTfDictBlock).
bool ParseTfDetection(const CleanLine& line, RecordList& out) {
  const std::string_view text = StripLoggerPrefix(line.text);
  if (!text.starts_with("Step ")) return false;
  const size_t at = text.find(" per-step time ");
  const size_t loss_at = text.find(" loss=");
  if (at == std::string_view::npos || loss_at == std::string_view::npos || loss_at < at)
    return false;
  const Number step = ReadNumber(text.substr(5));
  const Number seconds = ReadNumber(text.substr(at + 15), Ending::kUnit);
  const Number loss = ReadNumber(text.substr(loss_at + 6));
  if (!IsIndex(step) || !seconds || !loss) return false;
  Progress progress;
  progress.format = "tf_detection";
  SetStep(progress, step);
  SetLoss(progress, loss);
  progress.step_seconds = seconds.value;
  out.emplace_back(progress);
  return true;
}

namespace {

// "Step 100 per-step time 0.456s" and "train | step: 100 | steps/sec: 10.1 | output:": a dict
// follows.
bool OpenDict(std::string_view text, Block& block) {
  text = Trimmed(StripLoggerPrefix(text));
  constexpr std::string_view kPerStep = " per-step time ";
  if (text.starts_with("Step ")) {
    const Number step = ReadNumber(text.substr(5));
    if (!IsIndex(step) || !text.substr(5 + step.text.size()).starts_with(kPerStep)) return false;
    const std::string_view rest = text.substr(5 + step.text.size() + kPerStep.size());
    const Number seconds = ReadNumber(rest, Ending::kUnit);
    if (!seconds || rest.substr(seconds.text.size()) != "s") return false;
    block.step = step.text;
    block.step_seconds = seconds.value;
    return true;
  }
  constexpr std::string_view kTrain = "train | step:";
  if (!text.starts_with(kTrain) || !text.ends_with("| output:")) return false;
  const Number step = ReadNumber(LeftTrimmed(text.substr(kTrain.size())));
  if (!IsIndex(step)) return false;
  block.step = step.text;
  constexpr std::string_view kRate = "steps/sec:";
  if (const size_t at = text.find(kRate); at != std::string_view::npos) {
    const Number rate = ReadNumber(LeftTrimmed(text.substr(at + kRate.size())));
    if (rate && rate.value > 0) block.step_seconds = 1 / rate.value;
  }
  return true;
}

// "{'Loss/total_loss': 0.75," to "'learning_rate': 0.03}": the record is complete at the brace.
BlockLine FeedDict(std::string_view text, Block& block, RecordList& out) {
  text = Trimmed(StripLoggerPrefix(text));
  const bool begins = text.starts_with('{');
  if (begins != (block.lines == 1)) return BlockLine::kForeign;
  DictCursor cursor(begins ? text.substr(1) : text);
  DictItem item;
  Progress progress;
  size_t items = 0;
  while (cursor.Next(item)) {
    ++items;
    if (const Number value = DictNumber(item)) TakeNamed(item.key, value, progress);
  }
  if (!progress.loss_text.empty()) block.loss = progress.loss_text;
  if (!progress.grad_norm_text.empty()) block.grad_norm = progress.grad_norm_text;
  if (!progress.learning_rate_text.empty()) block.learning_rate = progress.learning_rate_text;
  if (items == 0) return BlockLine::kForeign;
  if (!cursor.closed()) return BlockLine::kTaken;
  if (!block.loss.empty()) out.emplace_back(block.Take("tf_block"));
  return BlockLine::kLast;
}

}  // namespace

constinit const BlockDialect kTfDictBlock = {OpenDict, FeedDict};

}  // namespace rankscope::logs
