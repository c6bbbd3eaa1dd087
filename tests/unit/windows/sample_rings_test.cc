// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/series/sample_rings.h"

#include <gtest/gtest.h>

#include <cmath>

#include "detectors/model/archive.h"

namespace rankscope::windows {
namespace {

constexpr Timestamp Second(int64_t second) {
  return {second * 1'000'000'000};
}

TEST(SampleRings, WhatWasNeverSeenIsNaN) {
  SampleRings rings;
  EXPECT_TRUE(std::isnan(rings.Last(SignalId::kSmActivity)));
  EXPECT_TRUE(std::isnan(rings.MedianOf(SignalId::kSmActivity, 10)));
  EXPECT_FALSE(rings.Has(SignalId::kSmActivity));
  rings.Add(SignalId::kLoss, 1, Second(1));
  EXPECT_TRUE(std::isnan(rings.Last(SignalId::kSmActivity)));
}

TEST(SampleRings, TheNewestNumberOfACounterIsExact) {
  SampleRings rings;
  rings.Add(SignalId::kReadBytes, 9'007'199'254'740'991.0, Second(1));
  EXPECT_EQ(rings.Last(SignalId::kReadBytes), 9'007'199'254'740'991.0);
}

TEST(SampleRings, TheNewestAreKept) {
  SampleRings rings;
  for (int i = 0; i < 300; ++i) rings.Add(SignalId::kLoss, static_cast<float>(i), Second(i));
  EXPECT_EQ(rings.Last(SignalId::kLoss), 299);
  EXPECT_EQ(rings.LastTime(SignalId::kLoss), Second(299));
  EXPECT_EQ(rings.MedianOf(SignalId::kLoss, 3), 298);
  EXPECT_EQ(rings.MedianOf(SignalId::kLoss, 100'000), 299 - 63.5) << "of 128";
}

TEST(SampleRings, SignalsInAnyOrder) {
  SampleRings rings;
  for (int i = 0; i < 10; ++i) {
    rings.Add(i % 2 == 0 ? SignalId::kLoss : SignalId::kGradNorm, static_cast<float>(i), Second(i));
    rings.Add(i % 2 == 0 ? SignalId::kGradNorm : SignalId::kLoss, static_cast<float>(-i),
              Second(i));
  }
  EXPECT_EQ(rings.Last(SignalId::kLoss), -9);
  EXPECT_EQ(rings.Last(SignalId::kGradNorm), 9);
  rings.Add(SignalId::kStep, 4, Second(11));
  EXPECT_EQ(rings.Last(SignalId::kStep), 4);
}

TEST(SampleRings, GrowOnlyBySignals) {
  SampleRings rings;
  rings.Add(SignalId::kLoss, 1, Second(0));
  const size_t before = rings.bytes();
  for (int i = 0; i < 100'000; ++i) rings.Add(SignalId::kLoss, 1, Second(i));
  EXPECT_EQ(rings.bytes(), before);
}

TEST(SampleRings, CoarseMeansReachFurtherBack) {
  SampleRings rings;
  for (int i = 0; i < 3600; ++i)
    rings.Add(SignalId::kLoss, static_cast<float>(i % 10) + static_cast<float>(i / 60), Second(i));
  const std::vector<float> minutes = rings.MinuteMeans(SignalId::kLoss);
  ASSERT_EQ(minutes.size(), 59u) << "the last is being built";
  for (size_t i = 0; i < minutes.size(); ++i)
    ASSERT_FLOAT_EQ(minutes[i], 4.5f + static_cast<float>(i));
  const std::vector<float> tens = rings.TenSecondMeans(SignalId::kLoss);
  ASSERT_EQ(tens.size(), SampleRings::kTens);
  EXPECT_FLOAT_EQ(tens.back(), 4.5f + 59);
  EXPECT_FLOAT_EQ(tens.front(), 4.5f + 49) << "64 x 10 s before second 3590";
  EXPECT_TRUE(rings.MinuteMeans(SignalId::kStep).empty());
}

TEST(SampleRings, SurviveARestore) {
  SampleRings rings;
  for (int i = 0; i < 5000; ++i) rings.Add(SignalId::kLoss, static_cast<float>(i % 10), Second(i));
  ArchiveWriter out;
  out(rings);
  const std::string bytes = out.Take();
  SampleRings copy;
  ArchiveReader in(bytes);
  in(copy);
  ASSERT_TRUE(in.Complete());
  EXPECT_EQ(copy.Last(SignalId::kLoss), rings.Last(SignalId::kLoss));
  copy.Add(SignalId::kLoss, 7, Second(5001));
  rings.Add(SignalId::kLoss, 7, Second(5001));
  ArchiveWriter a, b;
  a(rings);
  b(copy);
  EXPECT_EQ(a.Take(), b.Take());
}

}  // namespace
}  // namespace rankscope::windows
