// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// B2, B3, C3, D1 and X2 by what the cards show, at the thresholds, on numbers made by hand.
#include "detectors/families/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

using testing::ElementsAre;

features::EvidenceRef Cite(features::JobFeatures& f, features::EvidenceKind kind) {
  features::Evidence evidence;
  evidence.kind = kind;
  evidence.values = {{FieldId::kWhat, "ecc"}};
  f.evidence.push_back(evidence);
  return static_cast<features::EvidenceRef>(f.evidence.size()) - 1;
}

// Two ranks train at full clocks on a card each.
features::JobFeatures Training() {
  features::JobFeatures f;
  f.now = {int64_t{10'000} * 1'000'000'000};
  f.running = f.timed = true;
  f.world_size = 2;
  f.processes_alive = 2;
  f.progress = 100;
  f.steps = 1000;
  f.steps_known = true;
  f.usual_record_seconds = 2;
  f.silence_seconds = 1;
  f.step_seconds = f.early_step_seconds = f.pace_seconds = f.early_pace_seconds = 0.5;
  f.stores[proto::STORE_GPU] = Availability::kUp;
  for (int32_t index = 0; index < 2; ++index) {
    features::RunGpu gpu;
    gpu.index = index;
    gpu.ranks = {index};
    gpu.worked = true;
    gpu.engine = 0.95;
    gpu.busiest_minute = 0.97;
    gpu.clock = gpu.best_clock = gpu.peers_clock = 1.98e9;
    gpu.own_bytes = 4e10;
    gpu.now = gpu.before = {60, 58, 0, 0, 60};
    gpu.activity_evidence = Cite(f, features::EvidenceKind::kGpuActivity);
    gpu.throttle_evidence = Cite(f, features::EvidenceKind::kGpuThrottle);
    f.gpu.gpus.push_back(gpu);
  }
  return f;
}

// The second card is hot, and each step waits for it.
features::JobFeatures Hot() {
  features::JobFeatures f = Training();
  features::RunGpu& gpu = f.gpu.gpus[1];
  gpu.now = gpu.before = {60, 58, 0.9, 0x40, 60};
  gpu.clock = 1.2e9;
  f.step_seconds = f.pace_seconds = 0.8;
  return f;
}

TEST(Throttle, IsHeatThatSlowsTheSteps) {
  const Finding finding = gpu_throttle::Evaluate(Hot());
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "thermal");
  EXPECT_THAT(finding.ranks, ElementsAre(1));
  EXPECT_EQ(finding.tier, proto::TIER_C);
  EXPECT_FALSE(gpu_throttle::Evaluate(Training()).matched);
  features::JobFeatures f = Hot();
  f.gpu.gpus[1].now.severe_bits = 0x80;
  EXPECT_EQ(gpu_throttle::Evaluate(f).sub, "power_brake");
}

TEST(Throttle, IsNotSaid) {
  features::JobFeatures f = Hot();
  f.step_seconds = f.pace_seconds = 0.549;
  EXPECT_FALSE(gpu_throttle::Evaluate(f).matched) << "the steps do not follow";
  EXPECT_EQ(gpu_throttle::RuleOut(f).state, proto::FamilyState::RULED_OUT);
  f = Hot();
  f.gpu.gpus[1].clock = 0.86 * 1.98e9;
  EXPECT_FALSE(gpu_throttle::Evaluate(f).matched) << "nor does the clock";
  f = Hot();
  f.gpu.gpus[1].before.severe_duty = 0.19;
  EXPECT_FALSE(gpu_throttle::Evaluate(f).matched) << "for one minute";
  f = Hot();
  f.gpu.gpus[1].now.busy = 29;
  EXPECT_FALSE(gpu_throttle::Evaluate(f).matched) << "idle for most of it";
  f = Hot();
  f.gpu.gpus[1].best_clock = f.gpu.gpus[1].peers_clock = 0;
  EXPECT_FALSE(gpu_throttle::Evaluate(f).matched) << "nobody knows what it could do";
  f = Hot();
  f.step_seconds = f.early_step_seconds = f.pace_seconds = f.early_pace_seconds = logs::kAbsent;
  EXPECT_EQ(gpu_throttle::Evaluate(f).tier, proto::TIER_S) << "what it costs is not known";
}

TEST(NothingIsClaimed, OfWhatACardDoesNotTell) {
  features::JobFeatures f = Training();
  f.stores[proto::STORE_KERNEL] = Availability::kUp;
  for (features::RunGpu& gpu : f.gpu.gpus) gpu.errors_counted = true;
  EXPECT_EQ(gpu_throttle::RuleOut(f).state, proto::FamilyState::RULED_OUT);
  EXPECT_EQ(gpu_hardware::RuleOut(f).state, proto::FamilyState::RULED_OUT);
  f.gpu.gpus[1].errors_counted = false;
  EXPECT_EQ(gpu_hardware::RuleOut(f).state, proto::FamilyState::NOT_DECIDABLE) << "without ECC";
  f.gpu.gpus[1].errors_counted = true;
  f.stores[proto::STORE_KERNEL] = Availability::kUnspecified;
  EXPECT_EQ(gpu_hardware::RuleOut(f).state, proto::FamilyState::NOT_DECIDABLE)
      << "nobody hears of Xids";
  for (features::RunGpu& gpu : f.gpu.gpus) gpu.now.told = 0;
  EXPECT_EQ(gpu_throttle::RuleOut(f).state, proto::FamilyState::NOT_DECIDABLE);
}

// One process whose card has stood still for so long.
features::JobFeatures Idle(double seconds) {
  features::JobFeatures f = Training();
  f.world_size = 1;
  f.gpu.gpus.pop_back();
  f.gpu.gpus[0].engine = 0;
  f.gpu.gpus[0].idle_seconds = f.silence_seconds = seconds;
  f.silence_seconds = seconds + 1;
  return f;
}

TEST(IdleCards, HoldMemoryAndRunNothing) {
  EXPECT_FALSE(IdleCards(Idle(299)).matched);
  ASSERT_TRUE(IdleCards(Idle(300)).matched);
  EXPECT_EQ(idle_gpu_hang::Evaluate(Idle(300)).sub, "idle");
  features::JobFeatures f = Idle(900);
  f.gpu.gpus[0].worked = false;
  EXPECT_FALSE(IdleCards(f).matched) << "nobody knows what its host does";
  features::RankWait still;
  still.rank = 0;
  f.waits.ranks.push_back(still);
  EXPECT_TRUE(IdleCards(f).matched) << "it has not begun for too long";
  f.gpu.gpus[0].idle_seconds = 599;
  EXPECT_FALSE(IdleCards(f).matched);
  f = Idle(900);
  f.gpu.gpus[0].own_bytes = 0;
  EXPECT_FALSE(IdleCards(f).matched);
  f = Idle(900);
  f.silence_seconds = 20;
  EXPECT_FALSE(IdleCards(f).matched) << "steps come, on the CPU";
  f = Idle(900);
  features::RankWait wait;
  wait.rank = 0;
  wait.running_share = 0.2;
  f.waits.ranks.push_back(wait);
  EXPECT_FALSE(IdleCards(f).matched) << "the host works";
  f.waits.ranks[0].running_share = 0.01;
  EXPECT_TRUE(IdleCards(f).matched);
  f.waits.ranks[0].workers = 4;
  f.waits.ranks[0].workers_still_seconds = 5;
  EXPECT_FALSE(IdleCards(f).matched) << "or others for it";
  f = Idle(900);
  f.phase = proto::PHASE_EVAL;
  EXPECT_FALSE(IdleCards(f).matched);
  f = Idle(900);
  f.world_size = 2;
  EXPECT_FALSE(IdleCards(f).matched) << "who waits for whom is another question";
}

// One process with two cards that it has never touched.
features::JobFeatures Untouched(double seconds) {
  features::JobFeatures f;
  f.now = {int64_t{10'000} * 1'000'000'000};
  f.running = f.timed = true;
  f.world_size = 1;
  for (int32_t index = 2; index < 4; ++index) {
    features::UnusedGpu gpu;
    gpu.index = index;
    gpu.source = "slurm";
    gpu.told = true;
    gpu.looked_seconds = seconds;
    gpu.evidence = Cite(f, features::EvidenceKind::kGpuUnused);
    f.gpu.unused.push_back(gpu);
  }
  features::RankWait rank;
  rank.rank = 0;
  rank.has_run = true;
  rank.main = WaitClass::kOther;
  rank.still_seconds = seconds;
  rank.evidence = Cite(f, features::EvidenceKind::kThreads);
  f.waits.ranks.push_back(rank);
  return f;
}

TEST(NeverAttached, IsAHangAfterTenMinutes) {
  EXPECT_FALSE(NeverAttached(Untouched(599)).matched);
  const Finding finding = idle_gpu_hang::Evaluate(Untouched(600));
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "never_attached");
  EXPECT_EQ(finding.tier, proto::TIER_S);
  EXPECT_THAT(finding.ranks, ElementsAre(0));
  EXPECT_EQ(finding.shows.size(), 3u);
}

TEST(NeverAttached, HasTheLibraryMappedAtMost) {
  features::JobFeatures f = Untouched(600);
  f.launches.ranks.emplace_back();
  EXPECT_TRUE(NeverAttached(f).matched);
}

TEST(NeverAttached, IsLessSureWhereOtherRanksAreNotSeen) {
  features::JobFeatures f = Untouched(600);
  f.world_size = 2;
  const Finding finding = NeverAttached(f);
  ASSERT_TRUE(finding.matched);
  EXPECT_LE(finding.cap, cap::kEvenOdds);
}

TEST(NeverAttached, IsAGuessOfWhoSleeps) {
  features::JobFeatures f = Untouched(600);
  f.waits.ranks[0].main = WaitClass::kSleep;
  const Finding finding = NeverAttached(f);
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.tier, proto::TIER_W);
  f.waits.ranks[0].still_seconds = 599;
  EXPECT_FALSE(NeverAttached(f).matched) << "it wakes up now and then";
}

TEST(NeverAttached, IsNotSaid) {
  struct Row {
    std::string_view why;
    void (*change)(features::JobFeatures& f);
  };
  const Row rows[] = {
      {"nobody says that it has a card", [](auto& f) { f.gpu.unused.clear(); }},
      {"it is on another", [](auto& f) { f.gpu.gpus.emplace_back(); }},
      {"told to see none", [](auto& f) { f.gpu.hidden = true; }},
      {"instances look idle", [](auto& f) { f.gpu.divided = true; }},
      {"a notebook", [](auto& f) { f.gpu.interactive = true; }},
      {"steps come, on the CPU", [](auto& f) { f.progress = 1; }},
      {"it waits for another rank's word",
       [](auto& f) {
         f.world_size = 2;
         f.waits.ranks[0].main = WaitClass::kSocket;
       }},
      {"the group is being formed",
       [](auto& f) {
         f.world_size = 2;
         f.in_rendezvous = true;
       }},
      {"nobody looks at its threads", [](auto& f) { f.waits.ranks.clear(); }},
      {"it ran a minute ago", [](auto& f) { f.waits.ranks[0].still_seconds = 60; }},
      {"it has never done anything", [](auto& f) { f.waits.ranks[0].has_run = false; }},
      {"others work for it", [](auto& f) { f.waits.ranks[0].workers = 2; }},
      {"processes are not told", [](auto& f) { f.gpu.unused[1].told = false; }},
      {"something runs there", [](auto& f) { f.gpu.unused[1].ran = true; }},
      {"a context's memory", [](auto& f) { f.gpu.unused[1].rise = 3e8; }},
      {"somebody else is there", [](auto& f) { f.gpu.unused[1].foreign_bytes = 1; }},
      {"the other has been looked at for a minute",
       [](auto& f) { f.gpu.unused[1].looked_seconds = 60; }},
      {"it calls CUDA", [](auto& f) { f.launches.ranks.emplace_back().launches = 1; }},
  };
  for (const Row& row : rows) {
    features::JobFeatures f = Untouched(900);
    ASSERT_TRUE(NeverAttached(f).matched);
    row.change(f);
    EXPECT_FALSE(NeverAttached(f).matched) << row.why;
  }
}

TEST(IdlingCards, WhileStepsCome) {
  features::JobFeatures f = Training();
  for (features::RunGpu& gpu : f.gpu.gpus) gpu.engine = gpu.busiest_minute = 0.2;
  EXPECT_EQ(gpu_underutilized::Evaluate(f).sub, "low_duty");
  f.gpu.gpus[0].busiest_minute = 0.21;
  EXPECT_FALSE(gpu_underutilized::Evaluate(f).matched);
  f.gpu.gpus[0].busiest_minute = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(gpu_underutilized::Evaluate(f).matched) << "not known for five minutes";
  f.gpu.gpus[0].busiest_minute = 0.2;
  f.steps = 49;
  EXPECT_FALSE(gpu_underutilized::Evaluate(f).matched) << "the first steps compile";
  f.steps = 1000;
  f.silence_seconds = 11;
  EXPECT_FALSE(gpu_underutilized::Evaluate(f).matched) << "no step comes";
  EXPECT_EQ(gpu_underutilized::RuleOut(Training()).state, proto::FamilyState::RULED_OUT);
}

// A run that a CUDA error ended, of rank 1.
struct Failed {
  windows::Candidate candidate;
  features::JobFeatures f = Training();

  Failed(logs::IncidentKind kind, double risen_before) {
    candidate.incident.kind = kind;
    candidate.incident.t = f.now;
    candidate.incident.rank = 1;
    candidate.incident.fields = {{"error", "launch_failure"}};
    candidate.ranks = {1};
    features::Cause cause;
    cause.candidate = &candidate;
    cause.evidence = Cite(f, features::EvidenceKind::kCudaError);
    f.causes.push_back(cause);
    features::RunGpu& gpu = f.gpu.gpus[1];
    gpu.errors = 1;
    gpu.errors_risen = f.now - Seconds(risen_before);
    gpu.errors_evidence = Cite(f, features::EvidenceKind::kGpuErrors);
  }
};

TEST(ErrorsUnderTheRun, ExplainTheCardsOwnFailure) {
  const Failed failed(logs::IncidentKind::kCudaError, 30);
  const Finding finding = gpu_hardware::Evaluate(failed.f);
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "ecc");
  EXPECT_THAT(finding.ranks, ElementsAre(1));
  EXPECT_EQ(FailedUnder(failed.f, failed.f.causes[0]), &failed.f.gpu.gpus[1]);
}

TEST(ErrorsUnderTheRun, OfLongAgoOrOfAnotherCardDoNot) {
  EXPECT_FALSE(gpu_hardware::Evaluate(Failed(logs::IncidentKind::kCudaError, 601).f).matched);
  EXPECT_FALSE(gpu_hardware::Evaluate(Failed(logs::IncidentKind::kCudaError, -61).f).matched);
  EXPECT_FALSE(gpu_hardware::Evaluate(Failed(logs::IncidentKind::kException, 30).f).matched);
  Failed other(logs::IncidentKind::kCudaError, 30);
  other.f.gpu.gpus[1].ranks = {0};
  EXPECT_FALSE(gpu_hardware::Evaluate(other.f).matched);
  Failed none(logs::IncidentKind::kCudaError, 30);
  none.f.gpu.gpus[1].errors = 0;
  EXPECT_FALSE(gpu_hardware::Evaluate(none.f).matched);
}

TEST(SharedCards, AreCountedByTheDriver) {
  Failed failed(logs::IncidentKind::kCudaOom, 30);
  failed.candidate.incident.fields.clear();  // "CUDA error: out of memory", and no number
  EXPECT_FALSE(gpu_cotenant::Evaluate(failed.f).matched);
  failed.f.gpu.gpus[1].foreign_bytes = 2.0 * (1 << 30);
  EXPECT_TRUE(gpu_cotenant::Evaluate(failed.f).matched);
  EXPECT_FALSE(cuda_oom::Evaluate(failed.f).matched);
  std::swap(failed.f.gpu.gpus[0].foreign_bytes, failed.f.gpu.gpus[1].foreign_bytes);
  EXPECT_FALSE(gpu_cotenant::Evaluate(failed.f).matched) << "on another rank's card";
}

// No rank runs out because another did: each on its own GPU, of the same plan or of another part.
TEST(CudaOom, NamesEveryRankThatRanOut) {
  Failed failed(logs::IncidentKind::kCudaOom, 30);
  failed.candidate.incident.fields = {{"requested", "1000"}};
  windows::Candidate peer = failed.candidate;
  peer.ranks = {3};
  features::Cause cause = failed.f.causes[0];
  cause.candidate = &peer;
  cause.role = features::Cause::Role::kCascade;
  failed.f.causes.push_back(cause);
  EXPECT_THAT(cuda_oom::Evaluate(failed.f).ranks, ElementsAre(1, 3));
  peer.incident.fields = {{"requested", "2000"}};
  EXPECT_THAT(cuda_oom::Evaluate(failed.f).ranks, ElementsAre(1, 3)) << "of another stage";
  failed.f.causes.back().role = features::Cause::Role::kRecovered;
  EXPECT_THAT(cuda_oom::Evaluate(failed.f).ranks, ElementsAre(1)) << "that one went on";
}

}  // namespace
}  // namespace rankscope::families
