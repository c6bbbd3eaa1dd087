// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/keras.h"

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

struct Bar {
  bool found = false;
  bool final = false;        // the bar is full, or there is none (verbose=2)
  std::string_view metrics;  // from the time on
};

bool AllDigits(std::string_view text) {
  for (const char c : text) {
    if (!IsDigit(c)) return false;
  }
  return !text.empty();
}

// The last bar of the line: where carriage returns were lost, all refreshes of an epoch stand on
// one line.
Bar ReadBar(std::string_view text) {
  const size_t loss = text.rfind("- loss: ");
  if (loss == std::string_view::npos) return {};
  Bar bar;
  // "74s - loss: 0.4" (verbose=2): nothing before the seconds.
  const std::string_view trimmed = LeftTrimmed(text);
  const Number seconds = ReadNumber(trimmed, Ending::kUnit);
  if (IsIndex(seconds) && trimmed.substr(seconds.text.size()).starts_with("s - ")) {
    return {true, true, trimmed};
  }
  // "i/n [" or "i/n ━" or "i/n - ": the last one before the loss.
  size_t slash = text.rfind('/', loss);
  while (slash != std::string_view::npos) {
    size_t begin = slash;
    while (begin > 0 && IsDigit(text[begin - 1])) --begin;
    size_t end = slash + 1;
    while (end < text.size() && IsDigit(text[end])) ++end;
    const std::string_view i = text.substr(begin, slash - begin);
    const std::string_view n = text.substr(slash + 1, end - slash - 1);
    if (!i.empty() && !n.empty() && text.substr(end).starts_with(' ')) {
      const std::string_view behind = text.substr(end + 1);
      if (behind.starts_with("[") || behind.starts_with("\xe2\x94\x81") ||
          behind.starts_with("- ")) {
        bar.found = true;
        bar.final = i == n && behind.find(" ETA: ") == std::string_view::npos;
        bar.metrics = behind;
        return bar;
      }
    }
    if (slash == 0) break;
    slash = text.rfind('/', slash - 1);
  }
  return {};
}

}  // namespace

bool ParseKeras(const CleanLine& line, RecordList& out) {
  const Bar bar = ReadBar(line.text);
  if (!bar.found) return false;
  const PairList pairs(bar.metrics);
  const Pair* loss = pairs.FindNamed("loss");
  if (loss == nullptr) return false;
  Progress progress;
  progress.format = "keras";
  SetLoss(progress, loss->value);
  for (const Pair& pair : pairs) {
    if (pair.unit.ends_with("/step"))
      progress.step_seconds = InSeconds(pair.value.value, pair.unit);
    if (KeyIs(pair.key, "lr") || KeyIs(pair.key, "learning_rate"))
      SetLearningRate(progress, pair.value);
  }
  out.emplace_back(progress);
  return true;
}

void KerasContext::Observe(std::string_view text) {
  text = Trimmed(text);
  if (!text.starts_with("Epoch ")) return;
  text.remove_prefix(6);
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash > 9 || text.size() > 20) return;
  if (!AllDigits(text.substr(0, slash)) || !AllDigits(text.substr(slash + 1))) return;
  // One epoch in all: somebody calls `fit` in a loop of his own, and the number says nothing.
  const bool alone = text == "1/1";
  epoch_ = alone ? std::string_view() : text.substr(0, slash);
  seen_ = open_ = true;
}

bool KerasContext::Complete(std::string_view text, Progress& progress) {
  if (seen_ && !open_) return false;
  const Bar bar = ReadBar(text);
  if (bar.final) {
    open_ = false;
    if (!epoch_.empty()) SetStep(progress, ReadNumber(epoch_));
    progress.step_unit = StepUnit::kEpochs;
  }
  if (!epoch_.empty()) progress.epoch = ReadNumber(epoch_).value;
  return true;
}

}  // namespace rankscope::logs
