// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// C3: the GPU is held and nothing runs on it.
#include <algorithm>
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/gpu.h"
#include "detectors/families/rows.h"
#include "detectors/families/slow_rank.h"
#include "detectors/families/standstill.h"
#include "detectors/families/thread_causes.h"
#include "detectors/model/subs.h"

namespace rankscope::families::idle_gpu_hang {

using features::JobFeatures;
using features::kNoEvidence;
using features::RankWait;

namespace {

constexpr int64_t kProgressForSilence = 3;

bool Silent(const JobFeatures& f) {
  return f.progress >= kProgressForSilence && !f.train_end && f.silence_seconds >= HangTimeout(f);
}

Finding StandingRank(const JobFeatures& f) {
  if (!Watched(f) || f.world_size > 1 || f.waits.ranks.size() != 1) return {};
  const RankWait& rank = f.waits.ranks.front();
  const ThreadCause cause = CauseOfRank(f, rank);
  const bool unheard = f.progress < kProgressForSilence && !f.train_end;
  const bool silent = Silent(f);
  // An NFS client over TCP asks again after 60 s (timeo=600 in nfs(5)): one packet that was lost,
  // or a server that fails over, costs a run that long and no more.
  constexpr double kAskedAgain = 120;
  if (rank.main == WaitClass::kNetworkFile && f.silence_seconds < kAskedAgain) return {};
  Finding finding;
  if (cause.proved) {
    if (!silent && !(unheard && rank.stopped_seconds >= f.hang_floor_seconds)) return {};
    finding.tier = silent ? proto::TIER_C : proto::TIER_S;
  } else {
    // Who runs is at work, whatever it says; who stands still without a word has nothing to do.
    constexpr double kUnheardSeconds = 600;
    if (!rank.has_run || rank.still_seconds < (silent ? HangTimeout(f) / 2 : kUnheardSeconds))
      return {};
    // A worker that runs prepares what the rank waits for.
    if (rank.workers > 0 && rank.workers_still_seconds < HangTimeout(f) / 2) return {};
    if (!silent && (!unheard || cause.sub.empty() || cause.sub == subs::kSleep)) return {};
    finding.tier = silent ? proto::TIER_S : proto::TIER_W;
  }
  finding.matched = true;
  finding.sub = cause.sub.empty() ? "idle" : cause.sub;
  finding.domain = cause.domain;
  finding.ranks = {rank.rank};
  finding.component = "process";
  finding.symptom = "hang";
  finding.shows = cause.shows;
  if (finding.shows.empty() && rank.evidence != kNoEvidence) finding.shows = {rank.evidence};
  finding.root = finding.shows;
  if (silent) Show(f.silence_evidence, finding);
  const double seconds = cause.proved ? rank.stopped_seconds : rank.still_seconds;
  finding.values = {
      {FieldId::kSeconds, seconds},
      {FieldId::kTrigger, cause.sub.empty() ? "does not run, and nothing shows what it waits for"
                                            : std::string(cause.phrase)}};
  finding.onset = f.now - Seconds(seconds);
  if (cause.sub.empty()) finding.open = {Question::kHangTrigger};
  return finding;
}

// A loop on the CPU that gives its GPU nothing any more. A program may work on its CPU between two
// steps, at a metric or at its data, for minutes; that it says nothing meanwhile, reads and writes
// nothing and compiles nothing makes it strange and no more.
Finding StopsLaunching(const JobFeatures& f) {
  constexpr double kSeconds = 300, kAlways = 0.9;
  const auto& launches = f.launches;
  if (!Watched(f) || f.world_size > 1 || f.waits.ranks.size() != 1 || f.suspension.now) return {};
  if (f.store(proto::STORE_CUDA) != Availability::kUp || launches.ranks.size() != 1) return {};
  if (f.phase == proto::PHASE_SAVE || f.phase == proto::PHASE_EVAL || f.compiler.open ||
      f.waits.compilers > 0)
    return {};
  const double limit = std::max(kSeconds, HangTimeout(f));
  if (!Silent(f) || f.silence_seconds < limit || !(launches.seconds_since_launch >= limit))
    return {};
  const RankWait& rank = f.waits.ranks.front();
  if (launches.sync_seconds > 0 || rank.main_running_share < kAlways || rank.workers > 0) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = "busy";
  finding.tier = proto::TIER_S;
  finding.cap = cap::kEvenOdds;
  finding.ranks = {rank.rank};
  finding.component = "process";
  finding.symptom = "hang";
  finding.shows = {launches.idle_evidence};
  Show(rank.evidence, finding);
  finding.root = finding.shows;
  Show(f.silence_evidence, finding);
  finding.values = {
      {FieldId::kSeconds, std::round(launches.seconds_since_launch)},
      {FieldId::kTrigger, "uses a CPU all the time, and gives its GPU nothing to do"}};
  finding.onset = f.now - Seconds(launches.seconds_since_launch);
  finding.open = {Question::kHangTrigger};
  return finding;
}

// Stands without a word, and for nobody who is elsewhere: who waits for one of those reads a
// socket.
bool StandsForItself(const JobFeatures& f, const RankWait& rank) {
  const bool peers_elsewhere = f.world_size > static_cast<int32_t>(f.waits.ranks.size());
  if (!rank.has_run || rank.still_seconds < HangTimeout(f) / 2) return false;
  if (rank.workers > 0 && rank.workers_still_seconds < HangTimeout(f) / 2) return false;
  return !peers_elsewhere || rank.main != WaitClass::kSocket;
}

// It prints on another node; its calls say that it got on, and that it does so no more.
bool FellSilent(const JobFeatures& f, double seconds) {
  if (f.progress > 0 || f.train_end) return false;
  if (f.store(proto::STORE_CUDA) != Availability::kUp) return false;
  constexpr double kCollectives = 20, kUsual = 10, kLongest = 3;
  const features::CollectiveFeatures& c = f.collectives;
  if (c.entered < kCollectives) return false;
  const double limit = std::max({seconds, kUsual * c.usual_pause, kLongest * c.longest_pause});
  return c.seconds_since_advance >= limit && f.launches.seconds_since_launch >= limit;
}

// All ranks of this node stand still, with idle GPUs, and nobody waits in a collective for the
// others: C2 does not explain it.
Finding StandingRanks(const JobFeatures& f) {
  constexpr double kSeconds = 300;  // what a program may prepare between two steps
  if (!Watched(f) || f.world_size <= 1 || f.waits.ranks.size() < 2 || f.suspension.now) return {};
  if (f.phase == proto::PHASE_SAVE || f.phase == proto::PHASE_EVAL) return {};
  const bool silent = Silent(f) && f.silence_seconds >= kSeconds;
  if (!silent && !FellSilent(f, kSeconds)) return {};
  if (!NobodyWaits(f) || (silent && Advances(f))) return {};
  if (!std::all_of(f.waits.ranks.begin(), f.waits.ranks.end(),
                   [&f](const RankWait& rank) { return StandsForItself(f, rank); }))
    return {};
  if (!f.gpu.known() || !std::all_of(f.gpu.gpus.begin(), f.gpu.gpus.end(), [](const auto& gpu) {
        return gpu.own_bytes > 0 && gpu.idle_seconds >= kSeconds / 2;
      }))
    return {};
  Finding finding;
  finding.matched = true;
  finding.sub = "idle";
  finding.tier = proto::TIER_C;  // their threads stand, and so do their GPUs
  finding.cap = cap::kUnseenSide;
  finding.component = "process";
  finding.symptom = "hang";
  for (const RankWait& rank : f.waits.ranks) {
    finding.ranks.push_back(rank.rank);
    Show(rank.evidence, finding);
  }
  finding.root = finding.shows;
  if (silent) Show(f.silence_evidence, finding);
  if (!silent) Show(f.launches.idle_evidence, finding);
  Show(f.collectives.advance_evidence, finding);
  const double seconds = silent ? f.silence_seconds : f.collectives.seconds_since_advance;
  finding.values = {{FieldId::kSeconds, std::round(seconds)},
                    {FieldId::kTrigger, "holds GPU memory, but nothing runs on its GPU"}};
  finding.onset = f.now - Seconds(seconds);
  finding.open = {Question::kHangTrigger};
  return finding;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  Finding finding = StandingRank(f);
  if (!finding.matched) finding = StopsLaunching(f);
  if (!finding.matched) finding = StandingRanks(f);
  if (!finding.matched) finding = IdleCards(f);
  if (!finding.matched) return NeverAttached(f);
  for (const features::RunGpu& gpu : f.gpu.gpus) Show(gpu.activity_evidence, finding);
  if (CardsAreUntouched(f)) {
    for (const features::UnusedGpu& gpu : f.gpu.unused) Show(gpu.evidence, finding);
  }
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (const features::Cause* primary = f.Primary())
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "idleness"}});
  if (f.running && f.world_size <= 1 && f.waits.ranks.size() == 1) {
    const RankWait& rank = f.waits.ranks.front();
    if (rank.recent_seconds > 0 && rank.running_share >= 0.02) {
      return Excluded(Reason::kThreadsRun, {rank.evidence},
                      {{FieldId::kShare, rank.running_share},
                       {FieldId::kSeconds, rank.recent_seconds},
                       {FieldId::kRanks,
                        rank.rank < 0 ? std::vector<int32_t>() : std::vector<int32_t>{rank.rank}}});
    }
  }
  return NotDecidable(proto::STORE_GPU);
}

}  // namespace rankscope::families::idle_gpu_hang
