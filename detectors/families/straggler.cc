// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// D3: one rank drags all others.
#include <cmath>

#include "detectors/families/curve.h"
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
  finding.values = {{"ratio", Number(std::round(100 * l.slow_ratio) / 100)},
                    {"identity", Percent(l.slow_identity)}};
  return finding;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (Finding starved = StarvedRank(f); starved.matched) return starved;
  if (Finding storage = RankOfSlowStorage(f); storage.matched) return storage;
  // The card's own numbers first: they are of the work itself, and calls are of what the host does.
  if (Finding card = OddCard(f); card.matched) return card;
  return LateRank(f);
}

RuledOut RuleOut(const JobFeatures& f) {
  if (f.world_size == 1) return Excluded("one rank has no peers");
  if (const features::Cause* primary = f.Primary())
    return Excluded("the run was ended by an event, not by slowness", {primary->evidence});
  const LaunchFeatures& l = f.launches;
  constexpr double kAlike = 1.05;
  if (Launches(f) && l.slow_rank >= 0 && l.slow_pieces >= 6 && l.slow_ratio < kAlike) {
    return NotSlow(f, proto::STORE_GPU,
                   "no rank's host comes late; a card that is slow itself is not in these calls",
                   l.peers_evidence);
  }
  features::EvidenceRef cited = features::kNoEvidence;
  if (const std::string by = CardsAlike(f, cited); !by.empty())
    return NotSlow(f, proto::STORE_NCCL, by, cited);
  return NotDecidable(proto::STORE_NCCL, NobodyStarved(f));
}

}  // namespace rankscope::families::straggler
