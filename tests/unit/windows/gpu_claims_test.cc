// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/gpu_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"
#include "detectors/windows/rank_activity.h"

namespace rankscope::windows {
namespace {

using attribution::GpuEnvironment;
using attribution::GpuWord;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::string Uuid(int32_t index) {
  return "GPU-fa4e000" + std::to_string(index) + "-0000-4000-8000-000000000000";
}

// A node of four cards.
class GpuClaimsTest : public testing::Test {
 protected:
  GpuClaimsTest() {
    for (int32_t index = 0; index < 4; ++index) Identity(index);
  }

  void Identity(int32_t index, bool mig = false) {
    Event event;
    event.type = WireType(EventType::kGpuIdentity);
    event.str = {{"gpu_uuid", Uuid(index)},
                 {"bus_id", "0000:0" + std::to_string(index) + ":00"},
                 {"state", "up"}};
    event.num = {{"index", index}, {"processes_told", 1}, {"mig", mig ? 1 : 0}};
    tracker_.OnEvent(event, {}, {});
  }

  void Computes(int32_t index, int32_t pid, int32_t rank, bool gone = false) {
    Event event;
    event.type = WireType(EventType::kGpuProcess);
    event.process = {pid, 1};
    event.str = {{"gpu_uuid", Uuid(index)}, {"name", "python3"}};
    event.num = {{"bytes", 1 << 30}, {"gone", gone ? 1 : 0}};
    Speaker speaker;
    speaker.rank = rank;
    speaker.foreign = rank < 0;
    tracker_.OnEvent(event, speaker, {});
  }

  // "index word ranks", a line for each card.
  std::vector<std::string> Cards() const {
    std::vector<std::string> cards;
    for (const ClaimedGpu& card : claims_.Of(tracker_)) {
      std::string text = std::to_string(card.gpu->index) + " " +
                         std::string(attribution::NameOf(card.word)) +
                         (card.attached ? " attached" : "");
      for (const int32_t rank : card.ranks) text += " " + std::to_string(rank);
      cards.push_back(text);
    }
    return cards;
  }

  void Works(int32_t index, double second, float engine, float sm) {
    SampleBatch batch;
    batch.subject.kind = Subject::Kind::kGpu;
    batch.subject.name = Uuid(index);
    batch.samples = {{SignalId::kEngineActivity, engine}, {SignalId::kSmActivity, sm}};
    tracker_.OnSamples(batch, {static_cast<int64_t>(second * 1e9)});
  }
  RankActivity Activity(int32_t rank, double now) const {
    return ActivityOf(claims_.Of(tracker_), rank, {static_cast<int64_t>(now * 1e9)});
  }

  GpuClaims claims_;
  GpuTracker tracker_;
};

GpuEnvironment Slurm(std::vector<int32_t> indexes) {
  GpuEnvironment told;
  told.given_by = GpuWord::kSlurm;
  for (const int32_t index : indexes) told.given.push_back({{}, index});
  return told;
}

GpuEnvironment Ordinal(int32_t index) {
  GpuEnvironment told;
  told.own = {{{}, index}};
  told.own_by = GpuWord::kOrdinal;
  return told;
}

TEST_F(GpuClaimsTest, ACardWithoutAProcessIsItsJobs) {
  EXPECT_THAT(Cards(), IsEmpty());
  EXPECT_FALSE(claims_.given());
  claims_.OnEnvironment(Slurm({2, 3}), -1);
  claims_.OnEnvironment(Slurm({2, 3}), 0);
  EXPECT_TRUE(claims_.given());
  EXPECT_THAT(Cards(), ElementsAre("2 slurm", "3 slurm"));
  Computes(2, 101, 0);
  EXPECT_THAT(Cards(), ElementsAre("2 slurm attached 0", "3 slurm"));
  Computes(3, 900, -1);
  EXPECT_THAT(Cards(), ElementsAre("2 slurm attached 0", "3 slurm")) << "of somebody else";
  Computes(2, 101, 0, true);
  EXPECT_THAT(Cards(), ElementsAre("2 slurm 0", "3 slurm")) << "who has computed on it, is known";
}

TEST_F(GpuClaimsTest, ByItsProcessesAlone) {
  Computes(1, 101, 5);
  EXPECT_THAT(Cards(), ElementsAre("1  attached 5"));
}

TEST_F(GpuClaimsTest, WhatARankDoesGoesBeforeWhatItShould) {
  claims_.OnEnvironment(Ordinal(0), 0);
  claims_.OnEnvironment(Ordinal(1), 1);
  EXPECT_THAT(Cards(), ElementsAre("0 ordinal 0", "1 ordinal 1"));
  Computes(0, 101, 0);
  Computes(0, 102, 1);  // its program asks for cuda:0, whoever it is
  EXPECT_THAT(Cards(), ElementsAre("0  attached 0 1"));
}

TEST_F(GpuClaimsTest, WhatALauncherMaySeeIsForItsRanks) {
  claims_.OnEnvironment(Ordinal(3), -1);
  EXPECT_THAT(Cards(), ElementsAre("3 ordinal"));
  claims_.OnEnvironment(Ordinal(1), 0);
  EXPECT_THAT(Cards(), ElementsAre("1 ordinal 0"));
}

TEST_F(GpuClaimsTest, NumbersThatAProcessDisproves) {
  claims_.OnEnvironment(Slurm({0, 1}), 0);
  Computes(3, 101, 0);
  EXPECT_THAT(Cards(), ElementsAre("3  attached 0")) << "another order than the driver's";
  GpuEnvironment uuid;
  uuid.given = {{Uuid(2), -1}};
  uuid.given_by = GpuWord::kContainer;
  GpuClaims named;
  named.OnEnvironment(uuid, 0);
  EXPECT_THAT(named.Of(tracker_), SizeIs(2)) << "a uuid is no number";
}

TEST_F(GpuClaimsTest, NumbersOfInstancesAreNotOfCards) {
  claims_.OnEnvironment(Slurm({0, 1}), 0);
  Identity(0, true);
  EXPECT_THAT(Cards(), IsEmpty());
}

TEST_F(GpuClaimsTest, ARestartKeepsTheCards) {
  claims_.OnEnvironment(Slurm({1}), 0);
  Computes(1, 101, 0);
  GpuTracker next;
  next.KeepCards(tracker_);
  tracker_ = next;
  EXPECT_THAT(Cards(), ElementsAre("1 slurm"));
}

TEST_F(GpuClaimsTest, IsBoundedAndRestored) {
  for (int32_t rank = 0; rank < 1000; ++rank) {
    claims_.OnEnvironment(Ordinal(rank % 4), rank);
    claims_.OnEnvironment(Slurm({rank}), rank);
  }
  ArchiveWriter writer;
  writer(claims_);
  const std::string bytes = writer.Take();
  EXPECT_LT(bytes.size(), 8192U);
  GpuClaims restored;
  ArchiveReader reader(bytes);
  reader(restored);
  ASSERT_TRUE(reader.ok());
  claims_ = restored;
  EXPECT_TRUE(claims_.given());
  GpuEnvironment none;
  none.none = true;
  EXPECT_FALSE(claims_.hidden());
  claims_.OnEnvironment(none, 1);
  EXPECT_TRUE(claims_.hidden());
}

TEST_F(GpuClaimsTest, APrologsFilesAreBelievedWhereNobodyElseSpeaks) {
  claims_.OnMapping(attribution::ReadGpuMapping("0,2"));
  EXPECT_THAT(Cards(), ElementsAre("0 mapping", "2 mapping"));
  EXPECT_TRUE(claims_.given());
  claims_.OnMapping(attribution::ReadGpuMapping("2"));
  EXPECT_THAT(Cards(), ElementsAre("2 mapping"));
  claims_.OnMapping({});
  EXPECT_THAT(Cards(), IsEmpty());
  EXPECT_FALSE(claims_.given());
  claims_.OnMapping(attribution::ReadGpuMapping("2"));
  claims_.OnEnvironment(attribution::ReadGpuEnvironment(
                            {{"SLURM_JOB_GPUS", "1"}, {"SLURM_JOB_NUM_NODES", "1"}}, false),
                        -1);
  EXPECT_THAT(Cards(), ElementsAre("1 slurm"));
  claims_.OnMapping(attribution::ReadGpuMapping("3"));
  EXPECT_THAT(Cards(), ElementsAre("1 slurm"));
}

TEST_F(GpuClaimsTest, AFileOfAnInstanceNamesItsCard) {
  Identity(1, true);
  claims_.OnMapping(attribution::ReadGpuMapping("1.3,1.4,x,,-1,99999,0x2"));
  EXPECT_THAT(Cards(), ElementsAre("1 mapping"));
}

TEST_F(GpuClaimsTest, ARankIsAsBusyAsTheCardsItHolds) {
  Computes(1, 100, 0);
  Computes(2, 101, 1);
  Computes(3, 101, 1);
  for (int second = 1; second <= 5; ++second) {
    Works(0, second, 1, 1);
    Works(1, second, second == 3 ? 0.0F : 0.75F, 0.5F);
    Works(2, second, 1, 0.25F);
    Works(3, second, 0.5F, 0.75F);
  }
  EXPECT_EQ(Activity(0, 5).engine, 0.75) << "a median: one idle poll does not count";
  EXPECT_EQ(Activity(0, 5).sm, 0.5);
  EXPECT_EQ(Activity(1, 5).engine, 0.75) << "of two cards, their mean";
  EXPECT_EQ(Activity(1, 5).sm, 0.5);
  EXPECT_TRUE(std::isnan(Activity(2, 5).sm)) << "it holds none";
  EXPECT_TRUE(std::isnan(Activity(0, 66).sm)) << "what was a minute ago, is not now";
}

TEST_F(GpuClaimsTest, ACardWhoseSmsAreNotTold) {
  Computes(1, 100, 0);
  Works(1, 1, 0.5F, GpuSecond::kNone);
  EXPECT_EQ(Activity(0, 1).engine, 0.5);
  EXPECT_TRUE(std::isnan(Activity(0, 1).sm));
}

}  // namespace
}  // namespace rankscope::windows
