// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// When the ends of an array's tasks are told, and that none waits for ever or takes memory without
// a bound.
#include "exporter/notify/array_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope::exporter::notify {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;

ArrayRoom::Task Task(const std::string& job, int32_t tasks = 0, const std::string& array = "77") {
  return {array, 1000, job, tasks};
}

TEST(ArrayRoom, AllTasksAreOneMessageAsSoonAsTheLastHasEnded) {
  ArrayRoom room(Seconds(600));
  for (const char* job : {"78", "79", "80"}) room.Runs(Task(job, 3), 0);
  EXPECT_TRUE(room.Ends(Task("78", 3), false, kSecond));
  EXPECT_TRUE(room.Ends(Task("79", 3), true, 2 * kSecond));
  EXPECT_THAT(room.TakeDue(90 * kSecond), IsEmpty()) << "one runs";
  EXPECT_TRUE(room.Ends(Task("80", 3), false, 91 * kSecond));
  const auto told = room.TakeDue(91 * kSecond);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].job_ids, ElementsAre("78", "79", "80"));
  EXPECT_EQ(told[0].tasks, 3);
  EXPECT_EQ(told[0].completed, 1);
  EXPECT_EQ(told[0].running, 0);
  EXPECT_EQ(room.held(), 0u);
}

TEST(ArrayRoom, OfAnArrayOnOtherNodesTheRestIsNotWaitedFor) {
  ArrayRoom room(Seconds(600));
  EXPECT_TRUE(room.Ends(Task("78", 100), false, 0));
  EXPECT_THAT(room.TakeDue(59 * kSecond), IsEmpty());
  EXPECT_THAT(room.TakeDue(60 * kSecond), SizeIs(1));
}

TEST(ArrayRoom, WhereOneRunsForDaysTheOthersWaitTenMinutes) {
  ArrayRoom room(Seconds(600));
  room.Runs(Task("78"), 0);
  EXPECT_TRUE(room.Ends(Task("79"), false, 0));
  EXPECT_THAT(room.TakeDue(599 * kSecond), IsEmpty());
  const auto told = room.TakeDue(600 * kSecond);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].running, 1);
}

TEST(ArrayRoom, WhatIsAloneDoesNotWait) {
  ArrayRoom room(Seconds(600));
  EXPECT_FALSE(room.Ends(Task("78", 1), false, 0)) << "an array of one task";
  EXPECT_FALSE(room.Ends(Task("5", 0, ""), false, 0)) << "no array";
  ArrayRoom none(Duration{0});
  EXPECT_FALSE(none.Ends(Task("78", 3), false, 0)) << "array_wait: 0s";
}

TEST(ArrayRoom, ATaskThatLeavesWithoutAnEndIsNotWaitedFor) {
  ArrayRoom room(Seconds(600));
  room.Runs(Task("78"), 0);
  EXPECT_TRUE(room.Ends(Task("79"), false, 0));
  room.Gone("78");
  EXPECT_THAT(room.TakeDue(60 * kSecond), SizeIs(1));
}

TEST(ArrayRoom, ANumberThatTwoUsersSayIsTwoArrays) {
  ArrayRoom room(Seconds(600));
  ArrayRoom::Task other = Task("900");
  other.uid = 1001;
  room.Runs(other, 0);
  EXPECT_TRUE(room.Ends(Task("78"), false, 0));
  EXPECT_THAT(room.TakeDue(60 * kSecond), SizeIs(1)) << "nobody holds back another's";
}

TEST(ArrayRoom, AClockThatIsSetBackHoldsNothing) {
  ArrayRoom room(Seconds(600));
  EXPECT_TRUE(room.Ends(Task("78"), false, 5000 * kSecond));
  EXPECT_THAT(room.TakeDue(kSecond), SizeIs(1));
}

TEST(ArrayRoom, IsBounded) {
  ArrayRoom room(Seconds(600));
  size_t taken = 0;
  for (size_t i = 0; i < 2 * ArrayRoom::kMostHeld; ++i)
    taken += room.Ends(Task(std::to_string(i), 9999), false, 0) ? 1 : 0;
  EXPECT_EQ(taken, ArrayRoom::kMostHeld);
  EXPECT_THAT(room.TakeDue(1), SizeIs(1)) << "there is no room for more";
  EXPECT_EQ(room.held(), 0u);
  for (size_t i = 0; i < 2 * ArrayRoom::kMostArrays; ++i)
    room.Runs(Task("1", 0, std::to_string(1000 + i)), 2);
  EXPECT_TRUE(room.Ends(Task("9", 0, "9"), false, 3)) << "an array that holds nothing gives way";
  EXPECT_THAT(room.TakeAll(), SizeIs(1));
}

}  // namespace
}  // namespace rankscope::exporter::notify
