// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/block_context.h"

#include <utility>
#include <vector>

#include "detectors/logs/progress/formats.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

constexpr int32_t kMaxLines = 200;  // OLMo prints about ten metrics, the longest dicts fifty

// The rows of Formats() that are blocks.
const std::vector<int32_t>& BlockRows() {
  static const std::vector<int32_t> rows = [] {
    std::vector<int32_t> found;
    const std::span<const FormatRow> formats = Formats();
    for (size_t row = 0; row < formats.size(); ++row) {
      if (formats[row].block != nullptr) found.push_back(static_cast<int32_t>(row));
    }
    return found;
  }();
  return rows;
}

}  // namespace

Progress Block::Take(std::string_view format) const {
  Progress progress;
  progress.format = format;
  if (!step.empty()) SetStep(progress, ReadMetric(step));
  if (!loss.empty()) SetLoss(progress, ReadMetric(loss));
  if (!grad_norm.empty()) SetGradNorm(progress, ReadMetric(grad_norm));
  if (!learning_rate.empty()) SetLearningRate(progress, ReadMetric(learning_rate));
  progress.total_steps = total_steps;
  progress.step_seconds = step_seconds;
  progress.epoch = epoch;
  progress.reward = reward;
  progress.kl = kl;
  progress.elapsed_seconds = elapsed_seconds;
  progress.samples_per_second = samples_per_second;
  return progress;
}

void BlockContext::Observe(std::string_view text) {
  for (const int32_t row : BlockRows()) {
    Block opened;
    if (!Formats()[static_cast<size_t>(row)].block->open(text, opened)) continue;
    dialect_ = row;
    block_ = std::move(opened);
    return;
  }
}

bool BlockContext::Feed(const CleanLine& line, RecordList& out) {
  const std::span<const FormatRow> formats = Formats();
  const auto row = static_cast<size_t>(dialect_);
  BlockLine taken = BlockLine::kForeign;
  // A restored row may be anything.
  if (row < formats.size() && formats[row].block != nullptr && ++block_.lines <= kMaxLines)
    taken = formats[row].block->feed(line.text, block_, out);
  if (taken != BlockLine::kTaken) dialect_ = -1;
  return taken != BlockLine::kForeign;
}

}  // namespace rankscope::logs
