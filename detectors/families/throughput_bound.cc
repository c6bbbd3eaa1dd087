// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// D2: slow by storage, fabric or blocking launches.
#include <algorithm>

#include "detectors/families/curve.h"
#include "detectors/families/gpu_peers.h"
#include "detectors/families/launches.h"
#include "detectors/families/rows.h"
#include "detectors/families/save_storm.h"

namespace rankscope::families::throughput_bound {

using features::JobFeatures;
using features::LaunchFeatures;

namespace {

// One by one, small, and often: what the host waits for costs more than what it waits on.
bool SyncsAfterEachLaunch(const LaunchFeatures& l) {
  constexpr double kSyncs = 0.8;
  constexpr double kRate = 50;  // launches a second; fewer are large, and waiting costs nothing
  return l.syncs_per_launch >= kSyncs && l.launches >= kRate * l.window_seconds &&
         std::all_of(l.ranks.begin(), l.ranks.end(), [](const features::RankLaunches& rank) {
           return rank.syncs_per_launch >= kSyncs;
         });
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
    finding.cap = cap::kInferred;
    finding.shows = {l.launch_blocking_evidence};
  }
  finding.shows.push_back(l.calls_evidence);
  finding.root = finding.shows;
  Show(f.step_time_evidence, finding);
  finding.values = {{FieldId::kShare, l.launch_share + l.sync_share}};
  return finding;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (Finding storm = SaveStorm(f); storm.matched) return storm;
  if (Finding blocking = LaunchBlocking(f); blocking.matched) return blocking;
  return WaitingOnTheFabric(f);
}

RuledOut RuleOut(const JobFeatures& f) {
  if (const features::Cause* primary = f.Primary())
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "slowness"}});
  const LaunchFeatures& l = f.launches;
  if (Readable(f) && l.launches >= kLaunches && !l.launch_blocking && !SyncsAfterEachLaunch(l)) {
    return NotSlow(f, proto::STORE_NCCL, Reason::kLaunchesDoNotBlock, l.calls_evidence,
                   {{FieldId::kSyncs, l.syncs_per_launch}});
  }
  return NotDecidable(proto::STORE_NCCL);
}

}  // namespace rankscope::families::throughput_bound
