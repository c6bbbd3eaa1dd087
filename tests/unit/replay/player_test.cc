// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace rankscope::replay {
namespace {

using ::testing::ElementsAre;

class PlayerTest : public ::testing::Test {
 protected:
  static std::string Time(Timestamp t) { return std::to_string(t.ns / 1'000'000); }

  void Say(int64_t milliseconds) {
    Observation observation;
    observation.t = {milliseconds * 1'000'000};
    observation.kind = RunMark{};
    player_.Observe(observation);
  }
  void SayTick(int64_t milliseconds) {
    Observation observation;
    observation.t = {milliseconds * 1'000'000};
    observation.kind = Tick{};
    player_.Observe(observation);
  }

  std::vector<std::string> heard_;
  Player player_{{[this](const Observation& o) { heard_.push_back("o" + Time(o.t)); },
                  [this](Timestamp t) { heard_.push_back("t" + Time(t)); }}};
};

TEST_F(PlayerTest, MakesTicksOnTheGridWhereNoneWereRecorded) {
  player_.Begin(false);
  for (const int64_t t : {500, 900, 1500, 4600}) Say(t);
  player_.CatchUp();
  EXPECT_THAT(heard_, ElementsAre("o500", "o900", "t1500", "o1500", "t2500", "t3500", "t4500",
                                  "o4600", "t5500"));
  player_.TickOn();
  EXPECT_EQ(heard_.back(), "t6500");
}

TEST_F(PlayerTest, KeepsToRecordedTicks) {
  player_.Begin(true);
  Say(500);
  SayTick(1000);
  Say(3500);
  SayTick(4000);
  player_.CatchUp();
  EXPECT_THAT(heard_, ElementsAre("o500", "t1000", "o3500", "t4000"));
}

TEST_F(PlayerTest, GoesOnBehindTheLastRecordedTick) {
  player_.Begin(true);
  SayTick(1000);
  Say(1000);
  player_.CatchUp();
  player_.TickOn();
  EXPECT_THAT(heard_, ElementsAre("t1000", "o1000", "t2000", "t3000"));
}

TEST_F(PlayerTest, TimeThatGoesBackwardsIsPassedOnAndNeverTicked) {
  player_.Begin(false);
  for (const int64_t t : {5000, 1000, 5500}) Say(t);
  player_.CatchUp();
  EXPECT_THAT(heard_, ElementsAre("o5000", "o1000", "o5500", "t6000"));
}

TEST_F(PlayerTest, HostileTimesEnd) {
  player_.Begin(false);
  Observation observation;
  observation.kind = RunMark{};
  for (const int64_t t :
       {std::numeric_limits<int64_t>::min(), int64_t{0}, std::numeric_limits<int64_t>::max()}) {
    observation.t = {t};
    player_.Observe(observation);
  }
  player_.CatchUp();
  player_.TickOn();
  EXPECT_LT(heard_.size(), 3u * 24 * 3600);
}

TEST_F(PlayerTest, NothingPlayedIsNothingTicked) {
  player_.CatchUp();
  EXPECT_TRUE(heard_.empty());
}

}  // namespace
}  // namespace rankscope::replay
