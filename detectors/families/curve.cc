// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/curve.h"

#include <algorithm>
#include <cmath>

namespace rankscope::families {

using features::EvidenceRef;
using features::JobFeatures;
using features::kNoEvidence;

bool Learned(const JobFeatures& f) {
  const features::LossFeatures& loss = f.loss;
  if (loss.points < kShapePoints || loss.trailing_nonfinite > 0) return false;
  const double noise = std::max({loss.noise, loss.swing, 0.002 * std::abs(loss.start)});
  return loss.end < loss.start - noise && loss.slope_per_point < 0 && loss.trend_z < -kTrendZ;
}

bool RewardHolds(const JobFeatures& f) {
  constexpr int64_t kRecords = 20;
  constexpr double kMayFall = 0.1;
  const features::RewardFeatures& reward = f.reward;
  if (!f.reward_objective || reward.records < kRecords) return false;
  if (!std::isfinite(reward.first) || !std::isfinite(reward.last)) return false;
  const double size = std::max(std::abs(reward.first), std::abs(reward.best));
  return reward.last >= reward.first - kMayFall * size;
}

bool SpeaksAgainstLearning(const JobFeatures& f) {
  constexpr double kRise = 1.5;
  const features::LossFeatures& loss = f.loss;
  if (f.progress == 0 && f.metric.trailing_nonfinite > 0) return true;
  if (!LossMustFall(f) || loss.points < 2) return false;
  if (!std::isfinite(loss.end) || loss.trailing_nonfinite > 0) return true;
  if (loss.start > 0 && loss.end > kRise * loss.start) return true;
  // A loss that is printed as zero from its first records on, and now and then is not.
  constexpr double kZero = 1e-12;
  return std::abs(loss.start) < kZero && std::abs(loss.end) < kZero && loss.highest > 0;
}

void Show(EvidenceRef ref, Finding& finding) {
  if (ref == kNoEvidence) return;
  if (std::find(finding.shows.begin(), finding.shows.end(), ref) != finding.shows.end()) return;
  finding.shows.push_back(ref);
}

void ShowCurve(const JobFeatures& f, Finding& finding) {
  Show(f.loss.start_evidence, finding);
  Show(f.loss.end_evidence, finding);
}

void ShowLeave(const JobFeatures& f, Finding& finding) {
  const features::LeaveFeatures& leave = f.leave;
  for (const EvidenceRef ref : {leave.evaluation, leave.save, leave.train_result, leave.result,
                                leave.done, leave.failure, leave.last_line}) {
    // The same line may be several landmarks; one quote of it is enough.
    const features::Evidence* evidence = f.At(ref);
    if (evidence == nullptr) continue;
    const bool quoted =
        std::any_of(finding.shows.begin(), finding.shows.end(), [&](const EvidenceRef shown) {
          const features::Evidence* other = f.At(shown);
          return other != nullptr && other->offset == evidence->offset && other->offset >= 0 &&
                 other->stream == evidence->stream;
        });
    if (!quoted) finding.shows.push_back(ref);
  }
}

}  // namespace rankscope::families
