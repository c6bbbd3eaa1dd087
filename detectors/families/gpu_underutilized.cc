// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// D1: the GPU waits for its input.
#include <algorithm>
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/gpu.h"
#include "detectors/families/launches.h"
#include "detectors/families/rows.h"

namespace rankscope::families::gpu_underutilized {

using features::JobFeatures;
using features::kNoEvidence;
using features::LaunchFeatures;

namespace {

constexpr double kLongWindow = 290;  // a whole window of 300 s, less what a piece may lack

// For most of the time hosts are in no call and on no CPU, and nothing of it is a file that they
// write or read themselves: they wait for somebody who hands them their input.
bool WaitsForInput(const JobFeatures& f) {
  constexpr double kHalf = 0.5, kRuns = 0.3, kFiles = 0.3;
  return f.launches.host_share >= kHalf && f.waits.known() &&
         std::all_of(f.waits.ranks.begin(), f.waits.ranks.end(),
                     [](const features::RankWait& rank) {
                       return rank.window_seconds > 0 && rank.window_running_share <= kRuns &&
                              rank.storage.share <= kFiles;
                     });
}

// Pauses come to little where they are collections of garbage, and a save pauses as well. Who waits
// for its input uses no CPU meanwhile.
bool PausesForInput(const JobFeatures& f) {
  constexpr int32_t kPauses = 3;
  constexpr double kShare = 0.3, kHalf = 0.5, kRuns = 0.8;
  const LaunchFeatures& l = f.launches;
  if (l.stalls < kPauses || l.stall_seconds < kShare * l.window_seconds) return false;
  const double share = l.stall_seconds / l.window_seconds;
  if (std::fmax(f.storage.save_share, f.storage.told_share) >= kHalf * share) return false;
  return std::all_of(f.waits.ranks.begin(), f.waits.ranks.end(),
                     [](const features::RankWait& rank) {
                       return rank.window_seconds <= 0 || rank.window_running_share <= kRuns;
                     });
}

// Several ranks do the same work between any two pauses, and enter as many collectives: no user,
// and nobody who asks a server, makes them do that.
bool TakesTurns(const JobFeatures& f) {
  if (!f.launches.in_turns || f.world_size <= 1 || f.gpu.interactive) return false;
  if (f.store(proto::STORE_NCCL) != Availability::kUp || f.collectives.entered <= 0) return false;
  constexpr double kLate = 0.02;
  return std::all_of(f.collectives.ranks.begin(), f.collectives.ranks.end(),
                     [&f](const features::RankCollectives& rank) {
                       return rank.entered >= (1 - kLate) * f.collectives.entered;
                     });
}

// It launches, or stands as it is used to between two turns.
bool Launching(const JobFeatures& f) {
  if (Readable(f)) return true;
  constexpr double kWindow = 60, kUsual = 1.5;
  if (!f.running || f.Primary() != nullptr || !TakesTurns(f)) return false;
  double pause = 0;
  for (const features::RankLaunches& rank : f.launches.ranks)
    pause = std::max(pause, rank.longest_pause);
  return f.store(proto::STORE_CUDA) == Availability::kUp && f.launches.window_seconds >= kWindow &&
         f.launches.seconds_since_launch < kUsual * pause;
}

// Nobody prints steps, and most of the idle time is a few long pauses: a notebook, or whoever else
// waits for a user. A loop that waits for its input does so in each turn.
bool MayWaitForAUser(const JobFeatures& f) {
  constexpr int32_t kTurns = 30;  // of 300 s: no user answers more often
  constexpr double kHalf = 0.5;
  const LaunchFeatures& l = f.launches;
  return !f.steps_known && l.stalls < kTurns &&
         l.stall_seconds >= kHalf * l.host_share * l.window_seconds;
}

// Most of the idle time is a pause or two, far longer than the time between two records: something
// happened (an evaluation, a server that did not answer), and before and after it the GPU works.
bool StoodOnce(const JobFeatures& f) {
  constexpr int32_t kOften = 3;
  constexpr double kHalf = 0.5, kIntervals = 3;
  const LaunchFeatures& l = f.launches;
  return l.stalls > 0 && l.stalls < kOften &&
         l.stall_seconds >= kHalf * l.host_share * l.window_seconds &&
         l.stall_seconds > kIntervals * l.stalls * f.usual_record_seconds;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (Finding idling = IdlingCards(f); idling.matched) return idling;
  const LaunchFeatures& l = f.launches;
  // The first minutes compile and fill caches; a whole window past them decides.
  // Pauses between launches are seen only where each launch is counted.
  if (!Launching(f) || !l.exact) return {};
  if (l.window_seconds < kLongWindow || l.launches < kLaunches / 10) return {};
  if (f.steps_known && !IsWarm(f)) return {};
  if (f.phase == proto::PHASE_SAVE || f.phase == proto::PHASE_EVAL) return {};
  constexpr double kIdle = 0.8;
  const features::EvidenceRef half_idle = WaitsForInput(f) ? HalfIdleCards(f) : kNoEvidence;
  const bool idle = l.host_share >= kIdle || half_idle != kNoEvidence;
  if (!idle && !PausesForInput(f)) return {};
  if (StoodOnce(f)) return {};
  const bool in_turns = MayWaitForAUser(f);
  if (in_turns && !TakesTurns(f)) return {};
  // The driver says that the cards are at work: hosts that run ahead of them block in no call.
  features::EvidenceRef cited = features::kNoEvidence;
  if (double share = 0; CardsAreBusy(f, share, cited)) return {};
  // One rank that starves is a straggler.
  if (ComesLate(l, 1.1)) return {};
  constexpr double kOneCore = 0.8;
  const bool busy = std::isfinite(l.cpu_share) && l.cpu_share >= kOneCore;
  Finding finding = Slow(f, idle && busy ? "host_bound" : "starved");
  // Of few turns that nobody tells of, a rank elsewhere that saves in each of them looks the same.
  if (!idle || in_turns) finding.cap = cap::kLookalike;
  finding.component = busy ? "host" : "input";
  finding.shows = finding.root = {l.calls_evidence};
  if (l.host_share < kIdle) Show(half_idle, finding);
  finding.root = finding.shows;
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
