// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// "|    ep_rew_mean     | 21.4      |": a name and a value; both empty in any other line.
struct TableRow {
  std::string_view name;
  std::string_view value;
};

TableRow ReadRow(std::string_view text) {
  text = Trimmed(text);
  if (text.size() < 3 || text.front() != '|' || text.back() != '|') return {};
  text = text.substr(1, text.size() - 2);
  const size_t bar = text.find('|');
  if (bar == std::string_view::npos || text.find('|', bar + 1) != std::string_view::npos) return {};
  return {Trimmed(text.substr(0, bar)), Trimmed(text.substr(bar + 1))};
}

bool IsRule(std::string_view text) {
  text = Trimmed(text);
  return text.size() >= 10 && text.find_first_not_of('-') == std::string_view::npos;
}

// The name of a section, "| rollout/ |  |". What EvalCallback prints is about other episodes.
bool OpenStableBaselines3(std::string_view text, Block& block) {
  const TableRow row = ReadRow(text);
  if (!row.value.empty()) return false;
  block.evaluation = row.name == "eval/";
  return block.evaluation || row.name == "rollout/" || row.name == "time/" || row.name == "train/";
}

// Sections come in the order of their names (stable_baselines3/common/logger.py), so that the step
// stands before the loss. The record is made at the line of its loss, which a citation can quote;
// the first rollout, and algorithms with a loss for each network, have none.
BlockLine FeedStableBaselines3(std::string_view text, Block& block, RecordList& out) {
  constexpr std::string_view kName = "stable_baselines3";
  if (IsRule(text)) {
    const bool known = !block.step.empty() && block.reward == block.reward;
    if (known && block.loss.empty() && !block.evaluation) out.emplace_back(block.Take(kName));
    return BlockLine::kLast;
  }
  const TableRow row = ReadRow(text);
  if (row.name.empty()) return BlockLine::kForeign;
  const Number value = ReadMetric(row.value);
  if (!value) return BlockLine::kTaken;  // a section, a video
  if (row.name == "ep_rew_mean") {
    block.reward = value.value;
  } else if (row.name == "total_timesteps") {
    block.step = value.text;
  } else if (row.name == "time_elapsed") {
    block.elapsed_seconds = value.value;
  } else if (row.name == "fps") {
    block.samples_per_second = value.value;
  } else if (row.name == "approx_kl") {
    block.kl = value.value;
  } else if (row.name == "learning_rate") {
    block.learning_rate = value.text;
  } else if (row.name == "loss" && block.loss.empty() && !block.step.empty() && !block.evaluation) {
    block.loss = value.text;
    out.emplace_back(block.Take(kName));
  }
  return BlockLine::kTaken;
}

}  // namespace

constinit const BlockDialect kStableBaselines3Block = {OpenStableBaselines3, FeedStableBaselines3};

}  // namespace rankscope::logs
