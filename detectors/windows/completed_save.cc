// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/completed_save.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "detectors/model/ascii.h"

namespace rankscope::windows {
namespace {

using logs::MarkerKind;

// transformers: checkpoint-400; Megatron-LM: iter_0000400; DeepSpeed: global_step400; Lightning:
// epoch=3-step=400.ckpt; fairseq: checkpoint_1_400.pt has its epoch first and is not read.
constexpr std::string_view kStepWords[] = {"step",      "steps",      "iter",
                                           "iteration", "checkpoint", "ckpt"};

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
}  // namespace

double StepOfCheckpointName(std::string_view path) {
  double step = logs::kAbsent;
  for (size_t i = 0; i < path.size();) {
    if (!IsLetter(path[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < path.size() && IsLetter(path[end])) ++end;
    const std::string_view word = path.substr(i, end - i);
    i = end;
    if (i < path.size() && (path[i] == '-' || path[i] == '_' || path[i] == '=')) ++i;
    size_t digits = i;
    while (digits < path.size() && IsDigit(path[digits])) ++digits;
    const size_t count = digits - i;
    constexpr size_t kMostDigits = 15;  // fit a double
    const bool named =
        std::find(std::begin(kStepWords), std::end(kStepWords), word) != std::end(kStepWords);
    // Behind the number another one begins: of the two it is not known which counts steps.
    const bool more = digits + 1 < path.size() && IsDigit(path[digits + 1]) &&
                      (path[digits] == '-' || path[digits] == '_');
    if (named && count > 0 && count <= kMostDigits && !more)
      step = std::strtod(std::string(path.substr(i, count)).c_str(), nullptr);
    i = std::max(i, digits);
  }
  return step;
}

CompletedSave NewestCompletedSave(const AttemptWindow& window, Timestamp end) {
  CompletedSave save;
  const CheckpointTracker& files = window.kernel.checkpoints;
  const MarkerSeen& begun = window.marker(MarkerKind::kSaveBegin);
  const MarkerSeen& ended = window.marker(MarkerKind::kSaveEnd);
  const bool went_on = begun.count > 0 && window.clock.last_progress() > begun.last;
  const MarkerSeen& told = ended.count > 0 ? ended : begun;
  const bool said = ended.count > 0 || went_on;
  if (files.saves() > 0) {
    // Its pause is over with the attempt.
    const SaveSeen& whole = files.newest_whole(end + Seconds(3600));
    if (!whole.present()) return save;
    save.present = true;
    save.name = whole.name;
    save.step = StepOfCheckpointName(whole.name);
    // The program's number is of this save where it was said with it, or behind it.
    if (!std::isfinite(save.step) && said && told.last >= whole.begin) save.step = told.number;
    return save;
  }
  if (!said) return save;
  save.present = true;
  save.name = told.text;
  save.step = told.number;
  if (begun.count > 0 && begun.last <= told.last) {  // of this save
    if (save.name.empty()) save.name = begun.text;
    if (!std::isfinite(save.step)) save.step = begun.number;
  }
  if (!std::isfinite(save.step)) save.step = StepOfCheckpointName(save.name);
  return save;
}

Advance CompareSaves(const CompletedSave& before, const CompletedSave& after) {
  if (!after.present) return Advance::kNoFurther;
  if (!before.present) return Advance::kFurther;
  if (std::isfinite(before.step) && std::isfinite(after.step))
    return after.step > before.step ? Advance::kFurther : Advance::kNoFurther;
  return Advance::kUnknown;
}

}  // namespace rankscope::windows
