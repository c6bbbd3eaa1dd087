// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// D3: one rank drags all others.
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/gpu.h"
#include "detectors/families/gpu_peers.h"
#include "detectors/families/launches.h"
#include "detectors/families/rows.h"
#include "detectors/families/standstill.h"
#include "detectors/families/thread_causes.h"

namespace rankscope::families::straggler {

using features::JobFeatures;
using features::LaunchFeatures;

namespace {

bool HardlyWaits(const JobFeatures& f) {
  const features::Evidence* own = f.At(f.launches.slow_evidence);
  const features::Evidence* peers = f.At(f.launches.peers_evidence);
  return own != nullptr && peers != nullptr && own->observed && peers->observed &&
         *own->observed <= *peers->observed / 2;
}

Finding LateRank(const JobFeatures& f) {
  const LaunchFeatures& l = f.launches;
  constexpr double kRatio = 1.1;
  constexpr double kCollectives = 100;
  if (!Launches(f) || f.collectives.entered < kCollectives) return {};
  if (!ComesLate(l, kRatio) || !HardlyWaits(f)) return {};
  Finding finding = Slow(f, "host");
  finding.ranks = {l.slow_rank};
  finding.domain = proto::DOMAIN_UNKNOWN;
  finding.component = "host";
  finding.shows = finding.root = {l.slow_evidence, l.peers_evidence};
  Show(f.collectives.advance_evidence, finding);
  Show(f.step_time_evidence, finding);
  finding.values = {{FieldId::kRatio, l.slow_ratio}};
  return finding;
}

Finding Straggler(const JobFeatures& f) {
  if (Finding starved = StarvedRank(f); starved.matched) return starved;
  if (Finding storage = RankOfSlowStorage(f); storage.matched) return storage;
  // The GPU's own numbers first: they are of the work itself, and calls are of what the host does.
  if (Finding gpu = OddCard(f); gpu.matched) return gpu;
  if (Finding last = LastToArrive(f); last.matched) return last;
  return LateRank(f);
}

// A rank whose GPU is throttled comes late for that reason, and B3 says what is to be done.
bool IsThrottled(const JobFeatures& f, const Finding& finding) {
  return finding.ranks.size() == 1 && ThrottledGpuOf(f, finding.ranks.front()) != nullptr;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  Finding finding = Straggler(f);
  return finding.matched && IsThrottled(f, finding) ? Finding{} : finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (f.world_size == 1) return Excluded(Reason::kOneRank);
  if (const features::Cause* primary = f.Primary())
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "slowness"}});
  if (const Finding finding = Straggler(f); finding.matched && IsThrottled(f, finding))
    return Excluded(Reason::kOtherFamily, finding.root);
  const LaunchFeatures& l = f.launches;
  constexpr double kAlike = 1.05;
  if (Launches(f) && l.slow_rank >= 0 && l.slow_pieces >= 6 && l.slow_ratio < kAlike) {
    return NotSlow(f, proto::STORE_GPU, Reason::kHostsAlike, l.peers_evidence);
  }
  features::EvidenceRef cited = features::kNoEvidence;
  if (const FieldValues alike = CardsAlike(f, cited); !alike.empty())
    return NotSlow(f, proto::STORE_NCCL, Reason::kGpusAlike, cited, alike);
  const FieldValues starved = NobodyStarved(f);
  return NotDecidable(proto::STORE_NCCL, starved.empty() ? Reason::kNone : Reason::kNobodyStarved,
                      starved);
}

}  // namespace rankscope::families::straggler
