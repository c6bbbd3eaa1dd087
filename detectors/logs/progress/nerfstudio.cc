// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// "9 m, 1 s", "2 h, 41 m, 10 s": what is left, in a column of its own.
bool IsRemaining(std::string_view cell) {
  bool minutes = false;
  while (!cell.empty()) {
    const size_t comma = cell.find(", ");
    const std::string_view part = cell.substr(0, comma);
    const size_t blank = part.find(' ');
    if (blank == std::string_view::npos || !IsIndex(WholeNumber(part.substr(0, blank))))
      return false;
    const std::string_view unit = part.substr(blank + 1);
    if (unit != "d" && unit != "h" && unit != "m" && unit != "s") return false;
    minutes = minutes || unit == "m";
    if (comma == std::string_view::npos) return minutes && unit == "s";
    cell.remove_prefix(comma + 2);
  }
  return false;
}

}  // namespace

// "2990 (9.97%)        282 K                23.339 ms            9 m, 1 s             176 K": the
// step, its share of the run, the time of an iteration, what is left (nerfstudio, utils/writer.py).
// It prints no loss.
bool ParseNerfstudio(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kShareEnd = "%) ";
  std::string_view text = line.text;
  const Number step = ReadNumber(text);
  if (!IsIndex(step) || !text.substr(step.text.size()).starts_with(" (")) return false;
  text.remove_prefix(step.text.size() + 2);
  const Number share = ReadNumber(text, Ending::kUnit);
  if (!share || !text.substr(share.text.size()).starts_with(kShareEnd)) return false;
  text = LeftTrimmed(text.substr(share.text.size() + kShareEnd.size()));
  Progress progress;
  progress.format = "nerfstudio";
  SetStep(progress, step);
  bool remaining = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find("  "), text.size());
    const std::string_view cell = text.substr(0, end);
    text = LeftTrimmed(text.substr(end));
    const Number value = ReadNumber(cell);
    if (value && cell.substr(value.text.size()) == " ms")
      progress.step_seconds = value.value / 1000;
    if (value && cell.substr(value.text.size()) == " s") progress.step_seconds = value.value;
    remaining = remaining || IsRemaining(cell);
  }
  if (!remaining || progress.step_seconds != progress.step_seconds) return false;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
