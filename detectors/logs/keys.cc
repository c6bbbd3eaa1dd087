// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/keys.h"

#include "detectors/logs/progress_fields.h"

namespace rankscope::logs {

double InSeconds(double value, std::string_view unit) {
  if (unit == "s" || unit == "sec" || unit == "secs" || unit == "seconds" || unit == "s/it" ||
      unit == "s/step") {
    return value;
  }
  if (unit == "ms" || unit == "ms/step" || unit == "ms/it") return value / 1000;
  if (unit == "us" || unit == "us/step") return value / 1e6;
  return kAbsent;
}

void SetFact(Progress& p, Key key, double value, std::string_view unit, bool percent) {
  const auto seconds = [&] {
    const double converted = InSeconds(value, unit);
    return unit.empty() || converted != converted ? value : converted;
  };
  switch (key) {
    case Key::kEpoch:
      p.epoch = value;
      break;
    case Key::kLossScale:
      p.loss_scale = value;
      break;
    case Key::kReward:
      p.reward = value;
      break;
    case Key::kRewardStd:
      p.reward_std = value;
      break;
    case Key::kZeroStdShare:
      p.zero_std_share = value;
      break;
    case Key::kKl:
      p.kl = value;
      break;
    case Key::kSkipped:
      p.skipped_iterations = value;
      break;
    case Key::kNanIterations:
      p.nan_iterations = value;
      break;
    case Key::kNumZeros:
      p.num_zeros = value;
      break;
    case Key::kParamsNorm:
      p.params_norm = value;
      break;
    case Key::kBatchSize:
      p.batch_size = value;
      break;
    case Key::kConsumedSamples:
      p.consumed_samples = value;
      break;
    case Key::kConsumedTokens:
      p.consumed_tokens = value;
      break;
    case Key::kElapsed:
      p.elapsed_seconds = seconds();
      break;
    case Key::kSamplesPerSecond:
      p.samples_per_second = value;
      break;
    case Key::kTokensPerSecond:
      p.tokens_per_second = value;
      break;
    case Key::kTflops:
      p.tflops = value;
      break;
    case Key::kMfu:
      // A share: more than 1 is a percentage that did not say so; nanoGPT prints -100 % before it
      // knows.
      if (value >= 0) p.mfu = percent || value > 1 ? value / 100 : value;
      break;
    case Key::kStepTime:
      p.step_seconds = seconds();
      break;
    case Key::kStepMilliseconds:
      p.step_seconds = value / 1000;
      break;
    default:
      break;
  }
}

void TakeNamed(std::string_view key, const Number& value, Progress& progress) {
  // "Loss/total_loss": the object detection API's groups.
  if (key.starts_with("Loss/")) key.remove_prefix(5);
  const Meaning meaning = MeaningOf(key);
  switch (meaning.key) {
    case Key::kStep:
      SetStep(progress, value);
      break;
    case Key::kLoss:
      if (progress.loss_text.empty() || KeyIs(key, "loss") || KeyIs(key, "total_loss"))
        SetLoss(progress, value);
      break;
    case Key::kGradNorm:
      SetGradNorm(progress, value);
      break;
    case Key::kLearningRate:
      SetLearningRate(progress, value);
      break;
    default:
      SetFact(progress, meaning.key, value.value);
  }
}

}  // namespace rankscope::logs
