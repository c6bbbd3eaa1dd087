// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/job_summaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

JobSummary Job(const std::string& job_id, int64_t end = 1, double step = 400) {
  JobSummary summary;
  summary.job_id = job_id;
  summary.end_wall_seconds = end;
  summary.records = 40;
  summary.last_step = step;
  summary.checkpoints = {{"/scratch/step.pt", 1, step}};
  return summary;
}

TEST(JobSummaries, WhatWasPutIsThereAfterARestart) {
  TemporaryDirectory directory;
  {
    JobSummaries store;
    ASSERT_TRUE(store.Open(directory.path() + "/s").ok());
    ASSERT_TRUE(store.Put(Job("8841")).ok());
    ASSERT_TRUE(store.Put(Job("../x")).ok());
    ASSERT_TRUE(store.Put(Job("8841", 2, 600)).ok());
  }
  JobSummaries store;
  ASSERT_TRUE(store.Open(directory.path() + "/s").ok());
  EXPECT_EQ(store.size(), 2u);
  EXPECT_EQ(store.Find("8841"), JobSummaryToText(Job("8841", 2, 600)));
  EXPECT_EQ(store.Find("../x"), JobSummaryToText(Job("../x")));
  EXPECT_EQ(store.Find("884"), "");
  EXPECT_FALSE(fs::exists(directory.path() + "/x"));
}

TEST(JobSummaries, ALaterAttemptThatDidNothingTakesNothingAway) {
  JobSummaries store;
  ASSERT_TRUE(store.Put(Job("7")).ok());
  JobSummary crashed;
  crashed.job_id = "7";
  crashed.code = "A1";
  ASSERT_TRUE(store.Put(crashed).ok());
  const auto read = ReadJobSummary(store.Find("7"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->code, "A1");
  EXPECT_EQ(read->last_step, 400);
  EXPECT_EQ(read->checkpoints.size(), 1u);
}

TEST(JobSummaries, TasksOfAnArrayAreFoundByTheirNames) {
  TemporaryDirectory directory;
  JobSummary third = Job("8851", 5, 300), fourth = Job("8850", 6, 400);
  third.array_task = "8850_3";
  fourth.array_task = "8850_4";  // the last task has the array's own number
  {
    JobSummaries store;
    ASSERT_TRUE(store.Open(directory.path()).ok());
    ASSERT_TRUE(store.Put(third).ok());
    ASSERT_TRUE(store.Put(fourth).ok());
    ASSERT_TRUE(
        store.Put(Job("8860+1")).ok());  // whatever somebody calls a job is a file of its own
  }
  JobSummaries store;
  ASSERT_TRUE(store.Open(directory.path()).ok());
  EXPECT_EQ(store.size(), 3u);
  EXPECT_EQ(store.Find("8850_3"), JobSummaryToText(third));
  EXPECT_EQ(store.Find("8851"), JobSummaryToText(third));
  EXPECT_EQ(store.Find("8850_4"), JobSummaryToText(fourth));
  EXPECT_EQ(store.Find("8860+1"), JobSummaryToText(Job("8860+1")));
  EXPECT_EQ(store.Find("8850_5"), "");
  EXPECT_EQ(store.Find("8860"), "");
}

TEST(JobSummaries, DamagedFilesCostThemselves) {
  TemporaryDirectory directory;
  JobSummaries store;
  ASSERT_TRUE(store.Open(directory.path()).ok());
  ASSERT_TRUE(store.Put(Job("1")).ok());
  std::ofstream(directory.path() + "/2") << "\xff\xff\xff" << std::string(3 << 20, 'x');
  std::ofstream(directory.path() + "/3") << JobSummaryToText(Job("4")) << "\n";  // another's name
  std::ofstream(directory.path() + "/5.new") << JobSummaryToText(Job("5"));
  fs::create_symlink("/etc/passwd", directory.path() + "/6");
  fs::create_directory(directory.path() + "/7");
  JobSummaries again;
  const Status status = again.Open(directory.path());
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), testing::HasSubstr("remove it"));
  EXPECT_EQ(again.size(), 1u);
  EXPECT_FALSE(fs::exists(directory.path() + "/5.new"));
}

TEST(JobSummaries, ADiskThatRefusesCostsTheFileOnly) {
  TemporaryDirectory directory;
  std::ofstream(directory.path() + "/file") << "x";
  JobSummaries store;
  EXPECT_FALSE(store.Open(directory.path() + "/file/s").ok());
  EXPECT_TRUE(store.Put(Job("1")).ok());
  EXPECT_NE(store.Find("1"), "");

  JobSummaries full;
  ASSERT_TRUE(full.Open(directory.path() + "/s").ok());
  fs::create_symlink("/dev/full", directory.path() + "/s/9.new");  // no disk behind it takes a byte
  EXPECT_FALSE(full.Put(Job("9")).ok());
  EXPECT_NE(full.Find("9"), "");
  EXPECT_FALSE(fs::exists(directory.path() + "/s/9"));
  EXPECT_TRUE(full.Put(Job("8")).ok());
}

TEST(JobSummaries, AreBoundedAndTheOldestGo) {
  TemporaryDirectory directory;
  JobSummaries store(128);
  ASSERT_TRUE(store.Open(directory.path()).ok());
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(store.Put(Job(std::to_string(i), 1000 + i)).ok());
  EXPECT_LE(store.size(), 128u);
  EXPECT_GE(store.size(), 120u);
  EXPECT_EQ(static_cast<size_t>(std::distance(fs::directory_iterator(directory.path()), {})),
            store.size());
  EXPECT_NE(store.Find("399"), "");
  EXPECT_EQ(store.Find("0"), "");  // ended first
  const size_t before = store.size();
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(store.Put(Job("old" + std::to_string(i), 1)).ok());
  EXPECT_EQ(store.Find("399").empty(), false);
  EXPECT_LE(store.size(), before + 9);
  EXPECT_EQ(static_cast<size_t>(std::distance(fs::directory_iterator(directory.path()), {})),
            store.size());
}

TEST(JobSummaries, WhoReadsKeepsWhatTheyHave) {
  JobSummaries store;
  ASSERT_TRUE(store.Put(Job("1")).ok());
  const auto held = store.all();
  ASSERT_TRUE(store.Put(Job("2")).ok());
  EXPECT_EQ(held->size(), 1u);
  EXPECT_EQ(store.all()->size(), 2u);
}

TEST(JobSummaries, AJobWithoutAUsefulNameIsNotKept) {
  JobSummaries store;
  ASSERT_TRUE(store.Put(Job("")).ok());
  ASSERT_TRUE(store.Put(Job(std::string(5000, 'x'))).ok());
  EXPECT_EQ(store.size(), 0u);
}

}  // namespace
}  // namespace rankscope::exporter
