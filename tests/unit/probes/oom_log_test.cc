// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/process/oom_log.h"

#include <gtest/gtest.h>

namespace rankscope::probes {
namespace {

constexpr std::string_view kLimit =
    "6,2193,8872319,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/"
    ",mems_allowed=0-1,"
    "oom_memcg=/slurm/uid_7/job_6,task_memcg=/slurm/uid_7/job_6/step_0/"
    "task_1,task=python3,pid=4711,"
    "uid=7\n";

TEST(OomLog, ALimitIsNamedWithItsOwner) {
  const auto line = ParseOomRecord(kLimit);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->scope, "cgroup");
  EXPECT_EQ(line->limit_owner, "/slurm/uid_7/job_6");
  EXPECT_EQ(line->task_cgroup, "/slurm/uid_7/job_6/step_0/task_1");
  EXPECT_EQ(line->pid, 4711);
  EXPECT_EQ(line->sequence, 2193);
  EXPECT_EQ(line->text.back(), '7') << "no newline";
}

TEST(OomLog, TheHostHasNoOwner) {
  const auto line = ParseOomRecord(
      "6,9,1,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=a,mems_allowed=0,global_"
      "oom,"
      "task_memcg=/user.slice,task=train,pid=12,uid=1000");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->scope, "host");
  EXPECT_EQ(line->limit_owner, "");
  EXPECT_EQ(line->task_cgroup, "/user.slice");
}

TEST(OomLog, ANameThatLooksLikeFieldsChangesNothing) {
  const auto line = ParseOomRecord(
      "6,9,1,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/"
      ",mems_allowed=0,global_oom,"
      "task_memcg=/a,task=x,oom_memcg=/b,pid=1,pid=77,uid=0");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->limit_owner, "");
  EXPECT_EQ(line->pid, 77);
}

TEST(OomLog, ACgroupsNameNamesNoOtherLimit) {
  const auto line = ParseOomRecord(
      "6,9,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,oom_memcg=/slurm/"
      "job_5,b,mems_allowed=0,oom_memcg=/user/c,task_memcg=/user/c/d,task=x,pid=77,uid=0");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->limit_owner, "") << "no limit of the task's own";
  EXPECT_EQ(line->pid, 77);
}

TEST(OomLog, TheRestOfALineIsNone) {
  std::string record(kLimit);
  record.replace(record.find("-;"), 1, "c");
  EXPECT_FALSE(ParseOomRecord(record));
  EXPECT_FALSE(ParseOomRecord(std::string(kLimit.substr(0, kLimit.size() - 1)) + "x\n"));
  EXPECT_FALSE(ParseOomRecord("30" + std::string(kLimit.substr(1)))) << "a daemon's";
}

TEST(OomLog, OtherRecordsAreNone) {
  EXPECT_FALSE(ParseOomRecord("6,1,2,-;Out of memory: Killed process 12 (python3)"));
  EXPECT_FALSE(ParseOomRecord("4,1,2,-;NVRM: Xid (PCI:0000:9b:00): 79, pid=1"));
  EXPECT_FALSE(ParseOomRecord("oom-kill:constraint=CONSTRAINT_NONE,pid=3"));  // no record's head
  EXPECT_FALSE(ParseOomRecord("6,1,2,-;oom-kill:constraint=CONSTRAINT_SOMETHING,pid=3,uid=0"));
  EXPECT_FALSE(ParseOomRecord("6,1,2,-;oom-kill:constraint=CONSTRAINT_NONE,task=x"));
  EXPECT_FALSE(ParseOomRecord(""));
}

TEST(OomLog, ALogThatCannotBeReadKnowsNothing) {
  OomLog log;
  EXPECT_FALSE(log.Open("/nonexistent/kmsg"));
  EXPECT_FALSE(log.Find(1));
}

}  // namespace
}  // namespace rankscope::probes
