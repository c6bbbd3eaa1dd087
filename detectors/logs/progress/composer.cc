// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

// "[epoch=2][batch=10/1000]:", "[batch=10/1000]:", "[token=4096/100000]:" end their line; the unit
// is that of the run's length. Evaluations begin with "[Eval batch=".
bool OpenComposer(std::string_view text, Block& block) {
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
    // Samples and tokens are no steps: "time/batch" below counts those.
    const bool batches = unit == "[batch=";
    if (batches) block.step = step.text;
    if (epoch) block.epoch = epoch.value;
    if (batches && rest.size() > step.text.size() && rest[step.text.size()] == '/') {
      const Number total = ReadNumber(rest.substr(step.text.size() + 1));
      if (IsIndex(total) && !epoch) block.total_steps = total.value;
    }
    return true;
  }
  return false;
}

// "\t Train loss/train/total: 2.375". Losses of parts ("loss/train/lbl") and metrics of the same
// kind ("metrics/train/LanguageCrossEntropy") are not the run's loss.
BlockLine FeedComposer(std::string_view text, Block& block, RecordList& out) {
  if (text.empty() || !IsBlank(text[0])) return BlockLine::kForeign;
  text = Trimmed(text);
  constexpr std::string_view kTrain = "Train ";
  const size_t colon = text.rfind(": ");
  if (!text.starts_with(kTrain) || colon == std::string_view::npos) return BlockLine::kForeign;
  const std::string_view name = text.substr(kTrain.size(), colon - kTrain.size());
  const Number value = ReadMetric(Trimmed(text.substr(colon + 2)));
  if (!value) return BlockLine::kTaken;  // an image, a table
  if (name == "time/batch" && block.step.empty()) {
    block.step = value.text;
  } else if (name == "l2_norm/grad/global") {
    block.grad_norm = value.text;
  } else if (name == "loss/train/total") {
    if (!block.loss.empty()) return BlockLine::kForeign;
    block.loss = value.text;
    out.emplace_back(block.Take("composer"));
  }
  return BlockLine::kTaken;
}

}  // namespace

constinit const BlockDialect kComposerBlock = {OpenComposer, FeedComposer};

}  // namespace rankscope::logs
