// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// "Learning iteration 12/1500", by the runner of rsl_rl (rsl_rl/runners/on_policy_runner.py), which
// Isaac Gym and Isaac Lab train with. Names and values stand below it, one in each line.
bool OpenRslRl(std::string_view text, Block& block) {
  constexpr std::string_view kHead = "Learning iteration ";
  text = Trimmed(text);
  if (!text.starts_with(kHead)) return false;
  text.remove_prefix(kHead.size());
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const Number step = WholeNumber(text.substr(0, slash));
  const Number total = WholeNumber(text.substr(slash + 1));
  if (!IsIndex(step) || !IsIndex(total)) return false;
  block.step = step.text;
  block.total_steps = total.value;
  return true;
}

// The record is made at the time of the iteration, behind which nothing of interest comes. Where no
// episode has ended yet there is no reward.
BlockLine FeedRslRl(std::string_view text, Block& block, RecordList& out) {
  text = Trimmed(text);
  if (text.empty() || text.starts_with("---")) return BlockLine::kTaken;
  const size_t colon = text.find(": ");
  if (colon == std::string_view::npos) return BlockLine::kForeign;
  const std::string_view name = text.substr(0, colon);
  const Number value = ReadNumber(LeftTrimmed(text.substr(colon + 2)), Ending::kUnit);
  if (!value) return BlockLine::kTaken;
  if (name == "Mean reward") {
    block.reward = value.value;
  } else if (name == "Iteration time") {
    block.step_seconds = value.value;
    out.emplace_back(block.Take("rsl_rl"));
    return BlockLine::kLast;
  }
  return BlockLine::kTaken;
}

}  // namespace

constinit const BlockDialect kRslRlBlock = {OpenRslRl, FeedRslRl};

// "fps step: 44938 fps step and policy inference: 43526 fps total: 38962 epoch: 36/3000 frames:
// 1146880", by rl_games (rl_games/common/a2c_common.py). It prints neither loss nor reward.
bool ParseRlGames(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kEpoch = " epoch: ", kFrames = " frames: ", kTotal = "fps total: ";
  const std::string_view text = line.text;
  const size_t at = text.find(kEpoch);
  if (at == std::string_view::npos || text.find(kFrames, at) == std::string_view::npos)
    return false;
  std::string_view rest = text.substr(at + kEpoch.size());
  const Number step = ReadNumber(rest.substr(0, rest.find('/')));
  if (!IsIndex(step)) return false;
  Progress progress;
  progress.format = "rl_games";
  SetStep(progress, step);
  if (step.text.size() < rest.size() && rest[step.text.size()] == '/') {
    if (const Number total = ReadNumber(rest.substr(step.text.size() + 1)); IsIndex(total))
      progress.total_steps = total.value;
  }
  if (const size_t total = text.find(kTotal); total != std::string_view::npos) {
    if (const Number fps = ReadNumber(text.substr(total + kTotal.size())))
      progress.samples_per_second = fps.value;
  }
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
