// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/output/heard_files.h"

#include <gtest/gtest.h>

namespace rankscope::collectors {
namespace {

LogLine LineOf(const std::string& job_id, uint64_t inode, int64_t end, int32_t rank = -1) {
  LogLine line;
  line.stream = 1 << 16;
  line.job_id = job_id;
  line.rank = rank;
  line.file = {1, inode, end};
  return line;
}

TEST(HeardFiles, TheFurthestLineSaysHowFarAFileWasHeard) {
  HeardFiles heard;
  heard.Note(LineOf("j", 42, 100, 0), {1});
  heard.Note(LineOf("j", 42, 300), {2});
  LogLine later = LineOf("j", 42, 200);  // of another writer, heard a moment later
  later.stream = 7 << 16;
  heard.Note(later, {3});
  heard.Note(LineOf("j", 43, 10), {3});
  ASSERT_EQ(heard.All().size(), 2u);
  const HeardFile* const file = heard.Find({1, 42});
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->end, 300);
  EXPECT_TRUE(file->ranked);
  EXPECT_EQ(file->last, Timestamp{3});
  EXPECT_FALSE(heard.Find({1, 43})->ranked);
  EXPECT_EQ(heard.Find({2, 42}), nullptr);
  EXPECT_TRUE(heard.IsPlaced("j"));
}

TEST(HeardFiles, AFileThatWasCutShortIsHeardFromItsNewEnd) {
  HeardFiles heard;
  heard.Note(LineOf("j", 42, 900), {1});
  heard.Note(LineOf("j", 42, 50), {2});
  EXPECT_EQ(heard.Find({1, 42})->end, 50);
}

TEST(HeardFiles, TheNewestJobsFileCounts) {
  HeardFiles heard;
  heard.Note(LineOf("old", 42, 500), {1});
  heard.Note(LineOf("new", 42, 100), {2});
  EXPECT_EQ(heard.Find({1, 42})->job_id, "new");
}

TEST(HeardFiles, WhatGoesElsewhereIsKnown) {
  HeardFiles heard;
  heard.Note(LineOf("pipe", 0, 0), {1});
  LogLine wrapped = LineOf("wrapped", 0, 0);
  wrapped.stream = 1;
  heard.Note(wrapped, {1});
  EXPECT_FALSE(heard.IsPlaced("pipe"));
  EXPECT_TRUE(heard.IsPlaced("wrapped"));
}

TEST(HeardFiles, OfTooManyTheOldestGo) {
  HeardFiles heard;
  for (uint64_t i = 1; i <= HeardFiles::kMaxFiles + 1; ++i)
    heard.Note(LineOf("j" + std::to_string(i), i, 1), {static_cast<int64_t>(i)});
  EXPECT_EQ(heard.All().size(), HeardFiles::kMaxFiles);
  EXPECT_EQ(heard.Find({1, 1}), nullptr);
  EXPECT_FALSE(heard.IsPlaced("j1"));
}

}  // namespace
}  // namespace rankscope::collectors
