// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Setters that keep a Progress' views and doubles together, and the two ways a dialect speaks. For
// the dialects' files.
#pragma once

#include <string_view>

#include "detectors/logs/record.h"
#include "detectors/logs/text/number.h"

namespace rankscope::logs {

inline void SetStep(Progress& progress, const Number& number) {
  progress.step_text = number.text;
  progress.step = number.value;
}
inline void SetLoss(Progress& progress, const Number& number) {
  progress.loss_text = number.text;
  progress.loss = number.value;
}
inline void SetGradNorm(Progress& progress, const Number& number) {
  progress.grad_norm_text = number.text;
  progress.grad_norm = number.value;
}
inline void SetLearningRate(Progress& progress, const Number& number) {
  progress.learning_rate_text = number.text;
  progress.learning_rate = number.value;
}

// An item of a dict, by its key's meaning; of several losses the one with the plainest name counts.
void TakeNamed(std::string_view key, const Number& value, Progress& progress);

inline Marker MakeMarker(MarkerKind kind, std::string_view name, const CleanLine& line,
                         std::string_view text = {}, double number = kAbsent) {
  return {kind, name, text, number, line.offset, line.original};
}

}  // namespace rankscope::logs
