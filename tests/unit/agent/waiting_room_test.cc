// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/waiting_room.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rankscope::exporter {
namespace {

constexpr Timestamp kNow{1'000'000'000};

Observation Rank(int32_t pid, int32_t parent, uint32_t uid) {
  ProcessStart start;
  start.key = {pid, 1};
  start.parent = {parent, 1};
  start.uid = uid;
  start.env = {{"RANK", "0"}};
  Observation observation;
  observation.kind = std::move(start);
  return observation;
}

Observation Exit(int32_t pid) {
  Observation observation;
  observation.kind = ProcessExit{{pid, 1}, 0, true, false};
  return observation;
}

class WaitingRoomTest : public testing::Test {
 protected:
  void Pass(const Observation& observation) {
    if (const auto* start = std::get_if<ProcessStart>(&observation.kind)) {
      passed_.push_back("start " + std::to_string(start->key.pid));
      known_.insert(start->key);
    } else if (const auto* exit = std::get_if<ProcessExit>(&observation.kind)) {
      passed_.push_back("exit " + std::to_string(exit->key.pid));
    } else if (const auto* mark = std::get_if<RunMark>(&observation.kind)) {
      passed_.push_back("mark");
      known_.insert(mark->root);
    }
  }

  std::set<ProcessKey> known_;
  std::vector<std::string> passed_;
  WaitingRoom room_{[this](const ProcessKey& key) { return known_.contains(key); },
                    [this](const Observation& observation) { Pass(observation); }};
};

using Passed = std::vector<std::string>;

TEST_F(WaitingRoomTest, ARankWaitsForItsLauncherAndWhatIsToldOfItWaitsToo) {
  room_.Accept(Rank(10, 9, 1001), kNow);
  room_.Accept(Exit(10), kNow);
  room_.Accept(Rank(20, 19, 1001), kNow);
  EXPECT_EQ(passed_, Passed{});
  RunMark mark;
  mark.what = RunMark::What::kBegin;
  mark.root = {9, 1};
  Observation begins;
  begins.kind = mark;
  room_.Accept(begins, kNow);
  EXPECT_EQ(passed_, (Passed{"mark", "start 10", "exit 10"}));
  EXPECT_EQ(room_.waiting(), 1u);
  room_.Release(kNow + WaitingRoom::kPatience);
  EXPECT_EQ(passed_.back(), "start 20");
}

// Nothing names the job of a torchrun in a shell but the ranks below it.
TEST_F(WaitingRoomTest, ALauncherThatIsNobodysGoesBehindItsRanks) {
  std::set<ProcessKey> named;
  Passed passed;
  WaitingRoom room([&named](const ProcessKey& key) { return named.contains(key); },
                   [&](const Observation& observation) {
                     const auto& start = std::get<ProcessStart>(observation.kind);
                     const bool rank = !start.env.empty();
                     if (rank) named.insert(start.parent);
                     passed.push_back((named.contains(start.key) ? "named " : "") +
                                      std::to_string(start.key.pid));
                   });
  Observation launcher = Rank(9, 1, 1001);
  std::get<ProcessStart>(launcher.kind).env.clear();
  room.Accept(Rank(10, 9, 1001), kNow);
  room.Accept(Rank(11, 9, 1001), kNow);
  room.Accept(launcher, kNow + Seconds(1));
  EXPECT_EQ(passed, (Passed{"9"})) << "a wrapper's own child would be known now";
  room.Accept(Rank(12, 9, 1001), kNow + Seconds(1));
  room.Release(kNow + WaitingRoom::kPatience);
  EXPECT_EQ(passed, (Passed{"9", "10", "11", "named 9", "12"}));
  EXPECT_EQ(room.waiting(), 0u);
}

TEST_F(WaitingRoomTest, WhoCrowdsTheRoomSendsHisOwnOnAndNobodyElses) {
  room_.Accept(Rank(10, 9, 1001), kNow);
  for (int32_t pid = 100; passed_.empty(); ++pid) room_.Accept(Rank(pid, 99, 1002), kNow);
  EXPECT_EQ(passed_.size(), WaitingRoom::kMaxPerUser + 1);
  EXPECT_EQ(passed_.front(), "start 100");
  EXPECT_EQ(room_.waiting(), 1u) << "the other user's still waits";
}

TEST_F(WaitingRoomTest, AStrangersStartWakesNobody) {
  room_.Accept(Rank(10, 9, 1001), kNow);
  room_.Accept(Rank(50, 1, 1002), kNow);
  EXPECT_EQ(passed_, Passed{"start 50"});
  EXPECT_EQ(room_.waiting(), 1u);
}

}  // namespace
}  // namespace rankscope::exporter
