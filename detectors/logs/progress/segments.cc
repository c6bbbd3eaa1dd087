// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/segments.h"

#include <cstring>

#include "detectors/logs/progress/keys.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// Forks print several losses; a multi-token or a load-balancing loss is none of these.
constexpr std::string_view kLosses[] = {
    "lm_loss",    "reduced_train_loss", "loss",       "mlm_loss",
    "train_loss", "training_loss",      "total_loss", "sft_loss"};
constexpr int kNoLoss = 1 << 10;

int LossRank(std::string_view key) {
  if (key.size() < 4 || (key.back() | 0x20) != 's') return kNoLoss;
  int rank = 0;
  for (const std::string_view name : kLosses) {
    if (KeyIs(key, name)) return rank;
    ++rank;
  }
  return kNoLoss;
}

// GPT-NeoX scales its figure: "93.5TFLOPS", "1.2PFLOPS".
double InTera(double value, std::string_view unit) {
  if (unit.starts_with("P")) return value * 1e3;
  if (unit.starts_with("G")) return value / 1000;
  return value;
}

// Which of a line's keys were seen: what a key means may depend on those before it.
struct Seen {
  int loss_rank = kNoLoss;
  bool grad_norm = false;
};

// What the number of this key is; kOther where it is not kept.
Key Choose(std::string_view key, Seen& seen) {
  if (const int rank = LossRank(key); rank != kNoLoss) {
    if (rank > seen.loss_rank) return Key::kOther;
    seen.loss_rank = rank;
    return Key::kLoss;
  }
  const Meaning meaning = MeaningOf(key);
  switch (meaning.key) {
    case Key::kLoss:
      return Key::kOther;
    case Key::kLearningRate:
      return meaning.rank <= 1 ? meaning.key : Key::kOther;
    case Key::kGradNorm: {
      const bool taken = meaning.rank == 0 || !seen.grad_norm;
      seen.grad_norm = true;
      return taken ? meaning.key : Key::kOther;
    }
    case Key::kStep:  // "global_step"
      return meaning.rank == 0 ? meaning.key : Key::kOther;
    default:
      return meaning.key;
  }
}

void Take(Key key, const Number& value, std::string_view unit, Progress& progress) {
  switch (key) {
    case Key::kLoss:
      return SetLoss(progress, value);
    case Key::kLearningRate:
      return SetLearningRate(progress, value);
    case Key::kGradNorm:
      return SetGradNorm(progress, value);
    case Key::kStep:
      return SetStep(progress, value);
    case Key::kTflops:
      progress.tflops = InTera(value.value, unit);
      return;
    default:
      SetFact(progress, key, value.value, unit);
  }
}

}  // namespace

bool NextSegment(std::string_view& rest, Segment& segment) {
  while (!rest.empty()) {
    const size_t bar = rest.find('|');
    const std::string_view part = Trimmed(rest.substr(0, bar));
    rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
    const size_t colon = part.find(": ");
    if (colon == std::string_view::npos) continue;
    segment = {Trimmed(part.substr(0, colon)), Trimmed(part.substr(colon + 2))};
    return true;
  }
  return false;
}

bool ReadIteration(std::string_view text, Number& step, Number& total) {
  text = LeftTrimmed(text);
  if (!text.starts_with("iteration")) return false;
  text = LeftTrimmed(text.substr(9));
  step = ReadNumber(text);
  if (!IsIndex(step)) return false;
  text.remove_prefix(step.text.size());
  if (!text.starts_with('/')) return false;
  total = ReadNumber(LeftTrimmed(text.substr(1)));
  return IsIndex(total);
}

void TakeSegments(std::string_view rest, Progress& progress) {
  Seen seen;
  Segment segment;
  while (NextSegment(rest, segment)) {
    const Number value = ReadNumber(segment.value, Ending::kUnit);
    if (!value) continue;
    const std::string_view unit = segment.value.substr(value.text.size());
    Take(Choose(segment.key, seen), value, LeftTrimmed(unit), progress);
  }
}

bool ReadPlainSegments(std::string_view rest, PlainItems& out) {
  Seen seen;
  size_t i = 0;
  const size_t size = rest.size();
  while (true) {
    while (i < size && rest[i] == ' ') ++i;
    if (i == size) return true;
    const void* found = std::memchr(rest.data() + i, ':', size - i);
    if (found == nullptr) return false;
    const auto colon = static_cast<size_t>(static_cast<const char*>(found) - rest.data());
    const std::string_view key = rest.substr(i, colon - i);
    i = colon + 1;
    if (i == size || rest[i] != ' ') return false;
    while (i < size && rest[i] == ' ') ++i;
    const Number value = ReadDecimal(rest.substr(i));
    if (!value) return false;
    i += value.text.size();
    while (i < size && rest[i] == ' ') ++i;
    if (i < size && rest[i++] != '|') return false;
    for (const char c : key) {
      if (!IsWordByte(c) && std::string_view(" ()/-").find(c) == std::string_view::npos)
        return false;
    }
    if (!out.Add(value, Choose(key, seen))) return false;
  }
}

}  // namespace rankscope::logs
