// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// C3, D3 and X14 as far as threads show them: a rank that waits for something of its own, a rank
// that the host gives no CPU, and pauses that befall everybody.
#include "detectors/families/slow_rank.h"

#include <algorithm>
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/save_storm.h"
#include "detectors/families/thread_causes.h"

namespace rankscope::families {

using features::JobFeatures;
using features::kNoEvidence;
using features::RankWait;

namespace {

// The others' largest shares of each.
struct Peers {
  double runnable = 0;  // their main threads wanted a CPU
  double busy = 0;      // or had one
  double storage = 0;   // they, or processes of theirs, stood in files
  double socket = 0;    // they waited for somebody else's word
  size_t count = 0;
};

Peers PeersOf(const JobFeatures& f, const RankWait& of) {
  Peers peers;
  for (const RankWait& rank : f.waits.ranks) {
    if (&rank == &of || rank.stopped_seconds > 0) continue;
    peers.runnable = std::max(peers.runnable, rank.window_runnable_share);
    peers.busy = std::max(peers.busy, rank.window_running_share + rank.window_runnable_share);
    peers.storage = std::max({peers.storage, rank.storage.share, rank.worker_storage.share});
    peers.socket = std::max(peers.socket, rank.window_socket_share);
    ++peers.count;
  }
  return peers;
}

// A rank that always wants a CPU, often has none, and whose peers have what they want and wait.
// Where all ranks want for CPUs the node is too small, and nobody is the straggler.
bool IsStarved(const JobFeatures& f, const RankWait& rank) {
  constexpr double kWindow = 30, kShare = 0.3, kBusy = 0.6, kPeersShare = 0.1;
  if (rank.window_seconds < kWindow || rank.stopped_seconds > 0) return false;
  const double busy = rank.window_running_share + rank.window_runnable_share;
  const Peers peers = PeersOf(f, rank);
  return peers.count > 0 && rank.window_runnable_share >= kShare &&
         rank.main_runnable_share >= kShare && busy >= kBusy && peers.runnable <= kPeersShare &&
         peers.busy < busy;
}

// One rank that saves or evaluates while the others wait wants more of the CPUs than they do, and
// that is no straggling: steps must come as they use to.
bool StepsCome(const JobFeatures& f) {
  constexpr double kPause = 10;
  if (f.progress == 0) return true;  // nobody tells
  if (f.phase == proto::PHASE_SAVE || f.phase == proto::PHASE_EVAL) return false;
  const double usual = std::isfinite(f.usual_record_seconds) ? f.usual_record_seconds : 0;
  return f.silence_seconds <= std::max(kPause, 5 * usual);
}

const RankWait* Starved(const JobFeatures& f) {
  for (const RankWait& rank : f.waits.ranks) {
    if (IsStarved(f, rank)) return &rank;
  }
  return nullptr;
}

// A rank whose main thread stands in a file waits for nobody else. One whose loader does is late
// only if it waits for its loader, through a pipe: a loader that reads without end and keeps up, or
// a process that writes in the background, delays nobody.
bool WaitsForStorage(const JobFeatures& f, const RankWait& rank) {
  constexpr double kWindow = 30, kMain = 0.4, kWorker = 0.6, kPeersShare = 0.25;
  constexpr double kSocket = 0.4, kPeersSocket = 0.1;
  if (rank.window_seconds < kWindow || rank.stopped_seconds > 0) return false;
  const Peers peers = PeersOf(f, rank);
  if (peers.count == 0) return false;
  if (rank.storage.share >= kMain) return peers.storage <= kPeersShare * rank.storage.share;
  return rank.worker_storage.share >= kWorker &&
         peers.storage <= kPeersShare * rank.worker_storage.share &&
         rank.window_socket_share >= kSocket && peers.socket <= kPeersSocket;
}

// What it writes is a checkpoint: D2's matter, and no straggler.
bool Saves(const JobFeatures& f) {
  constexpr double kNotable = 0.1;
  return f.storage.save_share >= kNotable;
}

}  // namespace

bool Watched(const JobFeatures& f) {
  return f.running && f.timed && f.Primary() == nullptr && f.waits.known();
}

Finding StarvedRank(const JobFeatures& f) {
  if (!Watched(f) || !StepsCome(f)) return {};
  const RankWait* const rank = Starved(f);
  if (rank == nullptr) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = "starved";
  finding.tier = proto::TIER_S;
  finding.cap = cap::kUnseenSide;  // what its GPU does is not seen
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.ranks = {rank->rank};
  finding.component = "host";
  finding.symptom = "slow";
  if (rank->evidence != kNoEvidence) finding.shows = finding.root = {rank->evidence};
  constexpr double kMostPeriods = 0.5;
  if (rank->throttled_share >= kMostPeriods) {
    // Nobody else runs on its CPUs: its own cgroup may use no more of them.
    finding.advice = "cpu_quota";
    Show(rank->quota_evidence, finding);
    finding.values.Set(FieldId::kCpu, rank->cpu_quota);
  }
  Show(f.step_time_evidence, finding);
  finding.values.Set(FieldId::kStarved, rank->window_runnable_share);
  finding.values.Set(FieldId::kPeers, PeersOf(f, *rank).runnable);
  finding.values.Set(FieldId::kWindow, rank->window_seconds);
  finding.onset = f.now - Seconds(rank->window_seconds);
  return finding;
}

Finding RankOfSlowStorage(const JobFeatures& f) {
  if (!Watched(f) || !StepsCome(f) || Saves(f)) return {};
  const auto rank = std::find_if(f.waits.ranks.begin(), f.waits.ranks.end(),
                                 [&f](const RankWait& of) { return WaitsForStorage(f, of); });
  if (rank == f.waits.ranks.end() || HasSaved(f, rank->rank, rank->window_seconds)) return {};
  const bool own = rank->storage.share >= rank->worker_storage.share;
  const features::StorageWait& wait = own ? rank->storage : rank->worker_storage;
  Finding finding;
  finding.matched = true;
  finding.sub = "slow_storage";
  finding.tier = proto::TIER_S;
  finding.cap = cap::kUnseenSide;  // what its GPU does is not seen
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.ranks = {rank->rank};
  finding.component = "storage";
  finding.symptom = "slow";
  Show(rank->storage_evidence, finding);
  finding.root = finding.shows;
  Show(f.step_time_evidence, finding);
  finding.values = {{FieldId::kHow, own ? "itself" : "through its data loader"},
                    {FieldId::kShare, wait.share},
                    {FieldId::kPeers, PeersOf(f, *rank).storage},
                    {FieldId::kWindow, rank->window_seconds}};
  finding.onset = f.now - Seconds(rank->window_seconds);
  return finding;
}

FieldValues NobodyStarved(const JobFeatures& f) {
  if (!Watched(f) || f.waits.ranks.size() <= 1) return {};
  double most = 0;
  for (const RankWait& rank : f.waits.ranks) {
    if (IsStarved(f, rank)) return {};  // and no steps come: it is no straggler for that
    most = std::max(most, rank.window_runnable_share);
  }
  return {{FieldId::kShare, most}};
}

}  // namespace rankscope::families
