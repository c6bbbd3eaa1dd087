// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// "[step=10/1000,epoch=0]" ends its line.
bool OpenOlmo(std::string_view text, Block& block) {
  constexpr std::string_view kBegin = "[step=";
  const size_t at = text.find(kBegin);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = text.substr(at + kBegin.size());
  const Number step = ReadNumber(rest);
  if (!IsIndex(step) || !Trimmed(text).ends_with(']')) return false;
  block.step = step.text;
  if (rest.size() > step.text.size() && rest[step.text.size()] == '/') {
    const Number total = ReadNumber(rest.substr(step.text.size() + 1));
    if (IsIndex(total)) block.total_steps = total.value;
  }
  return true;
}

// "    train/CrossEntropyLoss=2.375". The record is made at the line of its loss, which a citation
// can quote; what stands above it belongs to it.
BlockLine FeedOlmo(std::string_view text, Block& block, RecordList& out) {
  const size_t equals = text.find('=');
  if (text.empty() || !IsBlank(text[0]) || equals == std::string_view::npos)
    return BlockLine::kForeign;
  const std::string_view name = Trimmed(text.substr(0, equals));
  const Number value = ReadMetric(Trimmed(text.substr(equals + 1)));
  if (!value) return BlockLine::kForeign;
  if (name == "optim/total_grad_norm" || name == "optim/total grad norm") {
    block.grad_norm = value.text;
  } else if (name == "optim/learning_rate_group0" || name == "optim/LR (group 0)") {
    block.learning_rate = value.text;
  } else if (name == "train/CrossEntropyLoss" || name == "train/CE loss") {
    if (!block.loss.empty()) return BlockLine::kForeign;
    block.loss = value.text;
    out.emplace_back(block.Take("olmo"));
  }
  return BlockLine::kTaken;
}

}  // namespace

constinit const BlockDialect kOlmoBlock = {OpenOlmo, FeedOlmo};

}  // namespace rankscope::logs
