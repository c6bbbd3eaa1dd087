// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <numeric>

#include "exporter/replay/recorder.h"
#include "exporter/replay/segments.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::Script;
using ::rankscope::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RecorderBudgets Tiny() {
  RecorderBudgets budgets;
  budgets.segment_bytes = 600;
  budgets.segments = 3;
  budgets.buffer_bytes = 100;
  return budgets;
}

class FollowerTest : public ::testing::Test {
 protected:
  void Write(Recorder& recorder, int lines) {
    for (int i = 0; i < lines; ++i) recorder.Accept(script_.Line("some text"));
  }
  // Everything there is now.
  void Drain(Follower& follower) {
    while (follower.Poll([this](const Observation& o) { heard_.push_back(o.seq); })) {
    }
  }
  std::vector<int64_t> Upto(int64_t last) {
    std::vector<int64_t> all(static_cast<size_t>(last));
    std::iota(all.begin(), all.end(), 1);
    return all;
  }

  TempDir dir_;
  Script script_;
  std::vector<int64_t> heard_;
  RecorderHooks hooks_{{}, [] { return EngineState{"b", "state"}; }};
};

TEST_F(FollowerTest, HearsEverythingAcrossRotation) {
  Follower follower(dir_.fd());
  Drain(follower);
  Recorder recorder(dir_.fd(), {}, hooks_, Tiny());
  ASSERT_TRUE(recorder.Open());
  Drain(follower);
  int64_t written = 0;
  for (int round = 0; round < 60; ++round) {
    const int lines = round % 7;
    Write(recorder, lines);
    written += lines;
    if (round % 2 == 0) recorder.Flush();
    Drain(follower);
  }
  recorder.Flush();
  Drain(follower);
  EXPECT_EQ(heard_, Upto(written));
  EXPECT_EQ(follower.gaps(), 0) << follower.last_problem();
  EXPECT_EQ(follower.last_seq(), written);
  EXPECT_GT(ListSegments(dir_.fd()).front(), 1);
}

TEST_F(FollowerTest, ReadsASegmentToItsEndThoughItWasRemoved) {
  Recorder recorder(dir_.fd(), {}, hooks_, Tiny());
  ASSERT_TRUE(recorder.Open());
  FollowerLimits limits;
  limits.bytes_per_poll = 20;
  Follower follower(dir_.fd(), std::numeric_limits<int64_t>::min(), limits);
  Write(recorder, 5);
  recorder.Flush();
  follower.Poll([this](const Observation& o) { heard_.push_back(o.seq); });
  // The follower holds segment 1 with most of it unread; segments 2 and 3 are written, then 1 goes.
  while (ListSegments(dir_.fd()).front() == 1) Write(recorder, 1);
  recorder.Flush();
  Drain(follower);
  EXPECT_EQ(heard_, Upto(heard_.back()));
  EXPECT_EQ(follower.gaps(), 0) << follower.last_problem();
}

TEST_F(FollowerTest, SaysThatItWasTooSlow) {
  Recorder recorder(dir_.fd(), {}, hooks_, Tiny());
  ASSERT_TRUE(recorder.Open());
  Follower follower(dir_.fd());
  Write(recorder, 3);
  recorder.Flush();
  Drain(follower);
  Write(recorder, 300);
  recorder.Flush();
  Drain(follower);
  EXPECT_EQ(follower.gaps(), 1);
  EXPECT_THAT(follower.last_problem(), HasSubstr("are gone"));
  EXPECT_EQ(heard_.back(), 303);
  EXPECT_TRUE(std::is_sorted(heard_.begin(), heard_.end()));
}

TEST_F(FollowerTest, BeginsWhereItIsToldTo) {
  Recorder recorder(dir_.fd(), {}, hooks_, Tiny());
  ASSERT_TRUE(recorder.Open());
  Write(recorder, 100);
  recorder.Flush();
  Follower late(dir_.fd(), 95);
  Drain(late);
  EXPECT_THAT(heard_, ElementsAre(96, 97, 98, 99, 100));
  EXPECT_EQ(late.gaps(), 0) << late.last_problem();
  heard_.clear();
  Follower too_late(dir_.fd(), 3);
  Drain(too_late);
  EXPECT_EQ(too_late.gaps(), 1);
  EXPECT_EQ(heard_.back(), 100);
}

TEST_F(FollowerTest, SkipsADamagedSegmentAndSaysSo) {
  Recorder recorder(dir_.fd(), {}, hooks_, Tiny());
  ASSERT_TRUE(recorder.Open());
  int64_t written = 0;
  for (; ListSegments(dir_.fd()).back() < 3; ++written) Write(recorder, 1);
  recorder.Flush();
  std::string bytes = dir_.Read(SegmentName(2));
  for (size_t i = bytes.size() / 2; i < bytes.size(); ++i) bytes[i] = '\0';
  dir_.Write(SegmentName(2), bytes);
  Follower follower(dir_.fd());
  Drain(follower);
  EXPECT_EQ(follower.gaps(), 1);
  EXPECT_EQ(heard_.back(), written);
  EXPECT_LT(static_cast<int64_t>(heard_.size()), written);
}

TEST_F(FollowerTest, TakesNothingButRegularFiles) {
  ASSERT_EQ(mkfifo((dir_ / SegmentName(1)).c_str(), 0600), 0);
  std::filesystem::create_symlink("/etc/passwd", dir_ / SegmentName(2));
  std::filesystem::create_directory(dir_ / SegmentName(3));
  std::filesystem::create_symlink("/dev/zero", dir_ / SegmentName(4));
  Follower follower(dir_.fd());
  Drain(follower);
  EXPECT_TRUE(heard_.empty());
  EXPECT_EQ(follower.bytes(), 0);
}

TEST_F(FollowerTest, ReadsABoundedAmount) {
  std::string bytes;
  recording::AppendHeader({}, bytes);
  while (bytes.size() < 100'000)
    ASSERT_TRUE(recording::AppendObservation(script_.Line("text"), bytes));
  dir_.Write(SegmentName(1), bytes);
  FollowerLimits limits;
  limits.bytes_per_poll = 1000;
  limits.segment_bytes = 50'000;
  Follower follower(dir_.fd(), std::numeric_limits<int64_t>::min(), limits);
  EXPECT_TRUE(follower.Poll([](const Observation&) {}));
  EXPECT_EQ(follower.bytes(), 1000);
  Drain(follower);
  EXPECT_LE(follower.bytes(), 52'000);
  EXPECT_EQ(follower.gaps(), 1);
  EXPECT_THAT(follower.last_problem(), HasSubstr("larger"));
}

TEST_F(FollowerTest, AFileCutShortIsWaitedForAndNotAnError) {
  std::string bytes;
  recording::AppendHeader({}, bytes);
  ASSERT_TRUE(recording::AppendObservation(script_.Line("one"), bytes));
  ASSERT_TRUE(recording::AppendObservation(script_.Line("two"), bytes));
  Follower follower(dir_.fd());
  for (size_t size = 0; size <= bytes.size(); ++size) {
    dir_.Write(SegmentName(1), std::string_view(bytes).substr(0, size));
    Drain(follower);
  }
  EXPECT_THAT(heard_, ElementsAre(1, 2));
  EXPECT_EQ(follower.gaps(), 0);
}

}  // namespace
}  // namespace rankscope::replay
