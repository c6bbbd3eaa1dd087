// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// D1, D2 and D3 as far as calls into CUDA decide them: the host keeps the card waiting, every
// launch waits for the one before, one rank comes late to every step. What happens on the card
// itself is not in these calls.
#include <algorithm>
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/gpu.h"
#include "detectors/families/gpu_peers.h"
#include "detectors/families/rows.h"
#include "detectors/families/standstill.h"
#include "detectors/families/thread_causes.h"

namespace rankscope::families {
namespace {

using features::JobFeatures;
using features::LaunchFeatures;

constexpr double kWindowSeconds = 60;  // of complete pieces, at least
constexpr double kLongWindow = 290;    // a whole window of 300 s, less what a piece may lack
constexpr double kLaunches = 1000;     // in the window
constexpr double kStillLaunches = 60;  // seconds: else it does not run at all

// The run goes on or ended well, and launches.
bool Launches(const JobFeatures& f) {
  if (f.Primary() != nullptr || (f.exit_known && f.exit_code != 0)) return false;
  return f.store(proto::STORE_CUDA) == Availability::kUp &&
         f.launches.seconds_since_launch < kStillLaunches;
}

// And was looked at for long enough.
bool Readable(const JobFeatures& f) {
  return Launches(f) && f.launches.window_seconds >= kWindowSeconds;
}

Finding Slow(const JobFeatures& f, std::string_view sub) {
  Finding finding;
  finding.matched = true;
  finding.sub = sub;
  finding.tier = proto::TIER_S;
  finding.cap = 0.65;
  finding.symptom = "slow";
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.onset = f.now - Seconds(f.launches.window_seconds);
  return finding;
}

RuledOut NotSlow(const JobFeatures& f, proto::Store needs, std::string by,
                 features::EvidenceRef evidence) {
  RuledOut out = NotDecidable(needs, by);
  if (evidence != features::kNoEvidence && f.At(evidence) != nullptr) out.evidence = {evidence};
  return out;
}

std::string Percent(double share) {
  return Number(std::round(100 * share)) + " %";
}

// One by one, small, and often: what the host waits for costs more than what it waits on.
bool SyncsAfterEachLaunch(const LaunchFeatures& l) {
  constexpr double kSyncs = 0.8;
  constexpr double kRate = 50;  // launches a second; fewer are large, and waiting costs nothing
  return l.syncs_per_launch >= kSyncs && l.launches >= kRate * l.window_seconds &&
         std::all_of(l.ranks.begin(), l.ranks.end(), [](const features::RankLaunches& rank) {
           return rank.syncs_per_launch >= kSyncs;
         });
}

// Waits clearly less than its peers, in most pieces, and hardly ever for anything itself: a host
// that is merely busier than the others while its card works still waits for its card.
bool ComesLate(const LaunchFeatures& l, double ratio) {
  constexpr double kIdentity = 0.6;
  constexpr double kZ = 5;
  constexpr int32_t kPieces = 6;
  return l.slow_rank >= 0 && l.slow_pieces >= kPieces && l.slow_ratio >= ratio && l.slow_z >= kZ &&
         l.slow_identity >= kIdentity;
}

bool HardlyWaits(const JobFeatures& f) {
  const features::Evidence* own = f.At(f.launches.slow_evidence);
  const features::Evidence* peers = f.At(f.launches.peers_evidence);
  return own != nullptr && peers != nullptr && own->observed && peers->observed &&
         *own->observed <= *peers->observed / 2;
}

Finding LaunchBlocking(const JobFeatures& f) {
  const LaunchFeatures& l = f.launches;
  if (!Readable(f) || l.launches < kLaunches) return {};
  constexpr double kCost = 0.3;  // of the wall, inside launches and what waits for them
  const bool costs = l.launch_share + l.sync_share >= kCost;
  const bool each = SyncsAfterEachLaunch(l);
  if (!costs || (!l.launch_blocking && !each)) return {};
  Finding finding = Slow(f, "launch_blocking");
  finding.component = "host";
  if (l.launch_blocking) {
    // The setting, and what it does.
    finding.tier = proto::TIER_C;
    finding.cap = 0.85;
    finding.shows = {l.launch_blocking_evidence};
  }
  finding.shows.push_back(l.calls_evidence);
  finding.root = finding.shows;
  Show(f.step_time_evidence, finding);
  finding.values = {{"share", Percent(l.launch_share + l.sync_share)}};
  return finding;
}

}  // namespace

Finding EvaluateD1(const JobFeatures& f) {
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
  // One rank that starves is a straggler.
  if (ComesLate(l, 1.1)) return {};
  constexpr double kOneCore = 0.8;
  const bool busy = std::isfinite(l.cpu_share) && l.cpu_share >= kOneCore;
  Finding finding = Slow(f, idle && busy ? "host_bound" : "starved");
  if (!idle) finding.cap = 0.55;
  finding.component = busy ? "host" : "input";
  finding.shows = finding.root = {l.calls_evidence};
  Show(f.step_time_evidence, finding);
  Show(f.last_progress_evidence, finding);
  finding.values = {{"share", Percent(l.host_share)}, {"stalls", std::to_string(l.stalls)}};
  return finding;
}

RuledOut RuleOutD1(const JobFeatures& f) {
  if (const features::Cause* primary = f.Primary())
    return Excluded("the run was ended by an event, not by slowness", {primary->evidence});
  std::string busy;
  features::EvidenceRef cited = features::kNoEvidence;
  if (f.running && CardsAreBusy(f, busy, cited)) return Excluded(busy, {cited});
  const LaunchFeatures& l = f.launches;
  constexpr double kHalf = 0.5;
  if (Readable(f) && l.exact && l.launches > 0 && l.host_share < kHalf && l.stalls == 0) {
    return Excluded("ranks spend " + Percent(1 - l.host_share) +
                        " of the wall in calls that wait for the card or feed it",
                    {l.calls_evidence});
  }
  return NotDecidable(proto::STORE_GPU);
}

Finding EvaluateD2(const JobFeatures& f) {
  if (Finding storm = EvaluateSaveStorm(f); storm.matched) return storm;
  if (Finding blocking = LaunchBlocking(f); blocking.matched) return blocking;
  return WaitingOnTheFabric(f);
}

RuledOut RuleOutD2(const JobFeatures& f) {
  if (const features::Cause* primary = f.Primary())
    return Excluded("the run was ended by an event, not by slowness", {primary->evidence});
  const LaunchFeatures& l = f.launches;
  if (Readable(f) && l.launches >= kLaunches && !l.launch_blocking && !SyncsAfterEachLaunch(l)) {
    return NotSlow(
        f, proto::STORE_NCCL,
        "launches do not block: " + Number(l.syncs_per_launch) + " synchronisations per launch",
        l.calls_evidence);
  }
  return NotDecidable(proto::STORE_NCCL);
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

Finding EvaluateD3(const JobFeatures& f) {
  if (Finding starved = StarvedRank(f); starved.matched) return starved;
  if (Finding storage = RankOfSlowStorage(f); storage.matched) return storage;
  // The card's own numbers first: they are of the work itself, and calls are of what the host does.
  if (Finding card = OddCard(f); card.matched) return card;
  return LateRank(f);
}

RuledOut RuleOutD3(const JobFeatures& f) {
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

}  // namespace rankscope::families
