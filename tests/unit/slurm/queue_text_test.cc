// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Jobs in columns, whose separator no name can hold, and what they confirm of scontrol's text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "exporter/slurm/commands.h"
#include "exporter/slurm/text_reader.h"

namespace rankscope::exporter::slurm {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr char kSeparator[] = "~0123456789abcdef01234567~";

// As squeue prints what QueueFormat asks for; columns that are not named are "N/A".
std::string Row(const std::map<std::string, std::string>& values) {
  std::istringstream format(QueueFormat(kSeparator));
  std::string row;
  for (std::string column; std::getline(format, column, ',');) {
    const std::string name = column.substr(0, column.find(':'));
    const auto found = values.find(name);
    row += (found == values.end() ? "N/A" : found->second) + kSeparator;
  }
  return row + "\n";
}

std::map<std::string, std::string> Running(const std::string& id, const std::string& name) {
  return {{"JobID", id},
          {"ArrayJobID", id},
          {"UserID", "1000"},
          {"UserName", "ada"},
          {"Partition", "gpu"},
          {"State", "RUNNING"},
          {"Reason", "None"},
          {"NodeList", "n[1-2]"},
          {"NumNodes", "2"},
          {"RestartCnt", "0"},
          {"TimeLimit", "1-00:00:00"},
          {"SubmitTime", "1795444481"},
          {"StartTime", "1795444482"},
          {"EndTime", "1795530882"},
          {"TimeUsed", "1:05"},
          {"exit_code", "0"},
          {"tres-per-node", "gres:gpu:2"},
          {"Name", name}};
}

// Names as their owners may choose them, 255 bytes among them.
std::vector<std::string> HostileNames() {
  std::string wide;
  for (int i = 0; i < 127; ++i) wide += "\xc3\xa9";
  return {
      "x UserId=e(5) JobState=FAILED Reason=y ExitCode=1:0 WorkDir=/x Power=\nJobId=99 JobName=y",
      "a\nb",
      "JobState=FAILED",
      "a=b|c,d",
      "\"'`\\$(x)",
      "\x01\x1b[31m\x7f",
      "(null)",
      "N/A",
      wide + "x",
      "\xff\xfe",
      std::string(kSeparator).substr(1),
      ""};
}

TEST(QueueText, NoNameForgesAFactOrAJob) {
  for (const std::string& name : HostileNames()) {
    const auto read = ReadQueueText(Row(Running("7", name)) + Row(Running("8", "b")), kSeparator);
    EXPECT_EQ(read.unreadable, 0) << name;
    ASSERT_THAT(read.records, SizeIs(2)) << name;
    const SlurmJob& job = read.records[0];
    EXPECT_EQ(job.job_id, "7");
    EXPECT_EQ(job.name, name);
    EXPECT_EQ(job.state, "RUNNING");
    EXPECT_EQ(job.uid, 1000);
    EXPECT_EQ(job.gpus, 4);
    EXPECT_EQ(job.nodes, "n[1-2]");
    EXPECT_EQ(job.time_limit_seconds, 86400);
    EXPECT_EQ(job.array_job_id, "") << "its own number is none";
    EXPECT_EQ(job.exit, std::nullopt) << "it runs";
    EXPECT_EQ(read.records[1].job_id, "8");
  }
}

TEST(QueueText, ReadsAnEndAndATaskOfAnArray) {
  auto values = Running("9", "a");
  values["ArrayJobID"] = "7";
  values["ArrayTaskID"] = "2";
  values["State"] = "FAILED";
  values["exit_code"] = "768";
  const auto read = ReadQueueText(Row(values), kSeparator);
  ASSERT_THAT(read.records, SizeIs(1));
  EXPECT_EQ(read.records[0].array_job_id, "7");
  EXPECT_EQ(read.records[0].array_task, "2");
  EXPECT_EQ(read.records[0].exit, (ExitStatus{3, 0}));
}

TEST(QueueText, ReadsWhereTheOutputGoes) {
  const auto plain = Running("7", "a");
  std::string row = Row(plain);
  row.pop_back();
  row += std::string("/a/%j\n.out") + kSeparator + "/a/%j.err" + kSeparator + "\n";
  const auto read = ReadQueueText(row + row, kSeparator, QueueColumns::kWithOutput);
  ASSERT_THAT(read.records, SizeIs(2));
  EXPECT_EQ(read.unreadable, 0);
  EXPECT_EQ(read.records[0].std_out, "/a/%j\n.out");
  EXPECT_EQ(read.records[1].std_err, "/a/%j.err");
  EXPECT_EQ(read.records[1].name, "a");
  EXPECT_THAT(ReadQueueText(Row(plain), kSeparator, QueueColumns::kWithOutput).records, IsEmpty())
      << "a row without them is cut";
}

TEST(QueueText, WhatWasCutIsCounted) {
  const std::string row = Row(Running("7", "a"));
  EXPECT_EQ(ReadQueueText(row.substr(0, row.size() / 2), kSeparator).unreadable, 1);
  EXPECT_EQ(ReadQueueText("slurm_load_jobs error", kSeparator).unreadable, 1);
  EXPECT_THAT(ReadQueueText("", kSeparator).records, IsEmpty());
  EXPECT_THAT(ReadQueueText(row, "").records, IsEmpty());
}

// What scontrol prints of a job with such a name, in which two records can be read.
TEST(QueueText, WhatANameImitatesIsNotConfirmed) {
  for (const std::string& name : HostileNames()) {
    const auto scontrol = ReadJobText(
        "JobId=7 JobName=" + name +
        " UserId=ada(1000) JobState=RUNNING Reason=None Dependency=(null) Restarts=0 ExitCode=0:0 "
        "SubmitTime=1795444481 StartTime=1795444482 EndTime=1795530882 Partition=gpu "
        "NodeList=n[1-2] Comment=mine WorkDir=/home/ada\n");
    const auto sure = ReadQueueText(Row(Running("7", name)), kSeparator);
    const std::vector<SlurmJob> jobs = Confirm(sure.records, scontrol.records);
    ASSERT_THAT(jobs, SizeIs(1)) << name;
    EXPECT_EQ(jobs[0].job_id, "7");
    EXPECT_EQ(jobs[0].state, "RUNNING") << name;
    EXPECT_EQ(jobs[0].uid, 1000);
    EXPECT_EQ(jobs[0].user, "ada");
    EXPECT_EQ(jobs[0].name, name);
  }
  const auto plain = ReadJobText(
      "JobId=7 JobName=a UserId=ada(1000) JobState=RUNNING Restarts=0 SubmitTime=1795444481 "
      "StartTime=1795444482 Partition=gpu SuspendTime=1795444490 Comment=mine WorkDir=/home/ada\n");
  const std::vector<SlurmJob> jobs =
      Confirm(ReadQueueText(Row(Running("7", "a")), kSeparator).records, plain.records);
  EXPECT_EQ(jobs[0].suspend, 1795444490);
  EXPECT_EQ(jobs[0].work_dir, "/home/ada");
}

}  // namespace
}  // namespace rankscope::exporter::slurm
