// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// C2, D1, D2, D3 and B1 by calls into CUDA and NCCL: on numbers made by hand, at their thresholds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "detectors/families/rows.h"
#include "detectors/families/standstill.h"

namespace rankscope::families {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

features::EvidenceRef Cite(features::JobFeatures& f, features::EvidenceKind kind,
                           double observed = 0) {
  features::Evidence evidence;
  evidence.kind = kind;
  evidence.observed = observed;
  f.evidence.push_back(evidence);
  return static_cast<features::EvidenceRef>(f.evidence.size()) - 1;
}

features::JobFeatures Running() {
  features::JobFeatures f;
  f.now = {int64_t{10'000} * 1'000'000'000};
  f.running = f.timed = true;
  f.world_size = 4;
  f.processes_alive = 4;
  f.stores[proto::STORE_NCCL] = f.stores[proto::STORE_CUDA] = Availability::kUp;
  return f;
}

// Rank 2 has not entered what the others are in; nothing moved for so long.
features::JobFeatures Standing(double seconds) {
  features::JobFeatures f = Running();
  features::CollectiveFeatures& c = f.collectives;
  c.ranks.resize(4);
  c.asked = true;
  c.entered = 5000;
  c.usual_pause = c.longest_pause = 1;
  c.seconds_since_advance = c.wait_seconds = c.absent_since_launch = seconds;
  c.waiting = {0, 1, 3};
  c.absent = {2};
  c.absent_evidence = Cite(f, features::EvidenceKind::kCollectives, seconds);
  c.waiting_evidence = Cite(f, features::EvidenceKind::kCollectives, seconds);
  c.advance_evidence = Cite(f, features::EvidenceKind::kCollectives, seconds);
  f.launches.seconds_since_launch = seconds;
  return f;
}

TEST(Standstill, NamesTheRankThatIsNotInIt) {
  EXPECT_FALSE(collective_hang::Evaluate(Standing(59.9)).matched);
  const Finding finding = collective_hang::Evaluate(Standing(60));
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "absent_rank");
  EXPECT_THAT(finding.ranks, ElementsAre(2));
  EXPECT_EQ(finding.tier, proto::TIER_C);
  EXPECT_THAT(finding.open, Not(Contains(Question::kHangCulprit)));
  EXPECT_THAT(finding.open, Contains(Question::kHangTrigger));
}

TEST(Standstill, WaitsAsLongAsThisRunIsUsedTo) {
  features::JobFeatures f = Standing(100);
  f.collectives.usual_pause = 12;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched) << "ten steps";
  f.collectives.usual_pause = 1;
  f.collectives.longest_pause = 50;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched) << "it saves that long, again and again";
  f = Standing(601);
  f.collectives.longest_pause = 900;
  EXPECT_TRUE(collective_hang::Evaluate(f).matched) << "but nobody waits for ever";
  f = Standing(100);
  f.step_seconds = 11;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched) << "ten printed steps";
  f = Standing(599);
  f.phase = proto::PHASE_SAVE;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched) << "the text says that it saves";
}

TEST(Standstill, NotWhereTheAbsentRankHasSomethingToDo) {
  features::JobFeatures f = Standing(300);
  f.collectives.absent_since_launch = 0.2;
  EXPECT_EQ(AbsenceOf(f), Absence::kBusyCard);
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f = Standing(300);
  f.collectives.absent_written_bytes = 1e9;
  EXPECT_EQ(AbsenceOf(f), Absence::kWriting);
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f = Standing(601);
  f.collectives.absent_written_bytes = 1e9;
  EXPECT_TRUE(collective_hang::Evaluate(f).matched) << "ten minutes of one save";
  f = Standing(300);
  f.collectives.absent_cpu_share = 0.98;
  EXPECT_EQ(AbsenceOf(f), Absence::kBusyHost);
  EXPECT_EQ(collective_hang::Evaluate(f).tier, proto::TIER_W) << "it may be compiling";
}

TEST(Standstill, NotWithoutAHabitNorAWaiterNorAStore) {
  features::JobFeatures f = Standing(300);
  f.collectives.entered = 60;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched) << "the first step compiles";
  f.progress = 3;
  f.silence_seconds = 300;
  EXPECT_TRUE(collective_hang::Evaluate(f).matched) << "training records say that it trained";
  f = Standing(601);
  f.collectives.entered = 0;
  EXPECT_TRUE(collective_hang::Evaluate(f).matched) << "heard after it had stopped";
  EXPECT_LE(collective_hang::Evaluate(f).cap, cap::kEvenOdds);
  f = Standing(300);
  f.collectives.waiting.clear();
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f = Standing(300);
  f.stores[proto::STORE_NCCL] = Availability::kDown;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched) << "nobody counts";
  f = Standing(300);
  f.train_end = true;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f = Standing(300);
  f.running = false;
  f.ended = true;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
}

TEST(Standstill, TextThatGoesOnDeniesIt) {
  features::JobFeatures f = Standing(300);
  f.progress = 1000;
  f.silence_seconds = 2;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f.silence_seconds = 299;
  EXPECT_TRUE(collective_hang::Evaluate(f).matched);
}

TEST(Standstill, AllInItIsAStallWithoutACulprit) {
  features::JobFeatures f = Standing(300);
  f.collectives.waiting = {0, 1, 2, 3};
  f.collectives.absent.clear();
  Finding finding = collective_hang::Evaluate(f);
  EXPECT_EQ(finding.sub, "stalled");
  EXPECT_THAT(finding.ranks, testing::IsEmpty());
  EXPECT_THAT(finding.open, Not(Contains(Question::kHangCulprit)));
  f.world_size = 16;
  finding = collective_hang::Evaluate(f);
  EXPECT_THAT(finding.open, Contains(Question::kHangCulprit)) << "ranks elsewhere are not seen";
  f.collectives.asked = false;
  EXPECT_LE(collective_hang::Evaluate(f).cap, cap::kLookalike)
      << "a kernel that never ends looks the same";
}

TEST(Standstill, ManyAbsentAreNotBelievedAsMuch) {
  features::JobFeatures f = Standing(300);
  f.collectives.waiting = {0};
  f.collectives.absent = {1, 2, 3};
  EXPECT_LE(collective_hang::Evaluate(f).cap, cap::kEvenOdds);
}

TEST(Standstill, SilentTextIsNoHangWhileCallsGoOn) {
  features::JobFeatures f = Running();
  f.progress = 100;
  f.usual_record_seconds = f.p99_record_seconds = f.step_seconds = 1;
  f.silence_seconds = 600;
  EXPECT_TRUE(collective_hang::Evaluate(f).matched) << "nothing is counted";
  f.launches.seconds_since_launch = 0.1;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f.launches.seconds_since_launch = 600;
  EXPECT_TRUE(collective_hang::Evaluate(f).matched);
  f.collectives.ranks.resize(4);
  f.collectives.entered = 500;
  f.collectives.seconds_since_advance = 1;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f.collectives.seconds_since_advance = 600;
  f.collectives.asked = true;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched)
      << "nobody waits in a collective: another family's";
}

features::JobFeatures Late(double own, double peers) {
  features::JobFeatures f = Running();
  features::LaunchFeatures& l = f.launches;
  l.ranks.resize(4);
  l.exact = true;
  l.window_seconds = 60;
  l.launches = 20'000;
  l.seconds_since_launch = 0.1;
  l.host_share = 0.5;
  l.slow_rank = 2;
  l.slow_pieces = 6;
  l.slow_identity = 0.9;
  l.slow_z = 12;
  l.slow_ratio = 1 / (1 - (peers - own));
  l.slow_evidence = Cite(f, features::EvidenceKind::kCudaCalls, own);
  l.peers_evidence = Cite(f, features::EvidenceKind::kCudaCalls, peers);
  f.collectives.entered = 2000;
  return f;
}

TEST(Straggler, ComesLateByATenthAndHardlyWaits) {
  EXPECT_FALSE(straggler::Evaluate(Late(0.01, 0.09)).matched) << "8.7 %";
  const Finding finding = straggler::Evaluate(Late(0.01, 0.12));
  EXPECT_TRUE(finding.matched);
  EXPECT_THAT(finding.ranks, ElementsAre(2));
  EXPECT_FALSE(straggler::Evaluate(Late(0.7, 0.9)).matched) << "it waits for its own card";
  features::JobFeatures f = Late(0.01, 0.3);
  f.launches.slow_identity = 0.5;
  EXPECT_FALSE(straggler::Evaluate(f).matched) << "another one as often";
  f = Late(0.01, 0.3);
  f.launches.slow_z = 4;
  EXPECT_FALSE(straggler::Evaluate(f).matched);
  f = Late(0.01, 0.3);
  f.launches.slow_pieces = 5;
  EXPECT_FALSE(straggler::Evaluate(f).matched);
  f = Late(0.01, 0.3);
  f.launches.exact = false;
  EXPECT_TRUE(straggler::Evaluate(f).matched)
      << "launches may be left out, waiting is counted all the time";
}

TEST(LaunchBlocking, NeedsManySmallLaunchesThatCost) {
  features::JobFeatures f = Late(0.3, 0.3);
  f.launches.sync_share = 0.5;
  for (features::RankLaunches& rank : f.launches.ranks) rank.syncs_per_launch = 1;
  f.launches.syncs_per_launch = 1;
  EXPECT_EQ(throughput_bound::Evaluate(f).sub, "launch_blocking");
  EXPECT_LE(throughput_bound::Evaluate(f).cap, cap::kOneSource);
  features::JobFeatures few = f;
  few.launches.launches = 1200;
  EXPECT_FALSE(throughput_bound::Evaluate(few).matched) << "20 a second are large ones";
  features::JobFeatures one = f;
  one.launches.ranks[3].syncs_per_launch = 0.1;
  EXPECT_FALSE(throughput_bound::Evaluate(one).matched) << "not of all ranks";
  features::JobFeatures cheap = f;
  cheap.launches.sync_share = 0.1;
  EXPECT_FALSE(throughput_bound::Evaluate(cheap).matched);
  features::JobFeatures set = Late(0.3, 0.3);
  set.launches.launch_share = 0.6;
  EXPECT_FALSE(throughput_bound::Evaluate(set).matched)
      << "a full queue makes launches wait as well";
  set.launches.launch_blocking = true;
  set.launches.launch_blocking_evidence = Cite(set, features::EvidenceKind::kCudaCalls);
  set.launches.calls_evidence = Cite(set, features::EvidenceKind::kCudaCalls);
  EXPECT_EQ(throughput_bound::Evaluate(set).tier, proto::TIER_C);
}

TEST(Underutilised, WantsAWholeWindowOfAnIdleHost) {
  features::JobFeatures f = Late(0.1, 0.1);
  f.launches.slow_rank = -1;
  f.launches.host_share = 0.85;
  f.launches.window_seconds = 280;
  EXPECT_FALSE(gpu_underutilized::Evaluate(f).matched);
  f.launches.window_seconds = 300;
  EXPECT_EQ(gpu_underutilized::Evaluate(f).sub, "starved");
  f.launches.cpu_share = 0.95;
  EXPECT_EQ(gpu_underutilized::Evaluate(f).sub, "host_bound");
  f.launches.host_share = 0.6;
  EXPECT_FALSE(gpu_underutilized::Evaluate(f).matched);
  f.steps_known = true;
  f.steps = 50;
  f.launches.stalls = 3;
  f.launches.stall_seconds = 15;
  EXPECT_FALSE(gpu_underutilized::Evaluate(f).matched) << "they come to little";
  f.launches.stall_seconds = 150;
  EXPECT_EQ(gpu_underutilized::Evaluate(f).sub, "starved");
  f.storage.save_share = 0.4;
  EXPECT_FALSE(gpu_underutilized::Evaluate(f).matched) << "they are saves";
  f.storage.save_share = 0;
  f.steps_known = false;
  EXPECT_FALSE(gpu_underutilized::Evaluate(f).matched) << "of a notebook, perhaps";
  f.launches.stalls = 32;
  EXPECT_TRUE(gpu_underutilized::Evaluate(f).matched);
  f.steps_known = true;
  f.steps = 49;
  EXPECT_FALSE(gpu_underutilized::Evaluate(f).matched) << "the first steps";
  f.steps = 50;
  EXPECT_TRUE(gpu_underutilized::Evaluate(f).matched);
  f.launches.seconds_since_launch = 100;
  EXPECT_FALSE(gpu_underutilized::Evaluate(f).matched) << "it does not run at all";
}

TEST(RefusedAllocation, IsTheEndOnlyWhereNothingWasLaunchedAfterIt) {
  features::JobFeatures f = Running();
  f.running = false;
  f.ended = f.exit_known = true;
  f.exit_code = 1;
  f.launches.allocation_failures = 1;
  f.launches.failed_rank = 1;
  f.launches.seconds_since_failure = 3;
  f.launches.allocation_evidence = Cite(f, features::EvidenceKind::kAllocationFailed, 1.7e10);
  EXPECT_EQ(cuda_oom::Evaluate(f).sub, "refused");
  EXPECT_THAT(cuda_oom::Evaluate(f).ranks, ElementsAre(1));
  features::JobFeatures on = f;
  on.launches.launches_since_failure = 40;
  EXPECT_FALSE(cuda_oom::Evaluate(on).matched);
  EXPECT_EQ(cuda_oom::RuleOut(on).state, proto::FamilyState::RULED_OUT);
  features::JobFeatures long_ago = f;
  long_ago.launches.seconds_since_failure = 600;
  EXPECT_FALSE(cuda_oom::Evaluate(long_ago).matched);
  features::JobFeatures well = f;
  well.exit_code = 0;
  EXPECT_FALSE(cuda_oom::Evaluate(well).matched);
}

}  // namespace
}  // namespace rankscope::families
