// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// D1: the GPU waits for its input.
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/gpu.h"
#include "detectors/families/launches.h"
#include "detectors/families/rows.h"

namespace rankscope::families::gpu_underutilized {

using features::JobFeatures;
using features::LaunchFeatures;

namespace {

constexpr double kLongWindow = 290;  // a whole window of 300 s, less what a piece may lack

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (Finding idling = IdlingCards(f); idling.matched) return idling;
  const LaunchFeatures& l = f.launches;
  // The first minutes compile and fill caches; a whole window past them decides.
  // Pauses between launches are seen only where each launch is counted.
  if (!Readable(f) || !l.exact) return {};
  if (l.window_seconds < kLongWindow || l.launches < kLaunches / 10) return {};
  if (f.steps_known && f.steps < 50) return {};
  if (f.phase == proto::PHASE_SAVE || f.phase == proto::PHASE_EVAL) return {};
  constexpr double kIdle = 0.8;
  constexpr int32_t kStalls = 3;
  const bool idle = l.host_share >= kIdle;
  if (!idle && l.stalls < kStalls) return {};
  // The driver says that the cards are at work: hosts that run ahead of them block in no call.
  features::EvidenceRef cited = features::kNoEvidence;
  if (double share = 0; f.running && CardsAreBusy(f, share, cited)) return {};
  // One rank that starves is a straggler.
  if (ComesLate(l, 1.1)) return {};
  constexpr double kOneCore = 0.8;
  const bool busy = std::isfinite(l.cpu_share) && l.cpu_share >= kOneCore;
  Finding finding = Slow(f, idle && busy ? "host_bound" : "starved");
  if (!idle) finding.cap = cap::kLookalike;
  finding.component = busy ? "host" : "input";
  finding.shows = finding.root = {l.calls_evidence};
  Show(f.step_time_evidence, finding);
  Show(f.last_progress_evidence, finding);
  finding.values = {{FieldId::kShare, l.host_share}};
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (const features::Cause* primary = f.Primary())
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "slowness"}});
  features::EvidenceRef cited = features::kNoEvidence;
  if (double share = 0; f.running && CardsAreBusy(f, share, cited))
    return Excluded(Reason::kGpusBusy, {cited}, {{FieldId::kEngine, share}});
  const LaunchFeatures& l = f.launches;
  constexpr double kHalf = 0.5;
  if (Readable(f) && l.exact && l.launches > 0 && l.host_share < kHalf && l.stalls == 0) {
    return Excluded(Reason::kRanksFeedGpus, {l.calls_evidence},
                    {{FieldId::kShare, 1 - l.host_share}});
  }
  return NotDecidable(proto::STORE_GPU);
}

}  // namespace rankscope::families::gpu_underutilized
