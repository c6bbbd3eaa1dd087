// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which jobs a word on the command line means.
#include "exporter/watch/job_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope::watch {
namespace {

using exporter::slurm::SlurmJob;

SlurmJob Job(const std::string& id) {
  SlurmJob job;
  job.job_id = id;
  return job;
}

SlurmJob Task(const std::string& id, const std::string& array, const std::string& task) {
  SlurmJob job = Job(id);
  job.array_job_id = array;
  job.array_task = task;
  return job;
}

SlurmJob Part(const std::string& id, const std::string& het, int32_t offset) {
  SlurmJob job = Job(id);
  job.het_job_id = het;
  job.het_offset = offset;
  return job;
}

bool Means(const std::string& text, const SlurmJob& job) {
  const auto choice = ReadJobChoice(text);
  return choice && choice->Matches(job);
}

TEST(JobChoice, ANumberIsAJobAnArrayOrAHeterogeneousJob) {
  EXPECT_TRUE(Means("8841", Job("8841")));
  EXPECT_FALSE(Means("8841", Job("8842")));
  EXPECT_TRUE(Means("8841", Task("8845", "8841", "3")));
  EXPECT_TRUE(Means("8845", Task("8845", "8841", "3"))) << "by its own number";
  EXPECT_TRUE(Means("8841", Task("8841", "8841", "4-9%2")));
  EXPECT_TRUE(Means("8841", Part("8842", "8841", 1)));
}

TEST(JobChoice, TasksOfAnArray) {
  EXPECT_TRUE(Means("8841_3", Task("8845", "8841", "3")));
  EXPECT_FALSE(Means("8841_3", Task("8845", "8841", "4")));
  EXPECT_FALSE(Means("8841_3", Job("8841")));
  EXPECT_TRUE(Means("8841_[0-9]", Task("8845", "8841", "9")));
  EXPECT_FALSE(Means("8841_[0-9]", Task("8845", "8841", "10")));
  EXPECT_TRUE(Means("8841_[0-2,7]", Task("8845", "8841", "7")));
  EXPECT_TRUE(Means("8841_[0-8:4]", Task("8845", "8841", "4")));
  EXPECT_FALSE(Means("8841_[0-8:4]", Task("8845", "8841", "5")));
  EXPECT_TRUE(Means("8841_7", Task("8841", "8841", "4-9%2"))) << "it waits together with others";
  EXPECT_FALSE(Means("8841_3", Task("8841", "8841", "4-9%2")));
  EXPECT_TRUE(Means("8841_7", Task("8841", "8841", "1,3,5,...")));
}

TEST(JobChoice, APartOfAHeterogeneousJob) {
  EXPECT_TRUE(Means("8841+1", Part("8842", "8841", 1)));
  EXPECT_FALSE(Means("8841+1", Part("8841", "8841", 0)));
  EXPECT_FALSE(Means("8841+1", Job("8841")));
}

TEST(JobChoice, WhatIsAsked) {
  EXPECT_EQ(ReadJobChoice("8841")->Asked(), "8841");
  EXPECT_EQ(ReadJobChoice("8841_3")->Asked(), "8841_3");
  EXPECT_EQ(ReadJobChoice("8841_[3]")->Asked(), "8841_3");
  EXPECT_EQ(ReadJobChoice("8841_[0-9]")->Asked(), "8841");
  EXPECT_EQ(ReadJobChoice("8841+1")->Asked(), "8841");
}

TEST(JobChoice, RefusesWhatIsNoJob) {
  for (const char* const text : {"",        "0",      "x",           "-1",         "8841_",
                                 "8841_x",  "8841_[", "8841_[]",     "8841_[9-1]", "8841_[1-2:0]",
                                 "8841+",   "8841+x", "8841+99999",  "8841.0",     "8841 ",
                                 "8841;ls", "$(id)",  "12345678901", "8841_1_2",   "8841,8842"}) {
    const auto choice = ReadJobChoice(text);
    ASSERT_FALSE(choice) << text;
    EXPECT_THAT(choice.error(), testing::HasSubstr("is no job id")) << text;
  }
}

TEST(JobChoice, IsShownAsSlurmWritesIt) {
  EXPECT_EQ(ShownId(Job("8841")), "8841");
  EXPECT_EQ(ShownId(Task("8845", "8841", "3")), "8841_3");
  EXPECT_EQ(ShownId(Task("8841", "8841", "4-9%2")), "8841_[4-9%2]");
  EXPECT_EQ(ShownId(Part("8842", "8841", 1)), "8841+1");
}

}  // namespace
}  // namespace rankscope::watch
