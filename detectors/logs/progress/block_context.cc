// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/block_context.h"

#include "detectors/logs/progress/dict.h"
#include "detectors/logs/progress/keys.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

constexpr int32_t kMaxLines = 200;  // OLMo prints about ten metrics, the longest dicts fifty

Number ReadMetric(std::string_view text) {
  return ReadNumber(text, Ending::kDelimiter, Thousands::kYes);
}

}  // namespace

void BlockContext::Open(Kind kind, std::string_view step) {
  *this = BlockContext();
  kind_ = kind;
  step_ = step;
}

// "[epoch=2][batch=10/1000]:", "[batch=10/1000]:", "[token=4096/100000]:" end their line; the unit
// is that of the run's length. Evaluations begin with "[Eval batch=".
bool BlockContext::ObserveComposer(std::string_view text) {
  text = Trimmed(StripLoggerPrefix(text));
  if (!text.starts_with('[') || !text.ends_with("]:")) return false;
  Number epoch;
  constexpr std::string_view kEpoch = "[epoch=";
  if (text.starts_with(kEpoch)) {
    epoch = ReadNumber(text.substr(kEpoch.size()));
    if (!IsIndex(epoch)) return false;
    text.remove_prefix(kEpoch.size() + epoch.text.size());
    if (!text.starts_with("][")) return false;
    text.remove_prefix(1);
  }
  for (const std::string_view unit : {"[batch=", "[sample=", "[token="}) {
    if (!text.starts_with(unit)) continue;
    const std::string_view rest = text.substr(unit.size());
    const Number step = ReadNumber(rest);
    if (!IsIndex(step)) return false;
    const bool batches = unit == "[batch=";
    // Samples and tokens are no steps: "time/batch" below counts those.
    Open(kComposer, batches ? step.text : std::string_view());
    if (epoch) epoch_ = epoch.value;
    if (batches && rest.size() > step.text.size() && rest[step.text.size()] == '/') {
      const Number total = ReadNumber(rest.substr(step.text.size() + 1));
      if (IsIndex(total) && !epoch) total_steps_ = total.value;
    }
    return true;
  }
  return false;
}

void BlockContext::Observe(std::string_view text) {
  if (ObserveComposer(text)) return;
  // "[step=10/1000,epoch=0]" ends its line.
  constexpr std::string_view kOlmoBegin = "[step=";
  if (const size_t at = text.find(kOlmoBegin); at != std::string_view::npos) {
    const std::string_view rest = text.substr(at + kOlmoBegin.size());
    const Number step = ReadNumber(rest);
    if (!IsIndex(step) || !Trimmed(text).ends_with(']')) return;
    Open(kOlmo, step.text);
    if (rest.size() > step.text.size() && rest[step.text.size()] == '/') {
      const Number total = ReadNumber(rest.substr(step.text.size() + 1));
      if (IsIndex(total)) total_steps_ = total.value;
    }
    return;
  }
  text = Trimmed(StripLoggerPrefix(text));
  constexpr std::string_view kPerStep = " per-step time ";
  if (text.starts_with("Step ")) {
    const Number step = ReadNumber(text.substr(5));
    if (!IsIndex(step) || !text.substr(5 + step.text.size()).starts_with(kPerStep)) return;
    const std::string_view rest = text.substr(5 + step.text.size() + kPerStep.size());
    const Number seconds = ReadNumber(rest, Ending::kUnit);
    if (!seconds || rest.substr(seconds.text.size()) != "s") return;
    Open(kDict, step.text);
    step_seconds_ = seconds.value;
    return;
  }
  constexpr std::string_view kTrain = "train | step:";
  if (!text.starts_with(kTrain) || !text.ends_with("| output:")) return;
  const Number step = ReadNumber(LeftTrimmed(text.substr(kTrain.size())));
  if (!IsIndex(step)) return;
  Open(kDict, step.text);
  constexpr std::string_view kRate = "steps/sec:";
  if (const size_t at = text.find(kRate); at != std::string_view::npos) {
    const Number rate = ReadNumber(LeftTrimmed(text.substr(at + kRate.size())));
    if (rate && rate.value > 0) step_seconds_ = 1 / rate.value;
  }
}

bool BlockContext::Feed(const CleanLine& line, RecordList& out) {
  const bool fits = ++lines_ <= kMaxLines;
  const bool taken = fits && (kind_ == kOlmo       ? FeedOlmo(line.text, out)
                              : kind_ == kComposer ? FeedComposer(line.text, out)
                                                   : FeedDict(line.text, out));
  if (!taken) kind_ = kNone;
  return taken;
}

Progress BlockContext::Take(std::string_view format) {
  Progress progress;
  progress.format = format;
  if (!step_.empty()) SetStep(progress, ReadMetric(step_));
  if (!loss_.empty()) SetLoss(progress, ReadMetric(loss_));
  if (!grad_norm_.empty()) SetGradNorm(progress, ReadMetric(grad_norm_));
  if (!learning_rate_.empty()) SetLearningRate(progress, ReadMetric(learning_rate_));
  progress.total_steps = total_steps_;
  progress.step_seconds = step_seconds_;
  progress.epoch = epoch_;
  return progress;
}

// "    train/CrossEntropyLoss=2.375". The record is made at the line of its loss, which a citation
// can quote; what stands above it belongs to it.
bool BlockContext::FeedOlmo(std::string_view text, RecordList& out) {
  const size_t equals = text.find('=');
  if (text.empty() || !IsBlank(text[0]) || equals == std::string_view::npos) return false;
  const std::string_view name = Trimmed(text.substr(0, equals));
  const Number value = ReadMetric(Trimmed(text.substr(equals + 1)));
  if (!value) return false;
  if (name == "optim/total_grad_norm" || name == "optim/total grad norm") {
    grad_norm_ = value.text;
  } else if (name == "optim/learning_rate_group0" || name == "optim/LR (group 0)") {
    learning_rate_ = value.text;
  } else if (name == "train/CrossEntropyLoss" || name == "train/CE loss") {
    if (!loss_.empty()) return false;
    loss_ = value.text;
    out.emplace_back(Take("olmo"));
  }
  return true;
}

// "\t Train loss/train/total: 2.375". Losses of parts ("loss/train/lbl") and metrics of the same
// kind ("metrics/train/LanguageCrossEntropy") are not the run's loss.
bool BlockContext::FeedComposer(std::string_view text, RecordList& out) {
  if (text.empty() || !IsBlank(text[0])) return false;
  text = Trimmed(text);
  constexpr std::string_view kTrain = "Train ";
  const size_t colon = text.rfind(": ");
  if (!text.starts_with(kTrain) || colon == std::string_view::npos) return false;
  const std::string_view name = text.substr(kTrain.size(), colon - kTrain.size());
  const Number value = ReadMetric(Trimmed(text.substr(colon + 2)));
  if (!value) return true;  // an image, a table
  if (name == "time/batch" && step_.empty()) {
    step_ = value.text;
  } else if (name == "l2_norm/grad/global") {
    grad_norm_ = value.text;
  } else if (name == "loss/train/total") {
    if (!loss_.empty()) return false;
    loss_ = value.text;
    out.emplace_back(Take("composer"));
  }
  return true;
}

// "{'Loss/total_loss': 0.75," to "'learning_rate': 0.03}": the record is complete at the brace.
bool BlockContext::FeedDict(std::string_view text, RecordList& out) {
  text = Trimmed(StripLoggerPrefix(text));
  const bool begins = text.starts_with('{');
  if (begins != (lines_ == 1)) return false;
  DictCursor cursor(begins ? text.substr(1) : text);
  DictItem item;
  Progress progress;
  size_t items = 0;
  while (cursor.Next(item)) {
    ++items;
    if (const Number value = DictNumber(item)) TakeNamed(item.key, value, progress);
  }
  if (!progress.loss_text.empty()) loss_ = progress.loss_text;
  if (!progress.grad_norm_text.empty()) grad_norm_ = progress.grad_norm_text;
  if (!progress.learning_rate_text.empty()) learning_rate_ = progress.learning_rate_text;
  if (items == 0) return false;
  if (!cursor.closed()) return true;
  if (!loss_.empty()) out.emplace_back(Take("tf_block"));
  kind_ = kNone;
  return true;
}

}  // namespace rankscope::logs
