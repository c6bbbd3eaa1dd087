// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/keys.h"

#include "detectors/logs/progress/progress_fields.h"

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
  switch (key) {
    case Key::kElapsed:
    case Key::kStepTime:
      if (const double seconds = InSeconds(value, unit); seconds == seconds) value = seconds;
      break;
    case Key::kStepMilliseconds:
      p.step_seconds = value / 1000;
      return;
    case Key::kStepRate:
      if (value > 0) p.step_seconds = 1 / value;
      return;
    case Key::kMfu:
      // A share: more than 1 is a percentage that did not say so; nanoGPT prints -100 % before it
      // knows.
      if (value >= 0) p.mfu = percent || value > 1 ? value / 100 : value;
      return;
    default:
      break;
  }
  if (const auto field = kFactFields[static_cast<size_t>(key)]) p.*field = value;
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
