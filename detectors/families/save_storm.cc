// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// D2's save_storm: a run that spends its time writing checkpoints. Counted is what the main thread
// of the rank that saves spends with a checkpoint open for writing: a save in a thread of its own
// stops nobody.
#include "detectors/families/curve.h"
#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

constexpr int64_t kFewSaves = 3;
constexpr double kStormShare = 0.2;
// A run's first saves come with its first steps: shorter, their share says nothing.
constexpr double kLeastSeconds = 60;

}  // namespace

Finding EvaluateSaveStorm(const features::JobFeatures& f) {
  const features::StorageFeatures& storage = f.storage;
  if (storage.saves < kFewSaves || storage.save_window_seconds < kLeastSeconds) return {};
  if (storage.save_share < kStormShare) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = "save_storm";
  finding.tier = proto::TIER_S;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "checkpoint";
  finding.symptom = "slow";
  finding.onset = f.now - Seconds(storage.save_window_seconds);
  Show(storage.save_evidence, finding);
  finding.root = finding.shows;
  Show(f.step_time_evidence, finding);
  Show(f.last_progress_evidence, finding);
  finding.values = {{"saves", Number(static_cast<double>(storage.saves))},
                    {"share", Number(100 * storage.save_share)},
                    {"seconds", Number(storage.save_seconds)}};
  return finding;
}

}  // namespace rankscope::families
