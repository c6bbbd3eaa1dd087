// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X14: garbage collection and other pauses of the host process. That nothing was observed for a
// while is no pause of the node: the kernel's count of the ranks' CPU time must have stood still,
// too.
#include <algorithm>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/families/slow_rank.h"

namespace rankscope::families::host_pause {

using features::JobFeatures;
using features::RankWait;

Finding Evaluate(const JobFeatures& f) {
  if (!Watched(f)) return {};
  Finding finding;
  constexpr double kPauseSeconds = 10, kRecentSeconds = 60;
  if (f.waits.gap_seconds >= kPauseSeconds && f.waits.gap_age_seconds < kRecentSeconds) {
    finding.sub = "host";
    finding.of_gap = true;
    // The kernel's count of CPU time, and the time that the job took for the step.
    finding.tier = f.waits.gap_printed ? proto::TIER_C : proto::TIER_S;
    if (f.waits.gap_printed) finding.cap = cap::kInferred;
    finding.domain = proto::DOMAIN_INFRASTRUCTURE;
    finding.shows = {f.waits.gap_evidence};
    Show(f.waits.gap_step_evidence, finding);
    finding.values = {{FieldId::kSeconds, f.waits.gap_seconds}};
    finding.onset = f.now - Seconds(f.waits.gap_age_seconds + f.waits.gap_seconds);
  } else {
    const auto collects =
        std::find_if(f.waits.ranks.begin(), f.waits.ranks.end(), [](const RankWait& rank) {
          return rank.cause == features::StackCause::kGarbageCollection && rank.silent_share >= 0.9;
        });
    if (collects == f.waits.ranks.end() || f.silence_seconds < kPauseSeconds) return {};
    finding.sub = "gc";
    finding.tier = proto::TIER_S;
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.ranks = {collects->rank};
    Show(collects->snapshot_evidence, finding);
    finding.values = {{FieldId::kSeconds, f.silence_seconds}};
    finding.onset = f.now - Seconds(f.silence_seconds);
  }
  finding.matched = true;
  if (finding.tier != proto::TIER_C) finding.cap = cap::kOneSource;
  finding.root = finding.shows;
  finding.component = "host";
  finding.symptom = "slow";
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (const features::Cause* primary = f.Primary())
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "slowness"}});
  if (Watched(f)) {
    return NotDecidable(proto::STORE_CUDA, Reason::kNoHostPause);
  }
  return NotDecidable(proto::STORE_KERNEL);
}

}  // namespace rankscope::families::host_pause
