// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/stdio/said_turns.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rankscope::probes {
namespace {

constexpr uint32_t kVictim = 7, kAttacker = 3;

SaidPiece Piece(uint32_t uid, uint32_t pid, std::string text) {
  SaidPiece piece;
  piece.said.uid = uid;
  piece.said.pid = pid;
  piece.said.start_ns = 1;
  piece.text = std::move(text);
  return piece;
}

std::string TakeText(SaidTurns& turns) {
  const auto piece = turns.Take();
  return piece ? piece->text : "nothing";
}

TEST(SaidTurns, AloneAUserIsTakenInOrder) {
  SaidTurns turns;
  for (const char* text : {"a", "b", "c"}) turns.Add(Piece(kVictim, 1, text));
  for (const char* text : {"a", "b", "c", "nothing"}) EXPECT_EQ(TakeText(turns), text);
  EXPECT_TRUE(turns.empty());
}

TEST(SaidTurns, WhoWritesWithoutEndKeepsNobodyWaiting) {
  for (const uint32_t attacker : {kAttacker, kVictim + 1}) {  // before him in the round, and behind
    SaidTurns turns;
    for (int i = 0; i < 200; ++i) turns.Add(Piece(attacker, 2, std::string(32 << 10, 'x')));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(turns.Take());
    turns.Add(Piece(kVictim, 1, "KeyError: 1\n"));
    int before = 0;
    while (TakeText(turns) != "KeyError: 1\n") ++before;
    EXPECT_LE(before, 2);
  }
}

TEST(SaidTurns, MillionsOfEmptyLinesCostWhatTheyTake) {
  SaidTurns turns;
  for (int i = 0; i < 4; ++i) turns.Add(Piece(kAttacker, 2, std::string(32 << 10, '\n')));
  for (int i = 0; i < 400; ++i) turns.Add(Piece(kVictim, 1, std::string(1000, 'x') + "\n"));
  std::map<uint32_t, int> taken;
  while (taken[kVictim] < 400) ++taken[turns.Take()->said.uid];
  EXPECT_LE(taken[kAttacker], 1) << "one of them costs as much as all that the victim has said";
}

TEST(SaidTurns, UsersHaveEqualSharesByCost) {
  SaidTurns turns;
  for (uint32_t uid = 1; uid <= 20; ++uid) {
    for (int i = 0; i < 100; ++i)
      turns.Add(Piece(uid, uid, std::string(uid % 2 == 0 ? 100 : 10'000, 'x')));
  }
  std::map<uint32_t, int64_t> cost;
  for (int i = 0; i < 500; ++i) {
    const auto piece = turns.Take();
    cost[piece->said.uid] += SaidTurns::CostOf(*piece);
  }
  for (uint32_t uid = 2; uid <= 20; ++uid)
    EXPECT_NEAR(static_cast<double>(cost[uid]), static_cast<double>(cost[1]),
                2.0 * SaidTurns::kTurn)
        << uid;
}

TEST(SaidTurns, TellsOfWhichProcessesSomethingWaits) {
  SaidTurns turns;
  turns.Add(Piece(kVictim, 1, "a"));
  turns.Add(Piece(kVictim, 2, "b"));
  turns.Add(Piece(kVictim, 1, "c"));
  EXPECT_FALSE(turns.Holds(1, 2)) << "another process of this pid";
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(turns.Holds(1, 1));
    EXPECT_EQ(turns.Holds(2, 1), i < 2);
    turns.Take();
  }
  EXPECT_FALSE(turns.Holds(1, 1));
  EXPECT_FALSE(turns.Holds(2, 1));
  turns.Add(Piece(kVictim, 1, "d"));
  turns.Clear();
  EXPECT_FALSE(turns.Holds(1, 1));
  EXPECT_FALSE(turns.Take());
}

TEST(SaidTurns, RoomIsGivenBackWhenAPieceGoes) {
  SaidTurns turns;
  int released = 0;
  for (int i = 0; i < 3; ++i) {
    SaidPiece piece = Piece(kVictim, 1, "a");
    piece.room = std::shared_ptr<const void>(&released, [&released](const void*) { ++released; });
    turns.Add(std::move(piece));
  }
  turns.Take();
  EXPECT_EQ(released, 1);
  turns.Clear();
  EXPECT_EQ(released, 3);
}

}  // namespace
}  // namespace rankscope::probes
