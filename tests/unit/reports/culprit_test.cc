// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/culprit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace rankscope::reports {
namespace {

using testing::ElementsAre;

std::vector<int32_t> Range(int32_t count) {
  std::vector<int32_t> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// `ranks` ranks in one group, all waiting in the same operation.
GroupStandings Waiting(int32_t ranks, int64_t enqueued = 4522, int64_t completed = 4520) {
  GroupStandings group;
  group.name = "0";
  group.members = Range(ranks);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    group.standings.push_back({rank, enqueued, completed, completed + 1, "all_reduce", "[[4096]]"});
  }
  return group;
}

void SetBehind(GroupStandings& group, size_t rank, int64_t by = 1) {
  Standing& standing = group.standings[rank];
  standing.enqueued = standing.completed + 1 - by;
  standing.completed = std::min(standing.completed, standing.enqueued);
  standing.pending = -1;
  standing.operation.clear();
}

TEST(Culprit, OneRankHasNotComeSoFar) {
  GroupStandings world = Waiting(8);
  SetBehind(world, 5);
  const Culprits found = FindCulprits({{world}}, Range(8));
  EXPECT_EQ(found.by, Culprits::By::kLag);
  EXPECT_THAT(found.ranks, ElementsAre(5));
  EXPECT_EQ(found.group, "0");
  EXPECT_EQ(found.own, 4520);
  EXPECT_EQ(found.furthest, 4522);
  EXPECT_EQ(found.waiting, 7);
  EXPECT_EQ(found.operation, "all_reduce");
}

TEST(Culprit, OneOfTwo) {
  GroupStandings world = Waiting(2);
  SetBehind(world, 0);
  EXPECT_THAT(FindCulprits({{world}}, Range(2)).ranks, ElementsAre(0));
}

TEST(Culprit, NobodyLagsWhereAllWait) {
  const Culprits found = FindCulprits({{Waiting(8)}}, Range(8));
  EXPECT_EQ(found.by, Culprits::By::kNobody);
  EXPECT_TRUE(found.ranks.empty());
}

TEST(Culprit, NobodyIsNamedWhereNothingWaits) {
  GroupStandings world = Waiting(4, 100, 100);
  world.standings[2].enqueued = world.standings[2].completed = 99;
  EXPECT_EQ(FindCulprits({{world}}, Range(4)).by, Culprits::By::kNobody);
}

TEST(Culprit, HalfOfThemAreNoException) {
  GroupStandings world = Waiting(8);
  for (size_t rank = 0; rank < 4; ++rank) SetBehind(world, rank);
  EXPECT_EQ(FindCulprits({{world}}, Range(8)).by, Culprits::By::kNobody);
}

TEST(Culprit, AMemberThatNeverCameIsAbsent) {
  GroupStandings world = Waiting(8, 4520, 4520);  // the world's collectives are all done
  GroupStandings experts = Waiting(4, 12, 10);
  experts.name = "7";
  experts.standings.erase(experts.standings.begin() + 2);
  const Culprits found = FindCulprits({{world, experts}}, Range(8));
  EXPECT_EQ(found.by, Culprits::By::kAbsent);
  EXPECT_THAT(found.ranks, ElementsAre(2));
  EXPECT_EQ(found.group, "7");
  EXPECT_EQ(found.waiting, 3);
}

// It may be the one, or its disk was full: nobody has said how far it came.
TEST(Culprit, AMemberWithoutADumpIsSilentAndNotAbsent) {
  GroupStandings world = Waiting(8);
  world.standings.erase(world.standings.begin() + 3);
  std::vector<int32_t> told = Range(8);
  told.erase(told.begin() + 3);
  const Culprits found = FindCulprits({{world}}, told);
  EXPECT_EQ(found.by, Culprits::By::kNobody);
  EXPECT_THAT(found.silent, ElementsAre(3));
}

// Groups that every rank names by its own count: most look absent to each other.
TEST(Culprit, ANameThatMostDoNotKnowNamesNobody) {
  GroupStandings strange = Waiting(8);
  strange.standings.resize(2);
  EXPECT_EQ(FindCulprits({{strange}}, Range(8)).by, Culprits::By::kNobody);
}

TEST(Culprit, AnOffsetThatMostShareIsNoLag) {
  GroupStandings world = Waiting(8);
  GroupStandings other = Waiting(8);
  other.name = "1";
  for (size_t rank = 1; rank < 8; ++rank) {
    other.standings[rank].enqueued -= 40;
    other.standings[rank].completed -= 40;
  }
  EXPECT_EQ(FindCulprits({{world, other}}, Range(8)).by, Culprits::By::kNobody);
  SetBehind(other, 6, 41);
  SetBehind(world, 6);
  EXPECT_THAT(FindCulprits({{world, other}}, Range(8)).ranks, ElementsAre(6));
}

// Whoever comes later because of the culprit lags less than the culprit itself.
TEST(Culprit, TheFurthestBehindOfACascade) {
  GroupStandings world = Waiting(16);
  SetBehind(world, 9, 12);
  GroupStandings tensor = Waiting(2);
  tensor.name = "tp4";
  tensor.members = {8, 9};
  tensor.standings[0].rank = 8;
  tensor.standings[1].rank = 9;
  SetBehind(tensor, 1, 30);
  const Culprits found = FindCulprits({{world, tensor}}, Range(16));
  EXPECT_THAT(found.ranks, ElementsAre(9));
  EXPECT_EQ(found.group, "tp4");
}

TEST(Culprit, DoesNotDependOnTheNumbersOfRanks) {
  std::mt19937 random(20261122);
  for (int round = 0; round < 200; ++round) {
    const int32_t ranks = 3 + static_cast<int32_t>(random() % 30);
    GroupStandings world = Waiting(ranks);
    const size_t late = random() % static_cast<size_t>(ranks);
    SetBehind(world, late, 1 + static_cast<int64_t>(random() % 9));
    std::vector<int32_t> renamed = Range(ranks);
    std::shuffle(renamed.begin(), renamed.end(), random);
    GroupStandings permuted = world;
    for (Standing& standing : permuted.standings)
      standing.rank = renamed[static_cast<size_t>(standing.rank)];
    std::shuffle(permuted.standings.begin(), permuted.standings.end(), random);
    const Culprits plain = FindCulprits({{world}}, Range(ranks));
    const Culprits other = FindCulprits({{permuted}}, Range(ranks));
    EXPECT_THAT(plain.ranks, ElementsAre(static_cast<int32_t>(late)));
    EXPECT_THAT(other.ranks, ElementsAre(renamed[late]));
    EXPECT_EQ(plain.lag, other.lag);
    EXPECT_EQ(plain.by, other.by);
  }
}

// The pipeline of two stages, tensor groups of two: 5 stands on its host. 4 waits for it in their
// tensor group and has not come to its data group, whose members wait for 4 and are no nearer to
// the root for being many.
TEST(Culprit, WhoWaitsElsewhereIsAVictim) {
  GroupStandings tensor = Waiting(2);
  tensor.name = "tp";
  tensor.members = {4, 5};
  tensor.standings[0].rank = 4;
  tensor.standings[1].rank = 5;
  SetBehind(tensor, 1);
  GroupStandings data = Waiting(4, 90, 89);
  data.name = "dp";
  data.members = {0, 2, 4, 6};
  for (size_t i = 0; i < 4; ++i) data.standings[i].rank = static_cast<int32_t>(2 * i);
  SetBehind(data, 2);
  const Culprits found = FindCulprits({{data, tensor}}, Range(8));
  EXPECT_THAT(found.ranks, ElementsAre(5));
  EXPECT_EQ(found.group, "tp");
  EXPECT_EQ(found.held, 4);  // 4, and 0, 2, 6 behind it
}

// Ranks that are in no hurry are absent from groups in which nobody waits, or in which few have
// begun to.
TEST(Culprit, AbsencesAreCountedByGroup) {
  GroupStandings world = Waiting(8, 12, 12);
  world.standings.resize(3);  // five have not been in it, and nobody waits
  GroupStandings experts = Waiting(4, 12, 11);
  experts.name = "7";
  experts.standings.erase(experts.standings.begin() + 2);
  EXPECT_THAT(FindCulprits({{world, experts}}, Range(8)).ranks, ElementsAre(2));
}

// Its numbers begin elsewhere: it has entered fewer than the others have completed, which cannot
// be.
TEST(Culprit, AMemberThatCountsFromAnotherBeginningDoesNotLag) {
  GroupStandings world = Waiting(8);
  Standing& other = world.standings[3];
  other.enqueued -= 500;
  other.completed -= 500;
  other.pending -= 500;
  EXPECT_EQ(FindCulprits({{world}}, Range(8)).by, Culprits::By::kNobody);
  SetBehind(world, 6);
  EXPECT_THAT(FindCulprits({{world}}, Range(8)).ranks, ElementsAre(6));
}

// All have entered it; the GPU of one is busy with something before it.
TEST(Culprit, AGpuThatHasNotStartedItIsWaitedFor) {
  GroupStandings world = Waiting(8);
  for (Standing& standing : world.standings) standing.state = "started";
  world.standings[2].state = "scheduled";
  const Culprits found = FindCulprits({{world}}, Range(8));
  EXPECT_EQ(found.by, Culprits::By::kNotStarted);
  EXPECT_THAT(found.ranks, ElementsAre(2));
  // Where kernels are not timed, all are scheduled for ever.
  for (Standing& standing : world.standings) standing.state = "scheduled";
  EXPECT_EQ(FindCulprits({{world}}, Range(8)).by, Culprits::By::kNobody);
}

// A pipeline without collectives: the last stage receives from the one before, and that from the
// first, which does nothing.
TEST(Culprit, AStageThatDoesNotSend) {
  GroupStandings stages;
  stages.name = "pp";
  stages.members = {0, 1, 2};
  stages.standings = {{0}, {1}, {2}};
  stages.standings[1].peers = {0};
  stages.standings[2].peers = {1};
  const Culprits found = FindCulprits({{stages}}, Range(3));
  EXPECT_EQ(found.by, Culprits::By::kPeer);
  EXPECT_THAT(found.ranks, ElementsAre(0));
  EXPECT_EQ(found.held, 2);
  // Both at one exchange: the way between them is broken, and neither is the one.
  stages.standings[0].peers = {1};
  EXPECT_EQ(FindCulprits({{stages}}, Range(3)).by, Culprits::By::kNobody);
}

TEST(Desync, AnotherOperationAtTheSamePlace) {
  GroupStandings world = Waiting(8);
  world.standings[7].operation = "broadcast";
  const Desync found = FindDesync({{world}});
  ASSERT_TRUE(found.found);
  EXPECT_FALSE(found.sizes);
  EXPECT_THAT(found.ranks, ElementsAre(7));
  EXPECT_EQ(found.sequence, 4521);
  EXPECT_EQ(found.theirs, "broadcast [[4096]]");
  EXPECT_EQ(found.others, "all_reduce [[4096]]");
  EXPECT_EQ(found.other_ranks, 7);
}

TEST(Desync, AnotherSize) {
  GroupStandings world = Waiting(4);
  world.standings[1].sizes = "[[2048]]";
  const Desync found = FindDesync({{world}});
  ASSERT_TRUE(found.found);
  EXPECT_TRUE(found.sizes);
  EXPECT_THAT(found.ranks, ElementsAre(1));
}

TEST(Desync, SizesMayDifferWhereTheOperationAllowsIt) {
  GroupStandings world = Waiting(4);
  for (Standing& standing : world.standings) standing.operation = "all_to_all_base";
  world.standings[1].sizes = "[[2048]]";
  EXPECT_FALSE(FindDesync({{world}}).found);
}

TEST(Desync, OtherPlacesAreNoDisagreement) {
  GroupStandings world = Waiting(4);
  world.standings[1].operation = "broadcast";
  world.standings[1].pending = 4519;
  EXPECT_FALSE(FindDesync({{world}}).found);
}

}  // namespace
}  // namespace rankscope::reports
