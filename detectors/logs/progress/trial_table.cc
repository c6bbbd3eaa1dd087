// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/trial_table.h"

#include <algorithm>
#include <array>

#include "detectors/logs/progress/keys.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/number.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kBoxBar = "\xe2\x94\x82";
constexpr std::string_view kBoxRule = "\xe2\x94\x9c";  // what the rules of a box begin with
constexpr size_t kMaxColumns = 32;
constexpr size_t kMaxName = 128;

struct Cells {
  std::array<std::string_view, kMaxColumns> cell;
  size_t size = 0;
};

// The cells of "| a | b |" or of a box's "a   b" between its two bars; none in any other line.
Cells Split(std::string_view text, bool boxed) {
  Cells cells;
  const std::string_view bar = boxed ? kBoxBar : "|";
  text = Trimmed(text);
  if (!text.starts_with(bar) || !text.ends_with(bar) || text.size() < 2 * bar.size()) return {};
  text = Trimmed(text.substr(bar.size(), text.size() - 2 * bar.size()));
  const std::string_view between = boxed ? "  " : "|";
  while (cells.size < kMaxColumns) {
    const size_t end = std::min(text.find(between), text.size());
    cells.cell[cells.size++] = Trimmed(text.substr(0, end));
    if (end == text.size()) return cells;
    text = text.substr(end + between.size());
    if (boxed) text = LeftTrimmed(text);
  }
  return {};
}

// What a column holds. The configuration of a trial may stand in some: "lr".
Key KeyOf(std::string_view name) {
  if (name == "iter" || name == "training_iteration") return Key::kStep;
  const Key key = MeaningOf(name).key;
  const bool result = key == Key::kLoss || key == Key::kReward || key == Key::kElapsed;
  return result ? key : Key::kOther;
}

}  // namespace

void TrialTable::Observe(std::string_view text) {
  const std::string_view trimmed = Trimmed(text);
  const bool boxed = trimmed.starts_with(kBoxBar);
  const Cells cells = Split(trimmed, boxed);
  if (cells.size < 3 || cells.cell[0] != "Trial name" || cells.cell[1] != "status") return;
  std::string keys;
  std::array<bool, kKeys> seen{};
  for (size_t i = 0; i < cells.size; ++i) {
    const Key key = KeyOf(cells.cell[i]);
    bool& known = seen[static_cast<size_t>(key)];
    keys.push_back(static_cast<char>(known ? Key::kOther : key));
    known = true;
  }
  const auto has = [&seen](Key key) { return seen[static_cast<size_t>(key)]; };
  if (!has(Key::kStep) || (!has(Key::kLoss) && !has(Key::kReward))) return;
  keys_ = std::move(keys);
  boxed_ = boxed;
}

bool TrialTable::Feed(const CleanLine& line, RecordList& out) {
  const std::string_view text = Trimmed(line.text);
  if (text.starts_with("|--") || text.starts_with(kBoxRule)) return true;
  const Cells cells = Split(text, boxed_);
  if (cells.size != keys_.size()) {
    // A trial without a result has fewer cells in a box.
    if (boxed_ && cells.size > 1) return true;
    keys_.clear();
    return false;
  }
  if (cells.cell[1] != "RUNNING" && cells.cell[1] != "TERMINATED") return true;
  Progress progress;
  progress.format = "trial_table";
  for (size_t i = 2; i < cells.size; ++i) {
    const Number value = ReadNumber(cells.cell[i], Ending::kDelimiter, Thousands::kYes);
    if (!value) continue;
    const auto byte = static_cast<uint8_t>(keys_[i]);
    const Key key = byte < kKeys ? static_cast<Key>(byte) : Key::kOther;
    if (key == Key::kStep) {
      SetStep(progress, value);
    } else if (key == Key::kLoss) {
      SetLoss(progress, value);
    } else {
      SetFact(progress, key, value.value);
    }
  }
  const std::string_view name = cells.cell[0].substr(0, kMaxName);
  const bool told = !progress.loss_text.empty() || progress.reward == progress.reward;
  if (!told || !IsIndex({progress.step_text, progress.step})) return true;
  if (trial_.empty()) trial_ = name;
  if (name != trial_ || progress.step_text == step_) return true;
  step_ = progress.step_text.substr(0, kMaxName);
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
