// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/model/ascii.h"

namespace rankscope::logs {
namespace {

struct Unit {
  std::string_view word;
  StepUnit unit;
};
constexpr Unit kUnits[] = {{"step ", StepUnit::kSteps},      {"global step ", StepUnit::kSteps},
                           {"iteration ", StepUnit::kSteps}, {"iter ", StepUnit::kSteps},
                           {"batch ", StepUnit::kSteps},     {"epoch ", StepUnit::kEpochs}};

// What may stand before the word: the loss of an evaluation, of a part or of a network is another.
constexpr std::string_view kOwn[] = {"training", "train", "average", "avg",   "mean",
                                     "total",    "batch", "step",    "epoch", "info"};

bool IsOwn(std::string_view before) {
  if (before.empty()) return true;
  if (IsWordByte(before.back())) return false;
  const std::string_view words = Trimmed(before);
  size_t begin = words.size();
  while (begin > 0 && IsLetter(words[begin - 1])) --begin;
  const std::string last = LowerAscii(words.substr(begin));
  return last.empty() || std::find(std::begin(kOwn), std::end(kOwn), last) != std::end(kOwn);
}

// "iteration 100" or "100 iterations" at the start of `text`, which it is taken off.
Number TakeStep(std::string_view& text, StepUnit& unit) {
  const Number first = ReadNumber(text);
  if (first) text = LeftTrimmed(text.substr(first.text.size()));
  const Unit* const row =
      std::find_if(std::begin(kUnits), std::end(kUnits),
                   [text](const Unit& one) { return text.starts_with(Trimmed(one.word)); });
  if (row == std::end(kUnits)) return {};
  unit = row->unit;
  text.remove_prefix(row->word.size() - 1);
  if (first) {
    if (text.starts_with('s') || text.starts_with("es")) text.remove_prefix(text[0] == 's' ? 1 : 2);
    return first;
  }
  if (!text.starts_with(' ')) return {};
  text.remove_prefix(1);
  const Number step = ReadNumber(text);
  text = LeftTrimmed(text.substr(step.text.size()));
  return step;
}

}  // namespace

// "Training average loss at step 100: 0.5", "Loss at epoch 3 = 0.25", "Training loss (for one
// batch) at step 200: 0.75", "Cost after iteration 100: 0.5", "Loss after 100 iterations: 0.5":
// tutorials of TensorFlow and Keras, courses, and what was written after them.
bool ParseLossAtStep(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  size_t at = text.find(" at ");
  size_t joint = 4;
  if (at == std::string_view::npos) {
    at = text.find(" after ");
    joint = 7;
  }
  if (at == std::string_view::npos) return false;
  std::string_view name = text.substr(0, at);
  if (name.ends_with(')')) {
    const size_t open = name.rfind(" (");
    if (open == std::string_view::npos) return false;
    name = name.substr(0, open);
  }
  static constexpr std::string_view kNames[] = {"loss", "Loss", "cost", "Cost"};
  if (std::none_of(std::begin(kNames), std::end(kNames),
                   [name](std::string_view own) { return name.ends_with(own); })) {
    return false;
  }
  if (!IsOwn(name.substr(0, name.size() - 4))) return false;
  std::string_view rest = text.substr(at + joint);
  StepUnit unit{};
  const Number step = TakeStep(rest, unit);
  if (!IsIndex(step)) return false;
  for (const std::string_view link : {":", "=", "is "}) {
    if (!rest.starts_with(link)) continue;
    const Number loss = ReadNumber(LeftTrimmed(rest.substr(link.size())));
    if (!loss) return false;
    Progress progress;
    progress.format = "loss_at_step";
    SetStep(progress, step);
    SetLoss(progress, loss);
    progress.step_unit = unit;
    out.emplace_back(progress);
    return true;
  }
  return false;
}

}  // namespace rankscope::logs
