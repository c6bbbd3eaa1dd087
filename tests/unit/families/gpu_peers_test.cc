// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// C2, D2 and D3 by what the cards of a run show beside each other, at the thresholds, on numbers
// made by hand.
#include "detectors/families/gpu_peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

features::EvidenceRef Cite(features::JobFeatures& f, features::EvidenceKind kind) {
  features::Evidence evidence;
  evidence.kind = kind;
  f.evidence.push_back(evidence);
  return static_cast<features::EvidenceRef>(f.evidence.size()) - 1;
}

// Four ranks on a card each, which wait inside collectives for most of a step.
features::JobFeatures Waiting() {
  features::JobFeatures f;
  f.now = {int64_t{10'000} * 1'000'000'000};
  f.running = f.timed = true;
  f.world_size = 4;
  f.processes_alive = 4;
  f.progress = 100;
  f.steps = 1000;
  f.steps_known = true;
  f.usual_record_seconds = 2;
  f.silence_seconds = 1;
  f.stores[proto::STORE_GPU] = Availability::kUp;
  for (int32_t index = 0; index < 4; ++index) {
    features::RunGpu gpu;
    gpu.index = index;
    gpu.ranks = {index};
    gpu.worked = true;
    gpu.engine = gpu.engine_before = 0.99;
    gpu.sm = gpu.sm_before = 0.12;
    gpu.activity_evidence = Cite(f, features::EvidenceKind::kGpuActivity);
    f.gpu.gpus.push_back(gpu);
  }
  f.gpu.engine_floor = 0.98;
  f.gpu.sm_ceiling = 0.13;
  f.gpu.level_evidence = Cite(f, features::EvidenceKind::kGpuWaits);
  return f;
}

// And the third card works all the time.
features::JobFeatures Late() {
  features::JobFeatures f = Waiting();
  features::RunGpu& gpu = f.gpu.gpus[2];
  gpu.sm = gpu.sm_before = 0.55;
  f.gpu.sm_ceiling = 0.56;
  f.gpu.busiest_sm = {2, 0.55, 0.12, 0.55, 0.12, Cite(f, features::EvidenceKind::kGpuPeers)};
  return f;
}

TEST(OddCard, WorksWhileItsPeersWait) {
  const Finding finding = OddCard(Late());
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "card");
  EXPECT_THAT(finding.ranks, ElementsAre(2));
  EXPECT_LE(finding.cap, cap::kOneSource) << "one store";
}

TEST(OddCard, IsSureWhereAllEnterAsMany) {
  features::JobFeatures f = Late();
  f.collectives.entered = 5000;
  for (int32_t rank = 0; rank < 4; ++rank) {
    features::RankCollectives collectives;
    collectives.rank = rank;
    collectives.entered = 5000;
    f.collectives.ranks.push_back(collectives);
  }
  EXPECT_EQ(OddCard(f).tier, proto::TIER_C);
  f.collectives.ranks[1].entered = 3000;
  EXPECT_EQ(OddCard(f).tier, proto::TIER_S) << "they do not do the same";
}

TEST(OddCard, IsNotASecondThatWorks) {
  features::JobFeatures f = Late();
  f.gpu.gpus[3].sm = f.gpu.gpus[3].sm_before = 0.5;
  EXPECT_FALSE(OddCard(f).matched) << "a stage of the pipeline";
}

TEST(OddCard, IsNotOneMinute) {
  features::JobFeatures f = Late();
  f.gpu.busiest_sm.own_before = 0.13;
  EXPECT_FALSE(OddCard(f).matched);
}

TEST(OddCard, IsNotWherePeersWorkToo) {
  features::JobFeatures f = Late();
  for (const size_t i : {0u, 1u, 3u}) f.gpu.gpus[i].sm = f.gpu.gpus[i].sm_before = 0.36;
  f.gpu.busiest_sm.peers = f.gpu.busiest_sm.peers_before = 0.36;
  EXPECT_FALSE(OddCard(f).matched) << "0.55 against 0.36 is no card that waits";
}

TEST(OddCard, IsNotWhileRankZeroSaves) {
  features::JobFeatures f = Late();
  f.phase = proto::PHASE_SAVE;
  EXPECT_FALSE(OddCard(f).matched);
}

TEST(OddCard, OfAHostThatDoesNotFeedIt) {
  features::JobFeatures f = Waiting();
  features::RunGpu& gpu = f.gpu.gpus[1];
  gpu.engine = gpu.engine_before = 0.5;
  gpu.sm = gpu.sm_before = 0.3;
  f.gpu.calmest_engine = {1, 0.5, 0.99, 0.5, 0.99, Cite(f, features::EvidenceKind::kGpuPeers)};
  const Finding finding = OddCard(f);
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "host_gaps");
  EXPECT_THAT(finding.ranks, ElementsAre(1));
  for (const size_t i : {0u, 2u, 3u}) f.gpu.gpus[i].sm = 0.6;
  EXPECT_FALSE(OddCard(f).matched) << "they have work, and it has none: no one waits for it";
}

TEST(Fabric, IsSuspectedOfCardsThatWait) {
  const Finding finding = WaitingOnTheFabric(Waiting());
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "interconnect");
  EXPECT_LE(finding.cap, cap::kEvenOdds);
  EXPECT_THAT(finding.open, Contains(Question::kWaitOrSmallKernels));
}

TEST(Fabric, IsNamedWhereNcclTellsOfSockets) {
  features::JobFeatures f = Waiting();
  f.network.transport_evidence = Cite(f, features::EvidenceKind::kTransport);
  const Finding finding = WaitingOnTheFabric(f);
  EXPECT_EQ(finding.tier, proto::TIER_C);
  EXPECT_THAT(finding.open, Not(Contains(Question::kWaitOrSmallKernels)));
}

TEST(Fabric, IsNotWhereOneCardWorksOrNothingGoesOn) {
  EXPECT_FALSE(WaitingOnTheFabric(Late()).matched);
  features::JobFeatures f = Waiting();
  f.silence_seconds = 1000;
  EXPECT_FALSE(WaitingOnTheFabric(f).matched) << "a hang";
  f = Waiting();
  f.steps = 20;
  EXPECT_FALSE(WaitingOnTheFabric(f).matched) << "it compiles";
  f = Waiting();
  f.world_size = 1;
  EXPECT_FALSE(WaitingOnTheFabric(f).matched);
  f = Waiting();
  f.gpu.sm_ceiling = features::RunGpu::kNone;
  EXPECT_FALSE(WaitingOnTheFabric(f).matched) << "a card that does not tell of its SMs";
}

// By turns the GPUs work and wait, and they work for `share` of the time.
features::JobFeatures ByTurns(std::string_view what, double share, double apart = 0.4) {
  features::JobFeatures f = Waiting();
  f.gpu.sm_ceiling = what == "work_sm" ? 0.4 : features::RunGpu::kNone;
  f.leads.late.rank = 1;
  f.leads.late.lead = 0.01;
  features::Evidence evidence;
  evidence.kind = features::EvidenceKind::kGpuWaits;
  evidence.observed = share;
  evidence.ranks = {0, 1, 2, 3};
  evidence.values = {
      {FieldId::kWhat, std::string(what)}, {FieldId::kEngine, 0.98}, {FieldId::kRatio, apart}};
  f.evidence.push_back(evidence);
  return f;
}

TEST(Fabric, IsSuspectedOfCardsThatWaitForMostOfEachStep) {
  for (const std::string_view what : {"work_sm", "work_power"}) {
    const Finding finding = WaitingOnTheFabric(ByTurns(what, 0.4));
    ASSERT_TRUE(finding.matched) << what;
    EXPECT_EQ(finding.sub, "interconnect");
    EXPECT_EQ(finding.advice, "waiting");
    EXPECT_LE(finding.cap, cap::kEvenOdds);
    EXPECT_FALSE(WaitingOnTheFabric(ByTurns(what, 0.6)).matched) << "a usual share";
  }
}

// The low level of the power is two thirds of the high one: an optimizer's step looks the same.
TEST(Fabric, IsFaintWhereTheCardsDrawTwoThirds) {
  features::JobFeatures f = ByTurns("work_power", 0.3, 0.65);
  EXPECT_FALSE(WaitingOnTheFabric(f).matched);
  f.network.transport_evidence = Cite(f, features::EvidenceKind::kTransport);
  const Finding finding = WaitingOnTheFabric(f);
  EXPECT_TRUE(finding.matched);
  EXPECT_EQ(finding.cap, cap::kEvenOdds);
  EXPECT_THAT(finding.open, Contains(Question::kWaitOrSmallKernels));
}

TEST(Fabric, IsNotWhereTheyMayWaitForAnotherRank) {
  features::JobFeatures f = ByTurns("work_sm", 0.3);
  f.leads.late.lead = 0.1;
  EXPECT_FALSE(WaitingOnTheFabric(f).matched) << "one of them is late";
  f = ByTurns("work_sm", 0.3);
  f.world_size = 8;
  EXPECT_FALSE(WaitingOnTheFabric(f).matched) << "one elsewhere may be";
  f.network.transport_evidence = Cite(f, features::EvidenceKind::kTransport);
  EXPECT_EQ(WaitingOnTheFabric(f).tier, proto::TIER_C);
  f = ByTurns("work_power", 0.4);
  f.world_size = 8;
  f.network.transport_evidence = Cite(f, features::EvidenceKind::kTransport);
  EXPECT_FALSE(WaitingOnTheFabric(f).matched) << "a straggler elsewhere costs as much";
  f = ByTurns("work_power", 0.3);
  f.reward_objective = true;
  EXPECT_FALSE(WaitingOnTheFabric(f).matched) << "generation works little, and waits for nobody";
}

// Nobody has printed a word for long, three cards wait and one has nothing to do.
features::JobFeatures Frozen() {
  features::JobFeatures f = Waiting();
  f.silence_seconds = 1000;
  f.gpu.spinning = {0, 1, 3};
  f.gpu.spinning_cards = 3;
  f.gpu.spin_seconds = 900;
  f.gpu.spin_sm = 0.12;
  f.gpu.spin_spread = 0.004;
  f.gpu.spin_evidence = Cite(f, features::EvidenceKind::kGpuWaits);
  f.gpu.cold = {2};
  f.gpu.cold_cards = 1;
  f.gpu.cold_evidence = Cite(f, features::EvidenceKind::kGpuWaits);
  for (features::RunGpu& gpu : f.gpu.gpus) gpu.spin_seconds = 900;
  f.gpu.gpus[2].engine = f.gpu.gpus[2].sm = f.gpu.gpus[2].spin_seconds = 0;
  f.silence_evidence = Cite(f, features::EvidenceKind::kSilence);
  return f;
}

TEST(Frozen, NamesTheRankWhoseCardIsCold) {
  const Finding finding = collective_hang::Evaluate(Frozen());
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "absent_rank");
  EXPECT_THAT(finding.ranks, ElementsAre(2));
  EXPECT_EQ(finding.tier, proto::TIER_C);
  EXPECT_THAT(finding.open, Not(Contains(Question::kHangCulprit)));
}

TEST(Frozen, NamesNobodyWhereMostAreCold) {
  features::JobFeatures f = Frozen();
  f.gpu.spinning_cards = 1;
  f.gpu.cold = {1, 2, 3};
  f.gpu.cold_cards = 3;
  const Finding finding = collective_hang::Evaluate(f);
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_THAT(finding.open, Contains(Question::kHangCulprit));
}

TEST(Frozen, IsNotWhereACardComputes) {
  features::JobFeatures f = Frozen();
  f.gpu.gpus[2].engine = 0.95;
  f.gpu.gpus[2].sm = 0.6;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched) << "one rank evaluates for the others";
  f.silence_seconds = 3600;
  EXPECT_TRUE(collective_hang::Evaluate(f).matched) << "for an hour";
}

// Rank 2 arrives last: its peers wait for it for 12 % of the time.
features::JobFeatures Last() {
  features::JobFeatures f = Waiting();
  for (features::RunGpu& gpu : f.gpu.gpus) gpu.sm = gpu.sm_before = 0.5;
  f.step_seconds = 1;
  features::LateRank& late = f.leads.late;
  late.rank = 2;
  late.lead = 0.12;
  late.since = f.now - Seconds(400);
  late.z = 8;
  late.next = 0.01;
  late.identity = 0.9;
  late.works = true;
  late.own = 0.6;
  late.peers = 0.5;
  late.evidence = Cite(f, features::EvidenceKind::kGpuPeers);
  return f;
}

TEST(LastToArrive, IsTheStraggler) {
  const Finding finding = LastToArrive(Last());
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "card");
  EXPECT_THAT(finding.ranks, ElementsAre(2));
}

TEST(LastToArrive, IsAWarningBelowTenPerCent) {
  features::JobFeatures f = Last();
  f.leads.late.lead = 0.06;
  EXPECT_FALSE(LastToArrive(f).matched);
  EXPECT_TRUE(StandsOut(f, 0.05));
}

TEST(LastToArrive, IsNobodyWhereAnotherIsAlmostAsLate) {
  features::JobFeatures f = Last();
  f.leads.late.next = 0.1;
  EXPECT_FALSE(StandsOut(f, 0.05));
}

TEST(LastToArrive, IsNobodyWhereItIsAnotherRankEachTime) {
  features::JobFeatures f = Last();
  f.leads.late.identity = 0.3;
  EXPECT_FALSE(StandsOut(f, 0.05));
}

TEST(LastToArrive, NeedsRanksThatWaitForEachOther) {
  features::JobFeatures f = Last();
  f.stores[proto::STORE_NCCL] = Availability::kUp;
  EXPECT_FALSE(StandsOut(f, 0.05)) << "they enter no collectives";
}

// A first save is most of the little that has passed since it began.
TEST(LastToArrive, IsTheStragglerAfterAFirstSave) {
  features::JobFeatures f = Last();
  f.storage.saves = 1;
  f.storage.save_share = 0.5;
  EXPECT_TRUE(LastToArrive(f).matched);
  f.storage.saves = 3;
  EXPECT_FALSE(LastToArrive(f).matched) << "who saves all the time is late by that";
}

// Of what GPUs draw: they differ by some percent as they are made.
TEST(LastToArrive, TakesMoreThanADifferenceOfPower) {
  features::JobFeatures f = Last();
  f.evidence[static_cast<size_t>(f.leads.late.evidence)].unit = "W";
  EXPECT_FALSE(LastToArrive(f).matched) << "12 % more from the beginning may be the GPU";
  f.leads.late.lead = 0.16;
  const Finding finding = LastToArrive(f);
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.advice, "power");
  f.leads.late.lead = 0.12;
  f.leads.late.changed = true;
  EXPECT_TRUE(LastToArrive(f).matched) << "it was not so before";
  f.leads.late.lead = 0.06;
  EXPECT_FALSE(StandsOut(f, 0.03)) << "a warmer GPU draws more";
}

TEST(LastToArrive, MayHaveAStageToItself) {
  features::JobFeatures f = Last();
  f.leads.layout.pipeline = 4;
  EXPECT_FALSE(StandsOut(f, 0.05));
  f.leads.late.changed = true;
  EXPECT_TRUE(StandsOut(f, 0.05)) << "a stage does not grow";
}

TEST(LastToArrive, IsLeftToB3WhereHeatHoldsItDown) {
  features::JobFeatures f = Last();
  f.gpu.gpus[2].now.severe_duty = 0.5;
  EXPECT_FALSE(LastToArrive(f).matched);
}

// Ranks 2 and 3 have more to do.
features::JobFeatures Stages() {
  features::JobFeatures f = Last();
  f.leads.late.next = 0.12;
  features::UnevenGroups& groups = f.leads.groups;
  groups.kind = "stage";
  groups.heavy = {2, 3};
  groups.groups = 2;
  groups.ratio = 1.3;
  groups.heavy_sm = 0.6;
  groups.light_sm = 0.5;
  groups.since = f.now - Seconds(400);
  groups.evidence = f.leads.late.evidence;
  return f;
}

TEST(UnevenWork, IsOfStages) {
  const Finding finding = UnevenWork(Stages());
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "stage");
  EXPECT_THAT(finding.ranks, ElementsAre(2, 3));
  EXPECT_LE(finding.cap, cap::kOneSource) << "one store, and nobody says how the model is cut";
  EXPECT_FALSE(LastToArrive(Stages()).matched);
}

TEST(UnevenWork, IsNoneWithoutStages) {
  features::JobFeatures f = Stages();
  f.leads.layout.pipeline = 1;
  EXPECT_FALSE(UnevenWork(f).matched);
}

TEST(UnevenWork, IsOfExpertsOnlyWhereThereAreAny) {
  features::JobFeatures f = Stages();
  f.leads.groups.kind = "expert";
  EXPECT_FALSE(UnevenWork(f).matched);
  f.leads.layout.expert = 4;
  EXPECT_TRUE(UnevenWork(f).matched);
}

TEST(UnevenWork, IsNotThatOfSlowerGpus) {
  features::JobFeatures f = Stages();
  f.leads.groups.clocks_alike = false;
  EXPECT_FALSE(UnevenWork(f).matched);
}

}  // namespace
}  // namespace rankscope::families
