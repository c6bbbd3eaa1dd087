// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is news of a job, when its runs begin and end, and the status that is passed on.
#include "exporter/watch/job_course.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/watch/slurm_round.h"

namespace rankscope::watch {
namespace {

using exporter::slurm::ExitStatus;
using exporter::slurm::SlurmJob;
using testing::ElementsAre;
using testing::IsEmpty;

SlurmJob Job(const std::string& state, int64_t restarts = 0) {
  SlurmJob job;
  job.job_id = "8841";
  job.state = state;
  job.restarts = restarts;
  if (state != "PENDING") {
    job.nodes = "n1";
    job.start = 1000;
  }
  return job;
}

SlurmJob Ended(const std::string& state, int code, int signal) {
  SlurmJob job = Job(state);
  job.exit = ExitStatus{code, signal};
  return job;
}

TEST(JobCourse, OneRunFromTheQueueToItsEnd) {
  JobCourse course;
  SlurmJob waits = Job("PENDING");
  waits.reason = "Resources";
  EXPECT_TRUE(course.Update(waits).state);
  EXPECT_FALSE(course.Update(waits).state) << "nothing new";
  waits.reason = "Priority";
  EXPECT_TRUE(course.Update(waits).state);
  waits.start = 50'000;
  EXPECT_TRUE(course.Update(waits).state) << "a start is expected";
  waits.start = 50'030;
  EXPECT_FALSE(course.Update(waits).state) << "the guess moves with each round";
  auto news = course.Update(Job("RUNNING"));
  EXPECT_TRUE(news.state && news.run_begun && !news.run_over);
  EXPECT_EQ(course.stage(), Stage::kRunning);
  SlurmJob completes = Job("");
  completes.state_flags = {"COMPLETING"};
  news = course.Update(completes);
  EXPECT_FALSE(news.state || news.run_over);
  news = course.Update(Ended("FAILED", 3, 0));
  EXPECT_TRUE(news.run_over && !news.put_back && !news.run_begun);
  EXPECT_EQ(course.stage(), Stage::kEnded);
  EXPECT_FALSE(course.Update(Ended("FAILED", 3, 0)).run_over) << "once";
}

TEST(JobCourse, SuspendedAndResumed) {
  JobCourse course;
  course.Update(Job("RUNNING"));
  auto news = course.Update(Job("SUSPENDED"));
  EXPECT_TRUE(news.state && !news.run_over);
  news = course.Update(Job("RUNNING"));
  EXPECT_TRUE(news.state && !news.run_begun);
}

TEST(JobCourse, APutBackJobHasTwoRuns) {
  JobCourse course;
  course.Update(Job("RUNNING"));
  auto news = course.Update(Job("PENDING", 1));
  EXPECT_TRUE(news.run_over && news.put_back && !news.run_begun);
  news = course.Update(Job("RUNNING", 1));
  EXPECT_TRUE(news.run_begun && !news.run_over);
  // Nobody looked while it waited.
  news = course.Update(Job("RUNNING", 2));
  EXPECT_TRUE(news.run_over && news.put_back && news.run_begun);
  news = course.Update(Job("COMPLETED", 2));
  EXPECT_TRUE(news.run_over && !news.put_back);
}

TEST(JobCourse, AnEndThatWasMetFirst) {
  JobCourse ran;
  auto news = ran.Update(Ended("COMPLETED", 0, 0));
  EXPECT_TRUE(news.run_over && news.run_begun);
  JobCourse never;
  SlurmJob cancelled = Ended("CANCELLED", 0, 0);
  cancelled.nodes.clear();
  news = never.Update(cancelled);
  EXPECT_TRUE(news.run_over && !news.run_begun);
}

TEST(JobCourse, WhatAccountingLeavesOutStays) {
  JobCourse course;
  SlurmJob runs = Job("RUNNING");
  runs.std_out = "/a/b";
  runs.uid = 7;
  course.Update(runs);
  course.Update(Ended("FAILED", 1, 0));
  EXPECT_EQ(course.job().std_out, "/a/b");
  EXPECT_EQ(course.job().uid, 7);
}

TEST(JobCourse, LostInTheQueue) {
  JobCourse course;
  course.Update(Job("RUNNING"));
  const auto news = course.Lose();
  EXPECT_TRUE(news.run_over && !news.put_back);
  EXPECT_TRUE(course.lost());
}

TEST(StatusOf, IsThatOfTheScript) {
  EXPECT_EQ(StatusOf(Ended("COMPLETED", 0, 0)), 0);
  EXPECT_EQ(StatusOf(Ended("FAILED", 3, 0)), 3);
  EXPECT_EQ(StatusOf(Ended("FAILED", 0, 9)), 137);
  EXPECT_EQ(StatusOf(Ended("TIMEOUT", 0, 15)), 143);
  EXPECT_EQ(StatusOf(Ended("OUT_OF_MEMORY", 0, 125)), 253);
  EXPECT_EQ(StatusOf(Ended("CANCELLED", 0, 0)), 1) << "it did not complete";
  EXPECT_EQ(StatusOf(Ended("NODE_FAIL", 0, 0)), 1);
  EXPECT_EQ(StatusOf(Job("RUNNING")), kUnknownStatus);
}

TEST(ForAccounting, WhoIsGoneOrEndedBadly) {
  Asking asking;
  asking.going = {"1", "2", "3", "4"};
  asking.ended = {"8"};
  asking.unfound = {"5", "6", "7"};
  std::vector<SlurmJob> jobs(6);
  const char* const states[] = {"RUNNING", "COMPLETED", "FAILED",
                                "RUNNING", "CANCELLED", "TIMEOUT"};
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i] = Job(states[i]);
    jobs[i].job_id = std::to_string(i + 1);
  }
  jobs[3].job_id = "9";
  jobs[3].array_job_id = "6";
  jobs[4].job_id = "8";
  jobs[5].job_id = "10";  // met at its end
  EXPECT_THAT(ForAccounting(asking, jobs), ElementsAre("4", "3", "10", "5", "7"));
  EXPECT_THAT(ForAccounting({}, {}), IsEmpty());
}

}  // namespace
}  // namespace rankscope::watch
