// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/job_summaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "exporter/daemon/kept_file.h"
#include "tests/unit/agent/settled.h"
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

class JobSummariesTest : public testing::Test {
 protected:
  void Settle(const JobSummaries& store) {
    RunUntil(loop_, [&] { return store.files().waiting() == 0; });
  }

  EventLoop loop_;
  DiskThread disk_{loop_};
};

TEST_F(JobSummariesTest, WhatWasPutIsThereAfterARestart) {
  TemporaryDirectory directory;
  {
    JobSummaries store(loop_, disk_);
    ASSERT_TRUE(store.Open(directory.path() + "/s").ok());
    store.Put(Job("8841"));
    store.Put(Job("../x"));
    store.Put(Job("8841", 2, 600));
    Settle(store);
  }
  JobSummaries store(loop_, disk_);
  ASSERT_TRUE(store.Open(directory.path() + "/s").ok());
  EXPECT_EQ(store.size(), 2u);
  EXPECT_EQ(store.Find("8841"), JobSummaryToText(Job("8841", 2, 600)));
  EXPECT_EQ(store.Find("../x"), JobSummaryToText(Job("../x")));
  EXPECT_EQ(store.Find("884"), "");
  EXPECT_FALSE(fs::exists(directory.path() + "/x"));
}

TEST_F(JobSummariesTest, ALaterAttemptThatDidNothingTakesNothingAway) {
  JobSummaries store(loop_, disk_);
  store.Put(Job("7"));
  JobSummary crashed;
  crashed.job_id = "7";
  crashed.code = "A1";
  store.Put(crashed);
  const auto read = ReadJobSummary(store.Find("7"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->code, "A1");
  EXPECT_EQ(read->last_step, 400);
  EXPECT_EQ(read->checkpoints.size(), 1u);
}

TEST_F(JobSummariesTest, TasksOfAnArrayAreFoundByTheirNames) {
  TemporaryDirectory directory;
  JobSummary third = Job("8851", 5, 300), fourth = Job("8850", 6, 400);
  third.array_task = "8850_3";
  fourth.array_task = "8850_4";  // the last task has the array's own number
  {
    JobSummaries store(loop_, disk_);
    ASSERT_TRUE(store.Open(directory.path()).ok());
    store.Put(third);
    store.Put(fourth);
    store.Put(Job("8860+1"));  // whatever somebody calls a job is a file of its own
    Settle(store);
  }
  JobSummaries store(loop_, disk_);
  ASSERT_TRUE(store.Open(directory.path()).ok());
  EXPECT_EQ(store.size(), 3u);
  EXPECT_EQ(store.Find("8850_3"), JobSummaryToText(third));
  EXPECT_EQ(store.Find("8851"), JobSummaryToText(third));
  EXPECT_EQ(store.Find("8850_4"), JobSummaryToText(fourth));
  EXPECT_EQ(store.Find("8860+1"), JobSummaryToText(Job("8860+1")));
  EXPECT_EQ(store.Find("8850_5"), "");
  EXPECT_EQ(store.Find("8860"), "");
}

TEST_F(JobSummariesTest, DamagedFilesCostThemselves) {
  TemporaryDirectory directory;
  JobSummaries store(loop_, disk_);
  ASSERT_TRUE(store.Open(directory.path()).ok());
  store.Put(Job("1"));
  Settle(store);
  std::ofstream(directory.path() + "/2") << "\xff\xff\xff" << std::string(3 << 20, 'x');
  std::ofstream(directory.path() + "/3") << JobSummaryToText(Job("4")) << "\n";  // another's name
  std::ofstream(directory.path() + "/5.new") << JobSummaryToText(Job("5"));
  fs::create_symlink("/etc/passwd", directory.path() + "/6");
  fs::create_directory(directory.path() + "/7");
  JobSummaries again(loop_, disk_);
  const Status status = again.Open(directory.path());
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), testing::HasSubstr("remove it"));
  EXPECT_EQ(again.size(), 1u);
  EXPECT_FALSE(fs::exists(directory.path() + "/5.new"));
}

TEST_F(JobSummariesTest, AFileOfABuildWithoutChecksumsIsReadAndAFlippedBitIsNot) {
  TemporaryDirectory directory;
  std::string line = JobSummaryToText(Job("1"));
  std::ofstream(directory.path() + "/1") << line << "\n";
  JobSummaries store(loop_, disk_);
  ASSERT_TRUE(store.Open(directory.path()).ok());
  EXPECT_EQ(store.Find("1"), line);
  std::string sealed = SealLine(line);
  sealed[line.find("400")] = '9';  // a step that it never reached
  std::ofstream(directory.path() + "/1") << sealed;
  JobSummaries again(loop_, disk_);
  EXPECT_FALSE(again.Open(directory.path()).ok());
  EXPECT_EQ(again.Find("1"), "");
  EXPECT_EQ(again.damaged(), 1);
}

TEST_F(JobSummariesTest, ADiskThatRefusesCostsTheFileOnly) {
  TemporaryDirectory directory;
  std::ofstream(directory.path() + "/file") << "x";
  JobSummaries store(loop_, disk_);
  EXPECT_FALSE(store.Open(directory.path() + "/file/s").ok());
  store.Put(Job("1"));
  EXPECT_NE(store.Find("1"), "");

  JobSummaries full(loop_, disk_);
  ASSERT_TRUE(full.Open(directory.path() + "/s").ok());
  fs::create_symlink("/dev/full", directory.path() + "/s/9.new");  // no disk behind it takes a byte
  full.Put(Job("9"));
  full.Put(Job("8"));
  RunUntil(loop_, [&] { return full.files().errors() > 0; });
  EXPECT_NE(full.Find("9"), "");
  EXPECT_FALSE(fs::exists(directory.path() + "/s/9"));
  RunUntil(loop_, [&] { return full.files().waiting() == 1; });
  EXPECT_TRUE(fs::exists(directory.path() + "/s/8"));
  fs::remove(directory.path() + "/s/9.new");
  Settle(full);
  EXPECT_TRUE(fs::exists(directory.path() + "/s/9"));
}

TEST_F(JobSummariesTest, AreBoundedAndTheOldestGo) {
  TemporaryDirectory directory;
  JobSummaries store(loop_, disk_, 128);
  ASSERT_TRUE(store.Open(directory.path()).ok());
  for (int i = 0; i < 400; ++i) store.Put(Job(std::to_string(i), 1000 + i));
  EXPECT_LE(store.size(), 128u);
  EXPECT_GE(store.size(), 120u);
  Settle(store);
  EXPECT_EQ(static_cast<size_t>(std::distance(fs::directory_iterator(directory.path()), {})),
            store.size());
  EXPECT_NE(store.Find("399"), "");
  EXPECT_EQ(store.Find("0"), "");  // ended first
  const size_t before = store.size();
  for (int i = 0; i < 9; ++i) store.Put(Job("old" + std::to_string(i), 1));
  EXPECT_EQ(store.Find("399").empty(), false);
  EXPECT_LE(store.size(), before + 9);
  Settle(store);
  EXPECT_EQ(static_cast<size_t>(std::distance(fs::directory_iterator(directory.path()), {})),
            store.size());
}

TEST_F(JobSummariesTest, WhoReadsKeepsWhatTheyHave) {
  JobSummaries store(loop_, disk_);
  store.Put(Job("1"));
  const auto held = store.all();
  store.Put(Job("2"));
  EXPECT_EQ(held->size(), 1u);
  EXPECT_EQ(store.all()->size(), 2u);
}

TEST_F(JobSummariesTest, AJobWithoutAUsefulNameIsNotKept) {
  JobSummaries store(loop_, disk_);
  store.Put(Job(""));
  store.Put(Job(std::string(5000, 'x')));
  EXPECT_EQ(store.size(), 0u);
}

}  // namespace
}  // namespace rankscope::exporter
