// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a recording, with all that is missing in it, holds what tells its fault from others.

#include <algorithm>
#include <array>

#include "tests/generator/disturbances.h"

namespace rankscope::generator {
namespace {

constexpr int kReadings = 30;  // half a minute of them
constexpr int kRecordsOfATrend = 12;
constexpr int kSavesOfAStorm = 3;

struct Seen {
  int faults = 0, records = 0, text = 0, saves = 0, ends = 0;
  int gpu = 0, units = 0, calls = 0, collectives = 0, waits = 0;
};

bool Holds(const SampleBatch& batch, SignalId signal) {
  return std::any_of(batch.samples.begin(), batch.samples.end(),
                     [signal](const Sample& sample) { return sample.signal == signal; });
}

void Count(const Item& item, bool since_onset, Seen& seen) {
  seen.faults += item.mark == Mark::kFault;
  seen.ends += item.mark == Mark::kEnd;
  seen.saves += item.mark == Mark::kSave;
  if (item.mark == Mark::kRecord) {
    ++seen.text;
    seen.records += since_onset;
  }
  const auto* const batch = std::get_if<SampleBatch>(&item.observation.kind);
  if (batch == nullptr || !since_onset) return;
  if (item.source == Source::kNvml) {
    ++seen.gpu;
    seen.units += Holds(*batch, SignalId::kSmActivity);
  }
  seen.calls += Holds(*batch, SignalId::kSyncCalls);
  seen.collectives += Holds(*batch, SignalId::kCollectivesEnqueued);
  seen.waits += item.source == Source::kWait;
}

bool IsThere(Witness witness, const Seen& seen, const Truth& truth) {
  switch (witness) {
    case Witness::kFault:
      return seen.faults > 0;
    case Witness::kRecords:
      return seen.records >= kRecordsOfATrend;
    case Witness::kText:
      return seen.text > 0;
    case Witness::kSaves:
      return seen.saves >= kSavesOfAStorm;
    case Witness::kEnd:
      return seen.ends > 0;
    case Witness::kGpu:
      return seen.gpu >= kReadings;
    case Witness::kUnits:
      return seen.units >= kReadings;
    case Witness::kCalls:
      return seen.calls >= kReadings;
    case Witness::kCollectives:
      return seen.collectives >= kReadings;
    case Witness::kWaits:
      return seen.waits >= kReadings;
    case Witness::kCulprit:
      return truth.culprit_seen;
  }
  return false;
}

}  // namespace

bool IsDecidable(const std::vector<std::vector<Witness>>& decided_by, const Truth& truth,
                 const std::vector<Item>& items) {
  Seen seen;
  for (const Item& item : items) Count(item, item.t >= truth.onset, seen);
  return std::any_of(decided_by.begin(), decided_by.end(), [&](const auto& all) {
    return std::all_of(all.begin(), all.end(),
                       [&](Witness one) { return IsThere(one, seen, truth); });
  });
}

}  // namespace rankscope::generator
