// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/keys.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// verl prints no loss of the whole: what a step did is in its rewards and the policy's gradient.
void Take(std::string_view key, const Number& value, Progress& p) {
  if (key == "actor/grad_norm") {
    SetGradNorm(p, value);
  } else if (key == "actor/lr") {
    SetLearningRate(p, value);
  } else if (key == "critic/rewards/mean") {
    p.reward = value.value;
  } else if (key == "critic/score/mean") {
    if (p.reward != p.reward) p.reward = value.value;
  } else if (key == "actor/kl_loss" || key == "actor/reward_kl_penalty") {
    p.kl = value.value;  // to the reference
  } else if (key == "actor/ppo_kl") {
    if (p.kl != p.kl) p.kl = value.value;  // to the policy of the step before
  } else if (key == "perf/mfu/actor") {
    p.mfu = value.value;
  } else if (key == "perf/throughput") {
    p.tokens_per_second = value.value;
  } else if (key == "timing_s/step" || key == "perf/time_per_step") {
    p.step_seconds = value.value;
  } else if (key == "training/epoch") {
    p.epoch = value.value;
  }
}

}  // namespace

// "step:7 - actor/grad_norm:0.25 - critic/rewards/mean:0.5 - timing_s/step:61.5", newer with
// "np.float64(0.5)" for a value.
bool ParseVerl(const CleanLine& line, RecordList& out) {
  const size_t at = line.text.find("step:");
  if (at == std::string_view::npos || (at != 0 && !IsBlank(line.text[at - 1]))) return false;
  std::string_view rest = line.text.substr(at);
  Progress progress;
  progress.format = "verl";
  const Number step = ReadNumber(rest.substr(5));
  if (!IsIndex(step)) return false;
  SetStep(progress, step);
  while (true) {
    const size_t next = rest.find(" - ");
    const std::string_view item = rest.substr(0, next);
    if (const size_t colon = item.find(':'); colon != std::string_view::npos) {
      std::string_view text = item.substr(colon + 1);
      if (text.starts_with("np.")) text.remove_prefix(std::min(text.find('(') + 1, text.size()));
      if (const Number value = ReadNumber(text)) Take(item.substr(0, colon), value, progress);
    }
    if (next == std::string_view::npos) break;
    rest.remove_prefix(next + 3);
  }
  if (progress.reward != progress.reward) return false;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
