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

}  // namespace

// "Training average loss at step 100: 0.5", "Loss at epoch 3 = 0.25", "Training loss (for one
// batch) at step 200: 0.75": tutorials of TensorFlow and Keras, and what was written after them.
bool ParseLossAtStep(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const size_t at = text.find(" at ");
  if (at == std::string_view::npos) return false;
  std::string_view name = text.substr(0, at);
  if (name.ends_with(')')) {
    const size_t open = name.rfind(" (");
    if (open == std::string_view::npos) return false;
    name = name.substr(0, open);
  }
  if (!name.ends_with("loss") && !name.ends_with("Loss")) return false;
  if (!IsOwn(name.substr(0, name.size() - 4))) return false;
  std::string_view rest = text.substr(at + 4);
  const Unit* const unit =
      std::find_if(std::begin(kUnits), std::end(kUnits),
                   [rest](const Unit& row) { return rest.starts_with(row.word); });
  if (unit == std::end(kUnits)) return false;
  rest.remove_prefix(unit->word.size());
  const Number step = ReadNumber(rest);
  if (!IsIndex(step)) return false;
  rest = LeftTrimmed(rest.substr(step.text.size()));
  for (const std::string_view link : {":", "=", "is "}) {
    if (!rest.starts_with(link)) continue;
    const Number loss = ReadNumber(LeftTrimmed(rest.substr(link.size())));
    if (!loss) return false;
    Progress progress;
    progress.format = "loss_at_step";
    SetStep(progress, step);
    SetLoss(progress, loss);
    progress.step_unit = unit->unit;
    out.emplace_back(progress);
    return true;
  }
  return false;
}

}  // namespace rankscope::logs
