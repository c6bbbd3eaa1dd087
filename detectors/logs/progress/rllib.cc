// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// "Result for PPO_CartPole-v1_1a2b3_00000:", by Ray Tune's reporter (python/ray/tune/progress_
// reporter.py): the result of one iteration follows as YAML, indented by two blanks, its keys in
// the order of their names.
bool OpenRllib(std::string_view text, Block&) {
  constexpr std::string_view kResult = "Result for ";
  if (!text.starts_with(kResult) || !text.ends_with(':')) return false;
  return text.find(' ', kResult.size()) == std::string_view::npos;
}

// What is indented more belongs to an evaluation, a policy or a timer. The record is made at the
// line of its iteration, behind which nothing of interest comes.
BlockLine FeedRllib(std::string_view text, Block& block, RecordList& out) {
  // A launcher's prefix may have taken one of the two blanks.
  if (text.empty() || !IsBlank(text[0])) return BlockLine::kForeign;
  text.remove_prefix(text.starts_with("  ") ? 2 : 1);
  if (text.empty() || IsBlank(text[0])) return BlockLine::kTaken;
  const size_t colon = text.find(": ");
  if (colon == std::string_view::npos) return BlockLine::kTaken;  // a list, a mapping
  const std::string_view name = text.substr(0, colon);
  const Number value = ReadMetric(Trimmed(text.substr(colon + 2)));
  if (!value) return BlockLine::kTaken;
  if (name == "episode_reward_mean" || name == "episode_return_mean") {
    block.reward = value.value;
  } else if (name == "loss" || name == "mean_loss" || name == "train_loss") {
    if (block.loss.empty()) block.loss = value.text;
  } else if (name == "time_total_s") {
    block.elapsed_seconds = value.value;
  } else if (name == "training_iteration") {
    block.step = value.text;
    const bool known = !block.loss.empty() || block.reward == block.reward;
    if (known) out.emplace_back(block.Take("rllib"));
    return BlockLine::kLast;
  }
  return BlockLine::kTaken;
}

}  // namespace

constinit const BlockDialect kRllibBlock = {OpenRllib, FeedRllib};

}  // namespace rankscope::logs
