// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/verdict_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFar = int64_t{4'000'000'000} * 1'000'000'000;  // beyond every file's time

JobStatus Job(const std::string& job_id) {
  JobStatus job;
  job.job_id = job_id;
  job.verdict.set_job_id(job_id);
  job.verdict.set_code("A2");
  job.verdict.set_state(proto::FINAL);
  return job;
}

TEST(VerdictStore, WhatWasPutIsServedAfterARestart) {
  TemporaryDirectory directory;
  {
    VerdictStore store;
    ASSERT_TRUE(store.Open(directory.path() + "/v", 0, Seconds(60)).ok());
    ASSERT_TRUE(store.Put(Job("8841"), 0).ok());
    ASSERT_TRUE(store.Put(Job("../x"), 0).ok());
  }
  VerdictStore store;
  ASSERT_TRUE(store.Open(directory.path() + "/v", 0, Seconds(60)).ok());
  ASSERT_EQ(store.Jobs().size(), 2u);
  EXPECT_TRUE(store.Contains("../x"));
  EXPECT_EQ(store.Jobs()[1]->verdict.code(), "A2");
  EXPECT_FALSE(store.Jobs()[1]->running);
  EXPECT_TRUE(fs::exists(directory.path() + "/v/8841.json"));
  EXPECT_FALSE(fs::exists(directory.path() + "/x.pb"));
}

TEST(VerdictStore, ForgetsWhatIsTooOldOnDiskToo) {
  TemporaryDirectory directory;
  VerdictStore store;
  ASSERT_TRUE(store.Open(directory.path(), 0, Seconds(60)).ok());
  ASSERT_TRUE(store.Put(Job("1"), 0).ok());
  store.Expire(Seconds(61).ns, Seconds(60));
  EXPECT_TRUE(store.Jobs().empty());
  EXPECT_TRUE(fs::is_empty(directory.path()));
  ASSERT_TRUE(store.Put(Job("2"), 0).ok());
  VerdictStore later;
  ASSERT_TRUE(later.Open(directory.path(), kFar, Seconds(60)).ok());
  EXPECT_TRUE(later.Jobs().empty());
}

TEST(VerdictStore, ADamagedFileCostsItself) {
  TemporaryDirectory directory;
  VerdictStore store;
  ASSERT_TRUE(store.Open(directory.path(), 0, Seconds(60)).ok());
  ASSERT_TRUE(store.Put(Job("1"), 0).ok());
  std::ofstream(directory.path() + "/bad.pb") << "\xff\xff\xff";
  fs::create_symlink("/etc/passwd", directory.path() + "/link.pb");
  VerdictStore again;
  const Status status = again.Open(directory.path(), 0, Seconds(60));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), testing::HasSubstr("bad.pb"));
  EXPECT_EQ(again.Jobs().size(), 1u);
}

TEST(VerdictStore, WithoutADirectoryItKeepsInMemory) {
  TemporaryDirectory directory;
  std::ofstream(directory.path() + "/file") << "x";
  VerdictStore store;
  EXPECT_FALSE(store.Open(directory.path() + "/file/v", 0, Seconds(60)).ok());
  EXPECT_TRUE(store.Put(Job("1"), 0).ok());
  EXPECT_TRUE(store.Contains("1"));
}

TEST(VerdictStore, IsBoundedAndDropsTheOldest) {
  VerdictStore store;
  for (size_t i = 0; i <= VerdictStore::kMaxVerdicts; ++i) {
    ASSERT_TRUE(store.Put(Job(std::to_string(i)), static_cast<int64_t>(i)).ok());
  }
  EXPECT_EQ(store.Jobs().size(), VerdictStore::kMaxVerdicts);
  EXPECT_FALSE(store.Contains("0"));
}

TEST(FileNameOf, NeverLeavesItsDirectory) {
  EXPECT_EQ(FileNameOf("run-12ab.3_x"), "run-12ab.3_x");
  EXPECT_EQ(FileNameOf("../../etc"), "%2E.%2F..%2Fetc");
  EXPECT_EQ(FileNameOf("."), "%2E");
  EXPECT_EQ(FileNameOf(std::string("a\0b", 3)), "a%00b");
  EXPECT_LE(FileNameOf(std::string(1000, '/')).size(), 200u);
}

}  // namespace
}  // namespace rankscope::exporter
