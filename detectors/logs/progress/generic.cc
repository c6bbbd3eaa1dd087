// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

// Where a record is in a program that counts no steps: "12% | loss", "tokens: 6.5M", "12800 samples
// seen". It stands first in the line.
bool BeginsWithPosition(const PairList& pairs) {
  constexpr int kMaxStrayWords = 3;
  constexpr size_t kMaxBracket = 4;  // "[  2.5%] "
  constexpr std::string_view kShares[] = {"", "train", "training", "progress", "done", "complete"};
  constexpr std::string_view kCounted[] = {"samples", "tokens", "examples", "sequences"};
  constexpr std::string_view kFractions[] = {"progress", "fraction"};
  if (pairs.size() < 2 || pairs[0].at > kMaxBracket || pairs.stray_words() > kMaxStrayWords)
    return false;
  const Pair& first = pairs[0];
  const auto among = [](const auto& names, std::string_view word) {
    return std::any_of(std::begin(names), std::end(names),
                       [word](std::string_view name) { return KeyIs(word, name); });
  };
  if (first.meaning.key == Key::kConsumedSamples || first.meaning.key == Key::kConsumedTokens)
    return true;
  if (first.meaning.key == Key::kEpoch) return !IsIndex(first.value) && first.value.value >= 0;
  if (first.percent) return among(kShares, first.key);
  if (among(kFractions, first.key)) return first.value.value >= 0 && first.value.value <= 1;
  return among(kCounted, first.key) || (first.key.empty() && among(kCounted, first.unit));
}

// What the line calls its loss. A bound of the evidence may be printed with either sign, so that
// only its not being a number tells something.
const Pair* TakeObjective(const PairList& pairs, Progress& progress) {
  const Pair* loss = pairs.Find(Key::kLoss);
  if (loss == nullptr) loss = pairs.Find(Key::kObjective);
  if (loss == nullptr) loss = pairs.Find(Key::kBound);
  if (loss == nullptr) return nullptr;
  if (loss->meaning.key != Key::kBound || !std::isfinite(loss->value.value))
    SetLoss(progress, loss->value);
  return loss;
}

}  // namespace

// Any line with an index and a training loss near each other. Weak evidence: whoever uses it looks
// at several records.
bool ParseGeneric(const CleanLine& line, RecordList& out) {
  constexpr size_t kMaxLine = 2048;   // a configuration dump is longer
  constexpr int kMaxStrayWords = 12;  // prose beyond that is not a record
  constexpr size_t kMaxDistance = 200;
  if (line.text.size() > kMaxLine) return false;
  const std::string_view text = StripLoggerPrefix(line.text);
  const PairList pairs(text);
  if (pairs.stray_words() > kMaxStrayWords || pairs.speaks_of_evaluation() ||
      pairs.Find(Key::kForeignLoss)) {
    return false;
  }
  Progress progress;
  progress.format = "generic";
  progress.generic = true;
  const Pair* loss = TakeObjective(pairs, progress);
  if (loss == nullptr) return false;
  const Pair* index = pairs.Find(Key::kStep);
  const bool by_epoch = index == nullptr;
  if (by_epoch) index = pairs.Find(Key::kEpoch);
  const bool rounded = index != nullptr && IsRounded(*index);
  const bool fraction = by_epoch && index != nullptr && !IsIndex(index->value);
  if (rounded || ((index == nullptr || fraction) && BeginsWithPosition(pairs))) {
    FillFromPairs(pairs, progress);
    out.emplace_back(progress);
    return true;
  }
  if (index == nullptr || !IsIndex(index->value)) return false;
  // The step of a bar stands in the bar, not in the epoch before it.
  if (by_epoch && text.find("%|") != std::string_view::npos) return false;
  const size_t distance = loss->at > index->at ? loss->at - index->at : index->at - loss->at;
  if (distance > kMaxDistance) return false;
  FillFromPairs(pairs, progress);
  SetStep(progress, index->value);
  if (by_epoch) progress.step_unit = StepUnit::kEpochs;
  if (!by_epoch && index->total && !pairs.Find(Key::kEpoch))
    progress.total_steps = index->total.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
