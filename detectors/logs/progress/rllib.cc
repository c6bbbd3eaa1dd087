// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/keys.h"
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

constexpr std::string_view kBar = "\xe2\x94\x82";    // of a box, left and right
constexpr std::string_view kFoot = "\xe2\x95\xb0";   // its lower left corner
constexpr std::string_view kJoint = "\xe2\x94\x9c";  // what its rules begin with

// "| name   value |", in the bars of a box.
std::string_view Inside(std::string_view text) {
  text = Trimmed(text);
  if (!text.starts_with(kBar)) return {};
  text.remove_prefix(kBar.size());
  if (text.ends_with(kBar)) text.remove_suffix(kBar.size());
  return Trimmed(text);
}

// The box in which Ray prints each result of a trial (python/ray/tune/experimental/output.py).
bool OpenRayResult(std::string_view text, Block&) {
  return Inside(text) == "Training result";
}

BlockLine FeedRayResult(std::string_view text, Block& block, RecordList& out) {
  text = Trimmed(text);
  if (text.starts_with(kFoot)) {
    const bool known = !block.loss.empty() || block.reward == block.reward;
    if (!block.step.empty() && known) out.emplace_back(block.Take("ray_result"));
    return BlockLine::kLast;
  }
  if (text.starts_with(kJoint)) return BlockLine::kTaken;
  const std::string_view inside = Inside(text);
  const size_t blank = inside.find(' ');
  if (inside.empty()) return BlockLine::kForeign;
  if (blank == std::string_view::npos) return BlockLine::kTaken;
  const Number value = ReadMetric(LeftTrimmed(inside.substr(blank)));
  const Meaning meaning = MeaningOf(inside.substr(0, blank));
  if (!value) return BlockLine::kTaken;
  if (meaning.key == Key::kReward) {
    block.reward = value.value;
  } else if (meaning.key == Key::kLoss) {
    if (block.loss.empty()) block.loss = value.text;
  } else if (meaning.key == Key::kLearningRate) {
    block.learning_rate = value.text;
  } else if (meaning.key == Key::kElapsed) {
    block.elapsed_seconds = value.value;
  } else if (inside.substr(0, blank) == "training_iteration") {
    block.step = value.text;
  }
  return BlockLine::kTaken;
}

}  // namespace

constinit const BlockDialect kRayResultBlock = {OpenRayResult, FeedRayResult};
constinit const BlockDialect kRllibBlock = {OpenRllib, FeedRllib};

}  // namespace rankscope::logs
