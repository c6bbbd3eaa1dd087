// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// "name:12.5" or "name:5/100" at the start of `text`, which is moved behind it.
bool TakeField(std::string_view& text, std::string_view name, Number& value, Number& total) {
  std::string_view rest = LeftTrimmed(text);
  if (!rest.starts_with(name)) return false;
  rest.remove_prefix(name.size());
  value = ReadNumber(rest, Ending::kUnit);
  if (!value) return false;
  rest.remove_prefix(value.text.size());
  total = {};
  if (rest.starts_with('/')) {
    total = ReadNumber(rest.substr(1));
    if (!total) return false;
    rest.remove_prefix(1 + total.text.size());
  }
  text = rest;
  return true;
}

// "s:12 trl:3.45 lr:0.0003 norm:0.27" (llm.c); "s:250 tel:3.2" is an evaluation.
bool ReadShort(std::string_view text, const CleanLine& line, RecordList& out) {
  Number step;
  Number value;
  Number total;
  if (!TakeField(text, "s:", step, total) || !IsIndex(step)) return false;
  if (TakeField(text, "tel:", value, total)) {
    out.push_back(MakeMarker(MarkerKind::kEval, "modded_nanogpt", line, {}, value.value));
    return true;
  }
  if (!TakeField(text, "trl:", value, total)) return false;
  Progress progress;
  progress.format = "modded_nanogpt";
  SetStep(progress, step);
  SetLoss(progress, value);
  if (TakeField(text, "lr:", value, total)) SetLearningRate(progress, value);
  if (TakeField(text, "norm:", value, total)) SetGradNorm(progress, value);
  out.emplace_back(progress);
  return true;
}

}  // namespace

// "iter 10: loss 4.2, time 30ms, mfu 1%"; "step 250: train loss 2.4, val loss 2.5" is an evaluation
// of both splits.
bool ParseNanogpt(const CleanLine& line, RecordList& out) {
  const std::string_view text = LeftTrimmed(line.text);
  const bool record = text.starts_with("iter ");
  if (!record && !text.starts_with("step ")) return false;
  const Number step = ReadNumber(text.substr(5));
  if (!IsIndex(step)) return false;
  const std::string_view rest = text.substr(5 + step.text.size());
  const PairList pairs(rest);
  if (!record) {
    if (!rest.starts_with(": train loss ") || pairs.size() < 2 ||
        !KeyIs(pairs[1].key, "val_loss")) {
      // "BPC" and the like between the two numbers
      if (rest.find(", val loss ") == std::string_view::npos || !rest.starts_with(": train loss "))
        return false;
    }
    const Pair* loss = pairs.FindNamed("val_loss");
    out.push_back(
        MakeMarker(MarkerKind::kEval, "nanogpt", line, {}, loss ? loss->value.value : kAbsent));
    return true;
  }
  if (!rest.starts_with(": loss ") || pairs.size() < 2) return false;
  Progress progress;
  progress.format = "nanogpt";
  SetStep(progress, step);
  SetLoss(progress, pairs[0].value);
  const Pair* time = pairs.Find(Key::kTime);
  if (time == nullptr) return false;  // a hand-written loop
  progress.step_seconds = InSeconds(time->value.value, time->unit);
  FillFromPairs(pairs, progress);
  out.emplace_back(progress);
  return true;
}

// "step    1/19560 | loss 11.005 (+nanz)| norm 15.375 (+nanz)| lr 8.57e-07 | 3000.12 ms | 53.6%
// bf16 MFU | 174000 tok/s": llm.c.
bool ParseLlmC(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (!text.starts_with("step ") || !text.ends_with(" tok/s")) return false;
  const PairList pairs(text);
  const Pair* loss = pairs.FindNamed("loss");
  if (pairs.size() < 5 || !IsIndex(pairs[0].value) || !pairs[0].total || loss == nullptr)
    return false;
  Progress progress;
  progress.format = "llm_c";
  FillFromPairs(pairs, progress);
  SetStep(progress, pairs[0].value);
  SetLoss(progress, loss->value);
  progress.total_steps = pairs[0].total.value;
  for (const Pair& pair : pairs) {
    if (!pair.key.empty()) continue;
    if (pair.unit == "ms") progress.step_seconds = pair.value.value / 1000;
    if (pair.unit == "tok/s") progress.tokens_per_second = pair.value.value;
    if (pair.percent && pair.value.value >= 0) progress.mfu = pair.value.value / 100;
  }
  out.emplace_back(progress);
  return true;
}

// "step:12/3000 train_loss:3.2 train_time:1234ms step_avg:145.0ms"; later versions print no loss in
// it. "val_loss:" is an evaluation. "step_avg:nanms" in the first steps is no NaN of the training.
bool ParseModdedNanogpt(const CleanLine& line, RecordList& out) {
  std::string_view text = line.text;
  if (text.starts_with("s:")) return ReadShort(text, line, out);
  Number step;
  Number total;
  if (!TakeField(text, "step:", step, total) || !IsIndex(step) || !IsIndex(total)) return false;
  if (text.find("train_time:") == std::string_view::npos) return false;
  Number loss;
  Number none;
  if (TakeField(text, "val_loss:", loss, none)) {
    out.push_back(MakeMarker(MarkerKind::kEval, "modded_nanogpt", line, {}, loss.value));
    return true;
  }
  Progress progress;
  progress.format = "modded_nanogpt";
  SetStep(progress, step);
  progress.total_steps = total.value;
  if (TakeField(text, "train_loss:", loss, none)) SetLoss(progress, loss);
  Number elapsed;
  if (TakeField(text, "train_time:", elapsed, none)) {
    const bool milliseconds = text.starts_with("ms");
    progress.elapsed_seconds = milliseconds ? elapsed.value / 1000 : elapsed.value;
  }
  const size_t average = text.find("step_avg:");
  if (average != std::string_view::npos) {
    const Number milliseconds = ReadNumber(text.substr(average + 9), Ending::kUnit);
    if (milliseconds) progress.step_seconds = milliseconds.value / 1000;
  }
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
