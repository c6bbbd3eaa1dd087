// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// "   --> TIME: 2026-02-03 04:05:06 -- STEP: 25/1000 -- GLOBAL_STEP: 25", by the Trainer of Coqui
// TTS (trainer/logging/console_logger.py). An evaluation's heads have no global step.
bool OpenCoqui(std::string_view text, Block& block) {
  constexpr std::string_view kHead = "--> ", kStep = " -- GLOBAL_STEP: ";
  text = LeftTrimmed(text);
  const size_t at = text.find(kStep);
  if (!text.starts_with(kHead) || at == std::string_view::npos) return false;
  const Number step = WholeNumber(Trimmed(text.substr(at + kStep.size())));
  if (!IsIndex(step)) return false;
  block.step = step.text;
  return true;
}

// "     | > loss_mel: 66.43521  (65.63892)": the last value and the mean of the epoch. Models with
// several networks have a loss for each and none of the whole: of those only NaN tells something.
// The record is made at the line of its step's time, which every step has behind its losses, or
// where the block ends without one.
BlockLine FeedCoqui(std::string_view text, Block& block, RecordList& out) {
  constexpr std::string_view kMetric = "| > ";
  text = LeftTrimmed(text);
  const size_t colon = text.find(": ");
  if (!text.starts_with(kMetric) || colon == std::string_view::npos) {
    if (text.empty() && block.lines <= 1) return BlockLine::kTaken;
    return BlockLine::kForeign;
  }
  const std::string_view name = text.substr(kMetric.size(), colon - kMetric.size());
  const Number value = ReadNumber(LeftTrimmed(text.substr(colon + 2)));
  if (!value) return BlockLine::kTaken;
  const bool non_finite = value.value - value.value != 0;
  if (name == "loss" || (name.starts_with("loss_") && non_finite)) {
    block.loss = value.text;
  } else if (name == "grad_norm" || name == "grad_norm_0") {
    block.grad_norm = value.text;
  } else if (name == "current_lr" || name == "current_lr_0") {
    block.learning_rate = value.text;
  } else if (name == "step_time") {
    block.step_seconds = value.value;
    out.emplace_back(block.Take("coqui"));
  }
  return BlockLine::kTaken;
}

}  // namespace

constinit const BlockDialect kCoquiBlock = {OpenCoqui, FeedCoqui};

}  // namespace rankscope::logs
