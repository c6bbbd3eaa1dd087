// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/job_mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/unit/collectors/recording_sink.h"

namespace rankscope::collectors {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class JobMappingTest : public ::testing::Test {
 protected:
  JobMappingTest() {
    std::string name = (fs::temp_directory_path() / "rankscope_mapping_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  ~JobMappingTest() override { fs::remove_all(root_); }

  void Put(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  JobMapping::Jobs Jobs() const { return JobMapping::Read(root_.string()).jobs; }

  fs::path root_;
};

TEST_F(JobMappingTest, AFileOfEachCardNamesItsJobs) {
  Put("0", "8841\n");
  Put("1", "8841\n8842\n");
  Put("2.3", "77\r\n");
  Put("3", "");
  const JobMapping::Jobs jobs = Jobs();
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_THAT(jobs.at("8841"), ElementsAre("0", "1"));
  EXPECT_THAT(jobs.at("8842"), ElementsAre("1"));
  EXPECT_THAT(jobs.at("77"), ElementsAre("2.3"));
}

TEST_F(JobMappingTest, WhatIsNoCardAndNoJobIsPassedOver) {
  for (const char* name : {"a", "0.", ".1", "1.2.3", "-1", "0 ", "99999", "1.99999", "README"})
    Put(name, "8841\n");
  Put("4", "job 5\n-5\n5x\n 5\n99999999999\n\n" + std::string(1, '\0') + "\n6");
  Put("5", std::string(1 << 20, '7'));
  fs::create_directory(root_ / "6");
  fs::create_symlink("/etc/passwd", root_ / "7");
  ASSERT_EQ(mkfifo((root_ / "8").c_str(), 0600), 0);
  const JobMapping::Jobs jobs = Jobs();
  ASSERT_EQ(jobs.size(), 1u) << "the last line needs no end";
  EXPECT_THAT(jobs.at("6"), ElementsAre("4"));
  EXPECT_FALSE(JobMapping::Read((root_ / "absent").string()).readable);
}

TEST_F(JobMappingTest, OnlyWhatRootAloneCanHaveWrittenIsBelieved) {
  Put("0", "8841\n");
  Put("1", "8842\n");
  ASSERT_EQ(chmod((root_ / "1").c_str(), 0666), 0);
  JobMapping::Reading reading = JobMapping::Read(root_.string());
  EXPECT_EQ(reading.jobs.size(), 1u);
  EXPECT_EQ(reading.foreign, 1);
  ASSERT_EQ(chmod(root_.c_str(), 01777), 0);
  EXPECT_EQ(JobMapping::Read(root_.string()).jobs.size(), 1u) << "its files tell by their owners";
  ASSERT_EQ(chmod(root_.c_str(), 0777), 0);
  EXPECT_TRUE(JobMapping::Read(root_.string()).open_to_all);
  EXPECT_TRUE(JobMapping::Read(root_.string()).jobs.empty());
  ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(chown((root_ / "0").c_str(), 61002, 61002), 0);
  reading = JobMapping::Read(root_.string());
  EXPECT_TRUE(reading.jobs.empty());
  EXPECT_EQ(reading.foreign, 2);
}

TEST_F(JobMappingTest, OfAFileThatIsTooLongNoNumberIsCut) {
  std::string text = "8841\n";
  while (text.size() < JobMapping::kFileCap - 5) text += '\n';
  Put("0", text + "1234567\n");
  const JobMapping::Jobs jobs = Jobs();
  ASSERT_EQ(jobs.size(), 1u) << "12345 is another job's number";
  EXPECT_EQ(jobs.begin()->first, "8841");
}

TEST_F(JobMappingTest, ManyFilesAreBounded) {
  for (size_t i = 0; i < JobMapping::kMaxFiles + 100; ++i) Put(std::to_string(i), "5\n");
  EXPECT_EQ(Jobs().at("5").size(), JobMapping::kMaxFiles);
}

}  // namespace
}  // namespace rankscope::collectors
