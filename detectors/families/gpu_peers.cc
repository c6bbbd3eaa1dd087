// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/gpu_peers.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "detectors/families/curve.h"
#include "detectors/families/gpu.h"
#include "detectors/families/save_storm.h"
#include "detectors/families/standstill.h"
#include "detectors/model/subs.h"

namespace rankscope::families {
namespace {

using features::GpuFeatures;
using features::JobFeatures;
using features::OddGpu;
using features::RunGpu;

// The sub of a rank whose card computes longer than its peers'.
constexpr std::string_view kCard = "card";
// One SM for each of the communicator's channels: 32 of 132 at most.
constexpr double kChannels = 0.27;
constexpr double kPinned = 0.9;  // an engine that never rests

bool RunsWithPeers(const JobFeatures& f) {
  return f.running && f.timed && f.Primary() == nullptr && f.world_size > 1 && f.gpu.known();
}

// Collectives or steps go on, and nothing is being saved or evaluated.
bool GoesOn(const JobFeatures& f) {
  if (f.phase == proto::PHASE_SAVE || f.phase == proto::PHASE_EVAL) return false;
  const bool collectives = f.store(proto::STORE_NCCL) == Availability::kUp &&
                           f.collectives.entered > 0 &&
                           f.collectives.seconds_since_advance < StandstillTimeout(f);
  const bool text = f.progress > 0 && f.silence_seconds < HangTimeout(f);
  return collectives || text;
}

// Enough of it to be used to it: the first steps compile and fill caches.
bool IsSettled(const JobFeatures& f) {
  constexpr double kSteps = 50, kCollectives = 1000, kSeconds = 300;
  const bool paced = !f.steps_known && std::isfinite(f.pace_seconds) && IsWarm(f);
  return (f.steps_known && f.steps >= kSteps) || paced || f.collectives.entered >= kCollectives ||
         f.leads.seconds >= kSeconds;
}

// What GPUs draw differs more than what they do, and says less.
bool IsByPower(const JobFeatures& f, features::EvidenceRef ref) {
  const features::Evidence* const evidence = f.At(ref);
  return evidence != nullptr && evidence->unit == "W";
}

// All ranks have entered as many: synchronous training, and nobody skips work.
bool InLockStep(const JobFeatures& f) {
  const auto& ranks = f.collectives.ranks;
  if (ranks.size() < 2 || f.collectives.entered <= 0) return false;
  constexpr double kLate = 0.02;
  return std::all_of(ranks.begin(), ranks.end(), [&f](const features::RankCollectives& rank) {
    return rank.entered >= (1 - kLate) * f.collectives.entered;
  });
}

// Ranks of one job that share no collective do not wait for each other: a GPU that is busier than
// the others is then no delay to anybody.
bool WaitForEachOther(const JobFeatures& f) {
  return f.store(proto::STORE_NCCL) != Availability::kUp || InLockStep(f);
}

Finding Slow(const JobFeatures& f, std::string_view sub, double seconds) {
  Finding finding;
  finding.matched = true;
  finding.sub = sub;
  finding.tier = proto::TIER_S;
  finding.cap = cap::kOneSource;
  finding.symptom = "slow";
  finding.onset = f.now - Seconds(seconds);
  return finding;
}

// What NCCL says it moves its bytes with; null: it does not say.
const features::Evidence* SlowTransport(const JobFeatures& f) {
  return f.At(f.network.transport_evidence);
}

// More than half as much again as the peers, in both minutes, while they wait.
bool WorksAlone(const OddGpu& odd, const JobFeatures& f) {
  constexpr double kRatio = 1.5, kDistance = 0.1;
  if (odd.at < 0 || !(odd.peers <= kChannels) || !(odd.peers_before <= kChannels)) return false;
  if (odd.own < kRatio * odd.peers || odd.own - odd.peers < kDistance) return false;
  if (odd.own_before < kRatio * odd.peers_before || odd.own_before - odd.peers_before < kDistance)
    return false;
  // The next one is far from it: else a few ranks, or a stage of the pipeline, have more to do.
  for (size_t i = 0; i < f.gpu.gpus.size(); ++i) {
    const RunGpu& gpu = f.gpu.gpus[i];
    if (static_cast<int32_t>(i) == odd.at) continue;
    if (!(gpu.engine >= kPinned) || !(gpu.sm <= kChannels)) return false;
  }
  return true;
}

// Its engine rests between kernels, and those of all others never do.
bool RestsAlone(const OddGpu& odd, const JobFeatures& f) {
  constexpr double kRests = 0.75;
  if (odd.at < 0 || !(odd.own <= kRests) || !(odd.own_before <= kRests)) return false;
  const RunGpu& own = f.gpu.gpus[static_cast<size_t>(odd.at)];
  for (size_t i = 0; i < f.gpu.gpus.size(); ++i) {
    const RunGpu& gpu = f.gpu.gpus[i];
    if (static_cast<int32_t>(i) == odd.at) continue;
    if (!(gpu.engine >= kPinned) || !(gpu.engine_before >= kPinned)) return false;
    // It must do no less work than they: else they have work and it has none.
    if (std::isfinite(gpu.sm) && std::isfinite(own.sm) && gpu.sm > kChannels) return false;
  }
  return true;
}

// What sets this GPU apart from its peers and makes it slower: its sentence answers the question
// why. A lower clock does not let an engine rest, and a slow link to the host does.
void ExplainBy(const JobFeatures& f, const RunGpu& gpu, Finding& finding) {
  const bool works = finding.sub == kCard;
  const features::Evidence* const limit = f.At(gpu.power_limit_evidence);
  features::EvidenceRef why = features::kNoEvidence;
  if (works && gpu.clock_lock_evidence != features::kNoEvidence) {
    finding.advice = "clock_lock";
    why = gpu.clock_lock_evidence;
  } else if (works && limit != nullptr && limit->values.Text(FieldId::kWhat) == "peers" &&
             gpu.clock < gpu.peers_clock) {
    finding.advice = "power_limit";
    why = gpu.power_limit_evidence;
  } else if (gpu.link_evidence != features::kNoEvidence) {
    finding.advice = "link";
    why = gpu.link_evidence;
  }
  const features::Evidence* const evidence = f.At(why);
  if (evidence == nullptr) return;
  Show(why, finding);
  finding.root.push_back(why);
  std::erase(finding.open, Question::kStragglerCause);
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  if (finding.advice == "clock_lock") {
    finding.values.Set(FieldId::kClock, gpu.clock).Set(FieldId::kPeersClock, gpu.peers_clock);
  } else if (finding.advice == "power_limit") {
    finding.values.Set(FieldId::kPowerLimit, *evidence->observed)
        .Set(FieldId::kPeersPower, *evidence->expected);
  } else {
    finding.values.Set(FieldId::kLanes, *evidence->observed)
        .Set(FieldId::kPeersLanes, *evidence->expected);
    if (const FieldValue* const max = evidence->values.Find(FieldId::kMaxLanes))
      finding.values.Set(*max);
  }
}

void AddOddCard(const JobFeatures& f, const OddGpu& odd, Finding& finding) {
  const RunGpu& gpu = f.gpu.gpus[static_cast<size_t>(odd.at)];
  finding.ranks = gpu.ranks;
  finding.component = "gpu";
  Show(odd.evidence, finding);
  finding.root = finding.shows;
  if (InLockStep(f)) {
    // Two stores: as many collectives, and not as much work.
    finding.tier = proto::TIER_C;
    finding.cap = cap::kInferred;
    Show(f.collectives.advance_evidence, finding);
  }
  Show(f.step_time_evidence, finding);
  Show(gpu.throttle_evidence, finding);
  Show(gpu.latent_evidence, finding);
  finding.values = {{FieldId::kGpu, gpu.index},
                    {FieldId::kOwn, odd.own},
                    {FieldId::kPeers, odd.peers},
                    {FieldId::kRatio, odd.own / odd.peers}};
  finding.open = {Question::kStragglerCause};
  ExplainBy(f, gpu, finding);
}

}  // namespace

bool CardsWait(const JobFeatures& f) {
  // A kernel that computes is never so even: its SMs come and go with the step.
  constexpr double kSpread = 0.03;
  return f.gpu.spinning_cards > 0 && !(f.gpu.spin_spread > kSpread);
}

bool ACardWorks(const JobFeatures& f) {
  return std::any_of(f.gpu.gpus.begin(), f.gpu.gpus.end(), [](const RunGpu& gpu) {
    return gpu.spin_seconds <= 0 && gpu.engine >= 0.5 && gpu.sm > kChannels;
  });
}

namespace {

// GPUs without counters of their SMs: a few have run nothing for a minute, and the engines of all
// others never rest. Who computes alone, with the others done, leaves them waiting and not at rest.
bool OthersNeverRest(const JobFeatures& f) {
  const GpuFeatures& gpu = f.gpu;
  if (gpu.cold.empty() || 2 * gpu.cold_cards > gpu.gpus.size()) return false;
  constexpr double kMinuteSeconds = 60;
  return std::all_of(gpu.gpus.begin(), gpu.gpus.end(), [](const RunGpu& of) {
    const bool cold = of.idle_seconds >= kMinuteSeconds && std::isfinite(of.engine);
    return cold || (of.engine >= kPinned && !std::isfinite(of.sm));
  });
}

void NameColdCards(const JobFeatures& f, Finding& finding) {
  Show(f.gpu.cold_evidence, finding);
  for (const RunGpu& gpu : f.gpu.gpus) {
    if (gpu.engine < kPinned) continue;
    Show(gpu.activity_evidence, finding);  // of one that waits
    break;
  }
  if (!finding.ranks.empty()) return;
  finding.ranks = f.gpu.cold;
  if (finding.sub != subs::kLostPeer) finding.sub = subs::kAbsentRank;
  finding.root.push_back(f.gpu.cold_evidence);
  std::erase(finding.open, Question::kHangCulprit);
}

}  // namespace

void AddWaitingCards(const JobFeatures& f, Finding& finding) {
  if (!CardsWait(f)) {
    if (OthersNeverRest(f)) NameColdCards(f, finding);
    return;
  }
  const GpuFeatures& gpu = f.gpu;
  Show(gpu.spin_evidence, finding);
  if (finding.tier == proto::TIER_S || finding.tier == proto::TIER_W) {
    // Text or calls have stopped, and the cards wait: two stores.
    finding.tier = proto::TIER_C;
    finding.cap = std::max(finding.cap, cap::kInferred);
  }
  if (gpu.cold.empty() || 2 * gpu.cold_cards > gpu.gpus.size()) return;
  Show(gpu.cold_evidence, finding);
  if (!finding.ranks.empty()) return;
  finding.ranks = gpu.cold;
  if (finding.sub != subs::kLostPeer) finding.sub = subs::kAbsentRank;
  finding.root.push_back(gpu.cold_evidence);
  std::erase(finding.open, Question::kHangCulprit);
}

namespace {

double NumberOf(const features::Evidence& evidence, FieldId id) {
  const FieldValue* const value = evidence.values.Find(id);
  const double* const number = value == nullptr ? nullptr : std::get_if<double>(&value->value);
  return number == nullptr ? RunGpu::kNone : *number;
}

// An optimizer's step draws as much less than the rest of a step as a wait may, and tells nothing
// without more.
bool IsFaintly(const features::Evidence& waits) {
  constexpr double kWaits = 0.6;
  return waits.values.Text(FieldId::kWhat) == "work_power" &&
         !(NumberOf(waits, FieldId::kRatio) < kWaits);
}

// The GPUs work and wait by turns, and wait for most of the time; where they are all of the job's
// ranks, and none is late, they can wait for nobody. Of ranks elsewhere one may be late: then the
// time must be more than a straggler costs, and the job have chosen a slow way. Generation for a
// reward works little, too, and waits for nobody.
const features::Evidence* MostlyWaits(const JobFeatures& f) {
  constexpr double kAllHere = 0.45, kElsewhere = 0.35, kLate = 0.05;
  const auto found =
      std::find_if(f.evidence.begin(), f.evidence.end(), [](const features::Evidence& evidence) {
        return evidence.kind == features::EvidenceKind::kGpuWaits &&
               evidence.values.Text(FieldId::kWhat).starts_with("work_");
      });
  if (found == f.evidence.end() || f.reward_objective) return nullptr;
  if (!(NumberOf(*found, FieldId::kEngine) >= kPinned)) return nullptr;
  if (f.leads.late.rank < 0 || f.leads.late.lead >= kLate || !WaitForEachOther(f)) return nullptr;
  const bool all_here = static_cast<int32_t>(found->ranks.size()) >= f.world_size;
  if ((!all_here || IsFaintly(*found)) && SlowTransport(f) == nullptr) return nullptr;
  return *found->observed <= (all_here ? kAllHere : kElsewhere) ? &*found : nullptr;
}

}  // namespace

void CapByUnmeasuredTransport(const JobFeatures& f, Finding& finding) {
  if (SlowTransport(f) == nullptr || f.world_size <= 1) return;
  const auto& gpus = f.gpu.gpus;
  if (!gpus.empty() && std::all_of(gpus.begin(), gpus.end(),
                                   [](const RunGpu& gpu) { return std::isfinite(gpu.sm); }))
    return;
  finding.cap = std::min(finding.cap, cap::kEvenOdds);
  finding.open.push_back(Question::kTransportCost);
  Show(f.network.transport_evidence, finding);
}

Finding WaitingOnTheFabric(const JobFeatures& f) {
  if (!RunsWithPeers(f) || !GoesOn(f) || !IsSettled(f)) return {};
  const bool never_works = f.gpu.engine_floor >= kPinned && f.gpu.sm_ceiling <= kChannels;
  const features::Evidence* const waits = never_works ? nullptr : MostlyWaits(f);
  if (!never_works && waits == nullptr) return {};
  constexpr double kFiveMinutes = 300;
  Finding finding = Slow(f, "interconnect", kFiveMinutes);
  finding.component = "fabric";
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  if (never_works) {
    Show(f.gpu.level_evidence, finding);
  } else {
    finding.advice = "waiting";
    Show(static_cast<features::EvidenceRef>(waits - f.evidence.data()), finding);
  }
  Show(f.network.transport_evidence, finding);
  if (SlowTransport(f) != nullptr && (waits == nullptr || !IsFaintly(*waits))) {
    finding.tier = proto::TIER_C;
    finding.cap = cap::kInferred;
  } else {
    // Kernels too small for the card look the same, without any collective.
    finding.cap = cap::kEvenOdds;
    finding.open = {Question::kWaitOrSmallKernels};
  }
  finding.root = finding.shows;
  Show(f.launches.calls_evidence, finding);
  Show(f.collectives.advance_evidence, finding);
  Show(f.step_time_evidence, finding);
  finding.values = {{FieldId::kEngine, f.gpu.engine_floor}, {FieldId::kSm, f.gpu.sm_ceiling}};
  if (waits != nullptr)
    finding.values = {{FieldId::kEngine, NumberOf(*waits, FieldId::kEngine)},
                      {FieldId::kShare, *waits->observed}};
  return finding;
}

Finding OddCard(const JobFeatures& f) {
  if (!RunsWithPeers(f) || !GoesOn(f) || !IsSettled(f) || f.gpu.gpus.size() < 2) return {};
  constexpr double kTwoMinutes = 120;
  if (WorksAlone(f.gpu.busiest_sm, f)) {
    Finding finding = Slow(f, kCard, kTwoMinutes);
    AddOddCard(f, f.gpu.busiest_sm, finding);
    return finding;
  }
  if (!RestsAlone(f.gpu.calmest_engine, f)) return {};
  const RunGpu& resting = f.gpu.gpus[static_cast<size_t>(f.gpu.calmest_engine.at)];
  if (std::any_of(resting.ranks.begin(), resting.ranks.end(),
                  [&f](int32_t rank) { return HasSaved(f, rank, kTwoMinutes); }))
    return {};
  Finding finding = Slow(f, "host_gaps", kTwoMinutes);
  AddOddCard(f, f.gpu.calmest_engine, finding);
  finding.component = "host";
  return finding;
}

namespace {

// Long enough for a habit: a hundred steps, or five minutes. Two are enough for what costs the
// others a fifth of their time, in each of fifteen steps at least.
bool IsHabit(const JobFeatures& f, Timestamp since, double lead = 0) {
  constexpr double kSeconds = 300, kSteps = 100, kMuch = 0.2, kFewSeconds = 120, kFewSteps = 15;
  const double seconds = (f.now - since).seconds();
  const double step = std::isfinite(f.max_step_seconds) ? f.max_step_seconds : kSeconds;
  if (lead >= kMuch && seconds >= std::max(kFewSeconds, kFewSteps * step)) return true;
  return seconds >= std::min(kSeconds, kSteps * step);
}

// A rank that has a stage of the pipeline to itself has its own amount of work.
bool HasOwnStage(const JobFeatures& f) {
  const int32_t stages = f.leads.layout.pipeline;
  return stages > 1 && f.world_size <= stages;
}

// A first save is most of the little that has passed since it began; it leaves what is usual as it
// was.
bool Saves(const JobFeatures& f) {
  constexpr double kNotable = 0.1;
  constexpr int64_t kFew = 3;
  return f.storage.saves >= kFew && f.storage.save_share >= kNotable;
}

}  // namespace

bool StandsOut(const JobFeatures& f, double lead) {
  constexpr double kZ = 5, kIdentity = 0.6;
  const features::LateRank& late = f.leads.late;
  if (late.rank < 0 || late.evidence == features::kNoEvidence || !(late.lead >= lead)) return false;
  if (!f.running || !f.timed || f.Primary() != nullptr || f.world_size <= 1) return false;
  if (!WaitForEachOther(f) || Saves(f)) return false;
  // Of few GPUs one may well draw so much more than the others for nothing.
  constexpr double kMorePower = 0.09, kMuchMorePower = 0.15;
  constexpr size_t kPeers = 4;
  if (IsByPower(f, late.evidence)) {
    if (late.lead < (late.changed ? kMorePower : kMuchMorePower)) return false;
    if (!late.changed && f.gpu.gpus.size() < kPeers) return false;
  }
  // The next one is far from it: else some ranks have more to do than others.
  if (late.next > late.lead / 2 || late.identity < kIdentity) return false;
  return late.changed || (late.z >= kZ && IsHabit(f, late.since, late.lead) && !HasOwnStage(f));
}

Finding LastToArrive(const JobFeatures& f) {
  constexpr double kRatio = 1.1;
  const features::LateRank& late = f.leads.late;
  if (!GoesOn(f) || !StandsOut(f, 1 - 1 / kRatio) || !IsHabit(f, late.since, late.lead)) return {};
  if (!(late.peers > 0)) return {};  // by calls: LateRank decides that
  Finding finding = Slow(f, late.works ? kCard : "host_gaps", 0);
  finding.onset = late.since;
  finding.ranks = {late.rank};
  finding.component = late.works ? "gpu" : "host";
  if (IsByPower(f, late.evidence)) finding.advice = "power";
  Show(late.evidence, finding);
  finding.root = finding.shows;
  finding.open = {Question::kStragglerCause};
  const RunGpu* gpu = nullptr;
  constexpr double kHeldDown = 0.2;
  for (const RunGpu& of : f.gpu.gpus) {
    if (of.ranks != finding.ranks) continue;
    // Heat or its supply is then the cause, and B3 names it.
    if (std::max(of.now.severe_duty, of.before.severe_duty) >= kHeldDown) return {};
    gpu = &of;
    Show(of.throttle_evidence, finding);
    Show(of.latent_evidence, finding);
  }
  if (InLockStep(f)) {
    // Two stores: as many collectives, and not as much waiting inside them.
    finding.tier = proto::TIER_C;
    finding.cap = cap::kInferred;
    Show(f.collectives.advance_evidence, finding);
  }
  Show(f.step_time_evidence, finding);
  finding.values = {{FieldId::kGpu, gpu == nullptr ? int64_t{-1} : gpu->index},
                    {FieldId::kOwn, late.own},
                    {FieldId::kPeers, late.peers},
                    {FieldId::kRatio, late.own / late.peers}};
  if (gpu != nullptr) ExplainBy(f, *gpu, finding);
  return finding;
}

Finding UnevenWork(const JobFeatures& f) {
  // What GPUs draw shows less of it than there is.
  constexpr double kRatio = 1.2, kRatioByPower = 1.15;
  const features::UnevenGroups& groups = f.leads.groups;
  if (groups.kind.empty() || groups.evidence == features::kNoEvidence) return {};
  if (groups.ratio < (IsByPower(f, groups.evidence) ? kRatioByPower : kRatio)) return {};
  if (!RunsWithPeers(f) || !GoesOn(f) || !WaitForEachOther(f) || Saves(f) ||
      !IsHabit(f, groups.since))
    return {};
  // GPUs that are held down need longer for the same work.
  if (!groups.clocks_alike || !(groups.heavy_sm > groups.light_sm)) return {};
  const bool stage = groups.kind == "stage";
  const int32_t size = stage ? f.leads.layout.pipeline : f.leads.layout.expert;
  if (size == 1 || (!stage && size == 0)) return {};
  Finding finding = Slow(f, groups.kind, 0);
  finding.onset = groups.since;
  finding.ranks = groups.heavy;
  finding.component = "job";
  finding.domain = proto::DOMAIN_WORKLOAD;
  if (IsByPower(f, groups.evidence)) finding.advice = "power";
  Show(groups.evidence, finding);
  finding.root = finding.shows;
  if (InLockStep(f) && size > 1) {
    finding.tier = proto::TIER_C;
    finding.cap = cap::kInferred;
  }
  Show(f.collectives.advance_evidence, finding);
  Show(f.step_time_evidence, finding);
  finding.values = {{FieldId::kOwn, groups.heavy_sm},
                    {FieldId::kPeers, groups.light_sm},
                    {FieldId::kRatio, groups.ratio}};
  return finding;
}

FieldValues CardsAlike(const JobFeatures& f, features::EvidenceRef& evidence) {
  constexpr double kAlike = 1.1;
  const OddGpu& sm = f.gpu.busiest_sm;
  if (!f.running || sm.at < 0 || !(sm.peers > 0) || sm.own > kAlike * sm.peers) return {};
  evidence = sm.evidence;
  return {{FieldId::kSm, sm.own}, {FieldId::kPeersSm, sm.peers}};
}

}  // namespace rankscope::families
