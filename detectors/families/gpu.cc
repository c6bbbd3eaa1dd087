// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/gpu.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "detectors/families/curve.h"

namespace rankscope::families {

using features::JobFeatures;
using features::RunGpu;

namespace {

// Nobody numbers the steps, and records come at their pace for so long that there have been many: a
// compiler is done by the end of the first epoch, and of any record in a quarter of an hour.
bool HasCome(const JobFeatures& f, double seconds) {
  constexpr double kEpochs = 3, kRecords = 5, kEpochsSeconds = 120, kRecordsSeconds = 900;
  if (f.steps_known || !std::isfinite(f.pace_seconds)) return false;
  const bool epochs = f.step_unit == logs::StepUnit::kEpochs;
  return static_cast<double>(f.progress) >= (epochs ? kEpochs : kRecords) &&
         seconds >= (epochs ? kEpochsSeconds : kRecordsSeconds);
}

}  // namespace

// The first steps compile and fill caches. Of long ones a few say as much, where the hosts are seen
// to do neither: they wait.
bool IsWarm(const JobFeatures& f) {
  constexpr double kSteps = 50, kLongSteps = 5, kWindow = 300, kRuns = 0.5;
  if (f.steps >= kSteps) return true;
  const features::Evidence* const first = f.At(f.first_progress_evidence);
  if (first != nullptr && HasCome(f, (f.now - first->begin).seconds())) return true;
  if (f.steps < kLongSteps || first == nullptr || !f.waits.known()) return false;
  if ((f.now - first->begin).seconds() < kWindow) return false;
  return f.waits.compilers == 0 && !f.compiler.open &&
         std::all_of(f.waits.ranks.begin(), f.waits.ranks.end(),
                     [](const features::RankWait& rank) {
                       return rank.window_seconds > 0 && rank.window_running_share < kRuns;
                     });
}

namespace {

bool Saves(const JobFeatures& f) {
  return f.phase == proto::PHASE_SAVE || f.phase == proto::PHASE_EVAL;
}

// Steps come and are of the usual kind, and did for most of the five minutes of `busiest_minute`: a
// card idles before the first one, while a program loads and compiles.
bool TakesSteps(const JobFeatures& f) {
  constexpr double kMostSeconds = 180;
  // Generation for a reward goes token by token, and a card idles between.
  if (!Runs(f) || Saves(f) || f.reward_objective || !IsWarm(f)) return false;
  if (!f.steps_known && !std::isfinite(f.pace_seconds)) return false;
  const features::Evidence* const first = f.At(f.first_progress_evidence);
  if (first != nullptr && (f.now - first->begin).seconds() < kMostSeconds) return false;
  const double usual = std::isfinite(f.usual_record_seconds) ? f.usual_record_seconds : 0;
  return f.silence_seconds <= std::max(10.0, 5 * usual);
}

}  // namespace

bool Runs(const JobFeatures& f) {
  return f.running && f.timed && f.Primary() == nullptr && f.gpu.known();
}

const RunGpu* FailedUnder(const JobFeatures& f, const features::Cause& cause) {
  const logs::IncidentKind kind = cause.incident().kind;
  if (kind != logs::IncidentKind::kCudaError && kind != logs::IncidentKind::kCollectiveTimeout &&
      kind != logs::IncidentKind::kPeerLost) {
    return nullptr;
  }
  // The catalogue's window: a driver may tell of an error after the program has met it.
  constexpr double kBefore = 600, kAfter = 60;
  for (const RunGpu& gpu : f.gpu.gpus) {
    const double before = (cause.incident().t - gpu.errors_risen).seconds();
    if (gpu.errors <= 0 || before > kBefore || before < -kAfter) continue;
    const int32_t rank = cause.incident().rank;
    const bool others = rank >= 0 && kind == logs::IncidentKind::kCudaError &&
                        std::find(gpu.ranks.begin(), gpu.ranks.end(), rank) == gpu.ranks.end();
    if (!others) return &gpu;
  }
  return nullptr;
}

Finding IdleCards(const JobFeatures& f) {
  constexpr double kIdleSeconds = 300;
  constexpr double kNeverSeconds = 600;  // before its first kernel a run may prepare for long
  constexpr double kHostWorks = 0.2;
  if (!Runs(f) || Saves(f) || f.train_end || f.world_size > 1) return {};
  if (f.progress > 0 && f.silence_seconds < kIdleSeconds) return {};
  double shortest = std::numeric_limits<double>::infinity();
  for (const RunGpu& gpu : f.gpu.gpus) {
    if (gpu.own_bytes <= 0) return {};
    // One that has never run anything, and whose host nobody watches, may just be loading.
    if (!gpu.worked && (gpu.ran || gpu.idle_seconds < kNeverSeconds || !f.waits.known())) return {};
    shortest = std::min(shortest, gpu.idle_seconds);
  }
  if (shortest < kIdleSeconds) return {};
  // Work that needs no card: tokenising, downloading, evaluation on the CPU.
  constexpr double kWorkersStill = 60;
  for (const features::RankWait& rank : f.waits.ranks) {
    if (rank.running_share >= kHostWorks) return {};
    if (rank.workers > 0 && rank.workers_still_seconds < kWorkersStill) return {};
  }
  Finding finding;
  finding.matched = true;
  finding.sub = "idle";
  finding.tier = f.waits.known() ? proto::TIER_S : proto::TIER_W;
  finding.component = "process";
  finding.symptom = "hang";
  for (const RunGpu& gpu : f.gpu.gpus) {
    finding.ranks.insert(finding.ranks.end(), gpu.ranks.begin(), gpu.ranks.end());
    Show(gpu.activity_evidence, finding);
  }
  for (const features::RankWait& rank : f.waits.ranks) Show(rank.evidence, finding);
  finding.root = finding.shows;
  Show(f.silence_evidence, finding);
  Show(f.launches.idle_evidence, finding);
  finding.values = {{FieldId::kSeconds, std::round(shortest)},
                    {FieldId::kTrigger, "holds GPU memory, but nothing runs on its GPU"}};
  finding.onset = f.now - Seconds(shortest);
  finding.open = {Question::kHangTrigger};
  return finding;
}

bool CardsAreUntouched(const features::JobFeatures& f) {
  constexpr double kNeverSeconds = 600;
  // The smallest context that CUDA makes takes some hundred MiB; what a driver does of itself,
  // some.
  constexpr double kContext = 64.0 * (1 << 20);
  const features::GpuFeatures& g = f.gpu;
  if (g.known() || g.unused.empty() || g.hidden || g.divided) return false;
  // Who calls CUDA is on a card, whether the driver's list has it or not; to have its library
  // mapped, as whoever imports a framework has, is no call.
  const bool calls = std::any_of(f.launches.ranks.begin(), f.launches.ranks.end(),
                                 [](const features::RankLaunches& rank) {
                                   return rank.launches > 0 || rank.sync_seconds > 0 ||
                                          rank.copy_share > 0 || rank.allocation_share > 0;
                                 });
  if (calls) return false;
  return std::all_of(g.unused.begin(), g.unused.end(), [](const features::UnusedGpu& gpu) {
    return gpu.told && !gpu.ran && gpu.looked_seconds >= kNeverSeconds && gpu.rise < kContext &&
           gpu.foreign_bytes <= 0;
  });
}

Finding NeverAttached(const JobFeatures& f) {
  constexpr double kStillSeconds = 600;
  if (!f.running || !f.timed || f.Primary() != nullptr) return {};
  if (f.progress > 0 || f.train_end || Saves(f) || f.gpu.interactive) return {};
  if (f.waits.ranks.empty() || !CardsAreUntouched(f)) return {};
  // Ranks that wait for each other's word wait for one that is elsewhere: a rendezvous.
  const bool several = f.world_size > 1 || f.waits.ranks.size() > 1;
  if (several && (f.in_rendezvous || f.network.connected > 0)) return {};
  double still = std::numeric_limits<double>::infinity();
  bool sleeps = false;
  for (const features::RankWait& rank : f.waits.ranks) {
    // Work that comes before the first kernel: reading, tokenising, downloading, by itself or by
    // others for it.
    if (!rank.has_run || rank.still_seconds < kStillSeconds) return {};
    sleeps = sleeps || rank.main == WaitClass::kSleep;
    if (rank.workers > 0 && rank.workers_still_seconds < kStillSeconds) return {};
    if (several && rank.main == WaitClass::kSocket) return {};
    still = std::min(still, rank.still_seconds);
  }
  Finding finding;
  finding.matched = true;
  finding.sub = "never_attached";
  finding.tier = proto::TIER_S;
  // Of ranks elsewhere nobody here knows whether these wait for them.
  if (f.world_size > static_cast<int32_t>(f.waits.ranks.size())) finding.cap = cap::kEvenOdds;
  // Who sleeps was told to, and may have a reason.
  if (sleeps) finding.tier = proto::TIER_W;
  finding.component = "process";
  finding.symptom = "hang";
  Show(f.gpu.cards_evidence, finding);
  for (const features::UnusedGpu& gpu : f.gpu.unused) Show(gpu.evidence, finding);
  for (const features::RankWait& rank : f.waits.ranks) {
    finding.ranks.push_back(rank.rank);
    Show(rank.evidence, finding);
  }
  finding.root = finding.shows;
  finding.values = {{FieldId::kSeconds, std::round(still)},
                    {FieldId::kTrigger, "has never used the GPUs of its job"}};
  finding.onset = f.now - Seconds(still);
  finding.open = {Question::kHangTrigger};
  return finding;
}

Finding IdlingCards(const JobFeatures& f) {
  constexpr double kDuty = 0.2;
  if (!TakesSteps(f)) return {};
  Finding finding;
  double most = 0;
  for (const RunGpu& gpu : f.gpu.gpus) {
    // Its minutes are those of the clock: the newest is not among them.
    if (!(gpu.busiest_minute <= kDuty) || gpu.engine > kDuty) return {};
    most = std::max(most, gpu.busiest_minute);
    Show(gpu.activity_evidence, finding);
  }
  finding.matched = true;
  finding.sub = "low_duty";
  finding.tier = proto::TIER_S;
  finding.cap = cap::kOneSource;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "input";
  finding.symptom = "slow";
  finding.root = finding.shows;
  // What its host does meanwhile, where calls tell it: it launches, with pauses.
  const features::LaunchFeatures& l = f.launches;
  constexpr double kHostShare = 0.8;
  constexpr int32_t kStalls = 3;
  if (f.store(proto::STORE_CUDA) == Availability::kUp && l.exact && l.launches > 0 &&
      (l.host_share >= kHostShare || l.stalls >= kStalls)) {
    finding.tier = proto::TIER_C;
    finding.cap = cap::kInferred;
    Show(l.calls_evidence, finding);
  }
  Show(f.step_time_evidence, finding);
  Show(f.last_progress_evidence, finding);
  if (Learned(f)) ShowCurve(f, finding);
  Show(f.gpu.clean_evidence, finding);
  finding.values = {{FieldId::kDuty, most}};
  finding.onset = f.now - Seconds(300);
  return finding;
}

features::EvidenceRef HalfIdleCards(const JobFeatures& f) {
  constexpr double kSome = 0.2, kHalf = 0.5;
  if (!TakesSteps(f)) return features::kNoEvidence;
  const RunGpu* most = nullptr;
  for (const RunGpu& gpu : f.gpu.gpus) {
    if (!(gpu.busiest_minute <= kHalf) || gpu.engine > kHalf) return features::kNoEvidence;
    if (most == nullptr || gpu.busiest_minute > most->busiest_minute) most = &gpu;
  }
  return most->busiest_minute > kSome ? most->activity_evidence : features::kNoEvidence;
}

bool CardsAreBusy(const JobFeatures& f, double& share, features::EvidenceRef& evidence) {
  constexpr double kBusy = 0.5;
  if (!f.gpu.known()) return false;
  const RunGpu* least = nullptr;
  for (const RunGpu& gpu : f.gpu.gpus) {
    if (!(gpu.engine >= kBusy)) return false;
    if (least == nullptr || gpu.engine < least->engine) least = &gpu;
  }
  share = least->engine;
  evidence = least->activity_evidence;
  return true;
}

const RunGpu* SharedCard(const JobFeatures& f, int32_t rank) {
  const RunGpu* most = nullptr;
  for (const RunGpu& gpu : f.gpu.gpus) {
    const bool its =
        rank < 0 || std::find(gpu.ranks.begin(), gpu.ranks.end(), rank) != gpu.ranks.end();
    if (!its || gpu.foreign_bytes <= 0) continue;
    if (most == nullptr || gpu.foreign_bytes > most->foreign_bytes) most = &gpu;
  }
  return most;
}

}  // namespace rankscope::families
