// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// D2's save_storm: a run that spends its time writing checkpoints. The kernel's count is of what
// the main thread of the rank that saves spends with a checkpoint open for writing: a save in a
// thread of its own stops nobody. Text tells how often, and where its lines have times, how long;
// what the cards did meanwhile says whether it mattered.
#include "detectors/families/save_storm.h"

#include <algorithm>
#include <cmath>

#include "detectors/families/curve.h"

namespace rankscope::families {
namespace {

using features::JobFeatures;

constexpr int64_t kFewSaves = 3;
constexpr double kStormShare = 0.2;
// A run's first saves come with its first steps: shorter, their share says nothing.
constexpr double kLeastSeconds = 60;

Finding Storm(const JobFeatures& f) {
  Finding finding;
  finding.matched = true;
  finding.sub = "save_storm";
  finding.tier = proto::TIER_S;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "checkpoint";
  finding.symptom = "slow";
  Show(f.step_time_evidence, finding);
  Show(f.last_progress_evidence, finding);
  return finding;
}

// By the kernel's account.
Finding CountedStorm(const JobFeatures& f) {
  const features::StorageFeatures& storage = f.storage;
  if (storage.saves < kFewSaves || storage.save_window_seconds < kLeastSeconds) return {};
  if (storage.save_share < kStormShare) return {};
  Finding finding = Storm(f);
  finding.onset = f.now - Seconds(storage.save_window_seconds);
  finding.shows.insert(finding.shows.begin(), storage.save_evidence);
  finding.root = {storage.save_evidence};
  finding.values = {{FieldId::kSaves, storage.saves},
                    {FieldId::kShare, storage.save_share},
                    {FieldId::kSaveSeconds, storage.save_seconds}};
  return finding;
}

// The engine of every card rests for half of the time and more.
bool CardsRest(const JobFeatures& f) {
  constexpr double kHalf = 0.5;
  return f.gpu.known() &&
         std::all_of(f.gpu.gpus.begin(), f.gpu.gpus.end(),
                     [](const features::RunGpu& gpu) { return gpu.busiest_minute <= kHalf; });
}

// By its own words: a save at nearly every step. That alone may cost nothing, of an adapter or in
// the background.
Finding ToldStorm(const JobFeatures& f) {
  const features::StorageFeatures& storage = f.storage;
  constexpr int64_t kSaves = 5;
  constexpr double kOften = 5, kNearlyEach = 2;  // steps
  constexpr double kSteps = 10;                  // fewer have no cadence
  if (f.Primary() != nullptr || storage.told_saves < kSaves) return {};
  if (storage.told_step <= kSteps || !(storage.told_interval <= kOften)) return {};
  const bool costs = storage.told_share >= kStormShare;
  const bool rest = CardsRest(f);
  // Whoever was watched and lost no time by it, lost none.
  if (!costs && !rest && (f.timed || storage.told_interval > kNearlyEach)) return {};
  if (!costs && rest && storage.told_interval > kNearlyEach) return {};
  Finding finding = Storm(f);
  finding.tier = costs && rest ? proto::TIER_C : costs || rest ? proto::TIER_S : proto::TIER_W;
  finding.cap = costs && rest ? cap::kInferred : cap::kOneSource;
  finding.shows.insert(finding.shows.begin(), storage.told_evidence);
  finding.root = {storage.told_evidence};
  if (rest) {
    for (const features::RunGpu& gpu : f.gpu.gpus) Show(gpu.activity_evidence, finding);
  }
  if (Learned(f)) ShowCurve(f, finding);
  finding.values = {{FieldId::kSaves, storage.told_saves},
                    {FieldId::kSaveInterval, storage.told_interval}};
  if (costs) finding.values.Set(FieldId::kShare, storage.told_share);
  return finding;
}

}  // namespace

bool HasSaved(const JobFeatures& f, int32_t rank, double seconds) {
  constexpr double kWritten = 1 << 20;  // more than a log
  const features::Evidence* const saved = f.At(f.storage.save_evidence);
  if (saved != nullptr && (f.now - saved->end).seconds() < seconds) {
    const std::vector<int32_t>& by = saved->ranks;
    if (by.empty() || std::find(by.begin(), by.end(), rank) != by.end()) return true;
  }
  return std::any_of(f.collectives.ranks.begin(), f.collectives.ranks.end(),
                     [rank](const features::RankCollectives& of) {
                       return of.rank == rank && of.written_bytes >= kWritten;
                     });
}

Finding SaveStorm(const JobFeatures& f) {
  if (Finding counted = CountedStorm(f); counted.matched) return counted;
  return ToldStorm(f);
}

}  // namespace rankscope::families
