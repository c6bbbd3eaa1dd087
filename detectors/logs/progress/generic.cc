// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {

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
  const Pair* loss = pairs.Find(Key::kLoss);
  if (loss == nullptr) return false;
  const Pair* index = pairs.Find(Key::kStep);
  const bool by_epoch = index == nullptr;
  if (by_epoch) index = pairs.Find(Key::kEpoch);
  if (index == nullptr || !IsIndex(index->value)) return false;
  const size_t distance = loss->at > index->at ? loss->at - index->at : index->at - loss->at;
  if (distance > kMaxDistance) return false;
  Progress progress;
  progress.format = "generic";
  progress.generic = true;
  FillFromPairs(pairs, progress);
  SetStep(progress, index->value);
  SetLoss(progress, loss->value);
  if (!by_epoch && index->total && !pairs.Find(Key::kEpoch))
    progress.total_steps = index->total.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
