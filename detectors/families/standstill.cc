// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/standstill.h"

#include <algorithm>
#include <cmath>

#include "detectors/families/gpu_peers.h"
#include "detectors/model/subs.h"

namespace rankscope::families {
namespace {

using features::CollectiveFeatures;
using features::JobFeatures;

constexpr double kLongPhase = 600;  // saving, evaluating and compiling may take this long unseen

bool Counts(const JobFeatures& f, proto::Store store) {
  return f.store(store) == Availability::kUp;
}

// A main thread stands in calls on files that come back: it writes or reads a checkpoint, whether
// or not the program prints that. One that waits for a file server is in one call, and the kernel
// reports that.
bool ReadsOrWrites(const JobFeatures& f) {
  if (!f.storage.seen || f.storage.hang_seconds > 0 || f.silence_seconds >= kLongPhase)
    return false;
  return std::any_of(
      f.waits.ranks.begin(), f.waits.ranks.end(), [](const features::RankWait& rank) {
        const bool in_file = rank.main == WaitClass::kNetworkFile || rank.main == WaitClass::kBlock;
        return in_file && rank.window_seconds > 0 && rank.stopped_seconds <= 0;
      });
}

// It launches as one does that works. One that polls the card for what does not come launches too,
// a few times a second where its steps did so hundreds of times.
bool Launches(const features::RankLaunches& rank, double within) {
  constexpr double kWorks = 0.02;  // of its usual rate
  return rank.launches > 0 && rank.seconds_since_launch < within &&
         rank.rate >= kWorks * rank.usual_rate;
}

// All launch: they evaluate, each for itself.
bool AllLaunch(const JobFeatures& f, double within) {
  const auto& ranks = f.launches.ranks;
  return Counts(f, proto::STORE_CUDA) && !ranks.empty() &&
         std::all_of(ranks.begin(), ranks.end(),
                     [within](const auto& rank) { return Launches(rank, within); });
}

// A training record that came after the collectives had stopped.
bool TextWentOn(const JobFeatures& f) {
  constexpr double kLater = 5;  // seconds: a line may be held back for a while
  return f.progress > 0 && f.timed &&
         f.silence_seconds < f.collectives.seconds_since_advance - kLater;
}

}  // namespace

bool Seasoned(const JobFeatures& f) {
  constexpr double kCollectives = 100;
  constexpr int64_t kProgress = 3;
  return f.collectives.entered >= kCollectives ||
         (f.collectives.entered > 0 && f.progress >= kProgress);
}

bool WaitsForAPeer(const logs::Incident& incident) {
  if (incident.kind != logs::IncidentKind::kRendezvous) return false;
  if (incident.sub == subs::kJoin) return true;
  constexpr std::string_view kOther = "connect";
  return incident.sub == subs::kTimeout && incident.line.find(kOther) == std::string::npos &&
         incident.message.find(kOther) == std::string::npos;
}

bool FindsNoInterface(const logs::Incident& incident) {
  return incident.kind == logs::IncidentKind::kRendezvous && incident.sub == subs::kNoInterface;
}

double StandstillTimeout(const JobFeatures& f) {
  const CollectiveFeatures& c = f.collectives;
  double timeout = std::max(
      {f.hang_floor_seconds, 10 * c.usual_pause, std::min(3 * c.longest_pause, kLongPhase)});
  if (std::isfinite(f.step_seconds)) timeout = std::max(timeout, 10 * f.step_seconds);
  if (f.phase == proto::PHASE_SAVE)
    timeout = std::max({timeout, kLongPhase, 3 * f.longest_save_seconds});
  if (f.phase == proto::PHASE_EVAL) timeout = std::max(timeout, EvaluationBudget(f));
  if (!Seasoned(f)) timeout = std::max(timeout, kLongPhase);
  return timeout;
}

Absence AbsenceOf(const JobFeatures& f) {
  const CollectiveFeatures& c = f.collectives;
  if (c.absent.empty()) return Absence::kNone;
  constexpr double kWritten = 1 << 20;  // more than a log
  constexpr double kCpu = 0.5;          // of a core
  if (c.absent_since_launch < StandstillTimeout(f) / 2) return Absence::kBusyCard;
  if (c.absent_written_bytes >= kWritten && c.seconds_since_advance < kLongPhase)
    return Absence::kWriting;
  if (c.absent_cpu_share >= kCpu && c.seconds_since_advance < kLongPhase) return Absence::kBusyHost;
  return Absence::kStill;
}

bool StandsInCollective(const JobFeatures& f) {
  const CollectiveFeatures& c = f.collectives;
  if (!f.running || !Counts(f, proto::STORE_NCCL) || f.train_end) return false;
  if (c.ranks.empty() || c.waiting.empty()) return false;
  const double timeout = StandstillTimeout(f);
  constexpr double kMostOfIt = 0.8;  // what was still in flight before may have ended meanwhile
  if (c.seconds_since_advance < timeout || c.wait_seconds < kMostOfIt * timeout) return false;
  if (TextWentOn(f) || (f.compiler.open && f.compiler.last_thing)) return false;
  const Absence absence = AbsenceOf(f);
  return absence != Absence::kBusyCard && absence != Absence::kWriting;
}

bool NobodyWaits(const JobFeatures& f) {
  return Counts(f, proto::STORE_NCCL) && f.collectives.asked && f.collectives.flight_known &&
         f.collectives.waiting.empty();
}

bool FreezesItsPeers(const JobFeatures& f) {
  const features::Cause* primary = f.Primary();
  if (primary == nullptr || primary->incident().kind != logs::IncidentKind::kSignalDeath)
    return false;
  if (!f.running || !f.timed || f.world_size <= 1 || f.train_end) return false;
  // A launcher that sees it ends the others in seconds, or kills them after its grace of 30 s.
  const double timeout = std::max(HangTimeout(f), StandstillTimeout(f));
  if ((f.now - primary->incident().t).seconds() < timeout) return false;
  if (StandsInCollective(f)) return true;
  constexpr int64_t kProgressForSilence = 3;
  return CardsWait(f) && f.progress >= kProgressForSilence && f.silence_seconds >= timeout;
}

bool Stalls(const JobFeatures& f) {
  constexpr double kIntervals = 5, kLonger = 1.5, kLeast = 10, kGoesOn = 5;
  constexpr int64_t kProgressForSilence = 3;
  if (!f.running || !f.timed || f.train_end || f.suspension.now || f.Primary() != nullptr)
    return false;
  if (f.progress < kProgressForSilence || !std::isfinite(f.usual_record_seconds)) return false;
  if (f.phase == proto::PHASE_SAVE || f.phase == proto::PHASE_EVAL) return false;
  const double limit =
      std::max({kLeast, kIntervals * f.usual_record_seconds, kLonger * f.longest_record_seconds});
  if (f.silence_seconds < std::min(limit, HangTimeout(f))) return false;
  if (ReadsOrWrites(f) || AllLaunch(f, kGoesOn)) return false;
  const CollectiveFeatures& c = f.collectives;
  if (Counts(f, proto::STORE_NCCL) && c.entered > 0)
    return c.seconds_since_advance >= std::max(kGoesOn, kIntervals * c.usual_pause);
  const auto& ranks = f.launches.ranks;
  return !Counts(f, proto::STORE_CUDA) ||
         std::none_of(ranks.begin(), ranks.end(),
                      [](const auto& rank) { return Launches(rank, kGoesOn); });
}

bool CallsCounted(const JobFeatures& f) {
  return (Counts(f, proto::STORE_NCCL) && f.collectives.entered > 0) ||
         (Counts(f, proto::STORE_CUDA) && std::isfinite(f.launches.seconds_since_launch));
}

bool Advances(const JobFeatures& f) {
  if (Counts(f, proto::STORE_NCCL) && f.collectives.entered > 0 &&
      f.collectives.seconds_since_advance < StandstillTimeout(f))
    return true;
  return Counts(f, proto::STORE_CUDA) && f.launches.seconds_since_launch < HangTimeout(f);
}

}  // namespace rankscope::families
