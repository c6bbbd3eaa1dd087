// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/job_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>

namespace rankscope {
namespace {

JobSummary Full() {
  JobSummary summary;
  summary.job_id = "8841";
  summary.end_wall_seconds = 1795444490;
  summary.restarts = 2;
  summary.code = "A2";
  summary.node = "n1";
  summary.program = "train.py";
  summary.records = 80;
  summary.first_step = 5;
  summary.last_step = 400;
  summary.total_steps = 1000;
  summary.first_loss = 2.61;
  summary.last_loss = 0.702;
  summary.loss_mad = 0.0131;
  summary.saves = 2;
  summary.checkpoints = {{"/scratch/Run 7/step_400.pt", 91'000'000'001, 400}, {"a:b|c[d]\"e\\f"}};
  return summary;
}

void ExpectSame(const JobSummary& a, const JobSummary& b) {
  EXPECT_EQ(JobSummaryToText(a), JobSummaryToText(b));
  EXPECT_EQ(a.job_id, b.job_id);
  EXPECT_EQ(a.code, b.code);
  EXPECT_EQ(a.last_step, b.last_step);
  ASSERT_EQ(a.checkpoints.size(), b.checkpoints.size());
  for (size_t i = 0; i < a.checkpoints.size(); ++i)
    EXPECT_EQ(a.checkpoints[i].path, b.checkpoints[i].path);
}

TEST(JobSummary, GoesAndComes) {
  const std::string text = JobSummaryToText(Full());
  EXPECT_EQ(
      text,
      "rs1 job:8841 end:1795444490 try:2 code:^a2 node:n1 prog:train.py step:5:400 of:1000 "
      "loss:2.61:0.702 mad:0.0131 records:80 saves:2 "
      "ckpt:/scratch/^run~207/step_400.pt:91000000001:400 ckpt:a~3ab~7cc~5bd~5d~22e~5cf:-:- .");
  const auto read = ReadJobSummary(text);
  ASSERT_TRUE(read);
  ExpectSame(*read, Full());
  EXPECT_EQ(read->checkpoints[0].bytes, 91'000'000'001);
  EXPECT_TRUE(std::isnan(read->checkpoints[1].bytes));
}

// sacctmgr writes small letters; the hook puts words around it.
TEST(JobSummary, SurvivesAComment) {
  std::string comment = "grid 7 [rankscope A2 signal_kill (sigkill) confidence 0.85 final; " +
                        JobSummaryToText(Full()) + " Rank 1 ended by SIGKILL: 40 steps]";
  std::transform(comment.begin(), comment.end(), comment.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  EXPECT_EQ(FindJobSummary(comment), JobSummaryToText(Full()));
  const auto read = ReadJobSummary(comment);
  ASSERT_TRUE(read);
  ExpectSame(*read, Full());
}

// Cut anywhere: what is read is what was written, or nothing.
TEST(JobSummary, ACutLineSaysNothingWrong) {
  const std::string text = JobSummaryToText(Full());
  for (size_t size = 0; size < text.size(); ++size) {
    const auto read = ReadJobSummary(text.substr(0, size) + "]");
    if (!read) continue;
    EXPECT_EQ(read->job_id, "8841");
    EXPECT_TRUE(std::isnan(read->last_step) || read->last_step == 400) << size;
    EXPECT_TRUE(read->records == 0 || read->records == 80) << size;
    EXPECT_TRUE(std::isnan(read->total_steps) || read->total_steps == 1000) << size;
    for (size_t i = 0; i < read->checkpoints.size(); ++i)
      EXPECT_EQ(read->checkpoints[i].path, Full().checkpoints[i].path) << size;
  }
}

TEST(JobSummary, IsAtMostOneKilobyteOfPlainLetters) {
  JobSummary summary = Full();
  summary.job_id = summary.node = summary.program = std::string(5000, '|');
  summary.checkpoints.assign(9, {"/\xff\n\"[x]" + std::string(6000, 'A') + "/last.pt", 1, 2});
  const std::string text = JobSummaryToText(summary);
  EXPECT_LE(text.size(), JobSummary::kMostBytes);
  EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789 :/._+-~^"),
            std::string::npos);
  const auto read = ReadJobSummary(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->job_id, std::string(JobSummary::kMostWordBytes, '|'));
}

TEST(JobSummary, OfALongPathTheEndIsKept) {
  JobSummary summary = Full();
  summary.checkpoints = {{std::string(300, 'd') + "/step_400.pt", 1, 2}};
  const auto read = ReadJobSummary(JobSummaryToText(summary));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->checkpoints.size(), 1u);
  EXPECT_TRUE(read->checkpoints[0].path.starts_with("...d"));
  EXPECT_TRUE(read->checkpoints[0].path.ends_with("/step_400.pt"));
}

TEST(JobSummary, ATaskOfAnArrayHasTwoNames) {
  JobSummary task = Full();
  task.array_task = "7_3";
  const std::string text = JobSummaryToText(task);
  const auto read = ReadJobSummary(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->array_task, "7_3");
  EXPECT_EQ(JobSummaryToText(*read), text);
  JobSummary begun_again;
  begun_again.job_id = task.job_id;
  EXPECT_EQ(GoOn(task, begun_again).array_task, "7_3");

  JobSummaryLines lines{{task.job_id, text}, {"9", "rs1 job:9 task:7_31 end:5 try:0 ."}};
  EXPECT_EQ(LineOfJob(lines, "7_3"), text);
  EXPECT_EQ(LineOfJob(lines, task.job_id), text);
  EXPECT_EQ(LineOfJob(lines, "7_31"), lines["9"]);
  for (const char* other : {"7", "7_", "7_1", "_3", "17_3", "7_3 ", ""})
    EXPECT_EQ(LineOfJob(lines, other), "") << other;
  // Numbers come again after years: the newest of a name.
  lines["11"] = "rs1 job:11 task:7_31 end:9 try:0 .";
  lines["12"] = "rs1 job:12 task:7_31 end:4 try:0 .";
  EXPECT_EQ(LineOfJob(lines, "7_31"), lines["11"]);
}

TEST(JobSummary, OtherTextsAreNone) {
  for (const char* text : {"", "rs1", "rs1 job:", "rs1 job: .", "rs2 job:7 step:1:2 .",
                           "job:7 step:1:2 .", "rs1  job:7 ."}) {
    EXPECT_FALSE(ReadJobSummary(text)) << text;
  }
  EXPECT_FALSE(ReadJobSummary(std::string(2 << 20, 'x')));
  const auto hostile = ReadJobSummary(
      "rs1 job:7 step:nan:inf loss:1e999:0x10 mad:-- records:-5 saves:99999999999999999999 "
      "try:1e30 "
      "end:1.5e5 ckpt ckpt: ckpt:a ckpt:b:c:d:e ckpt:~zz^9~:1 unknown:1 step .");
  ASSERT_TRUE(hostile);
  EXPECT_TRUE(std::isnan(hostile->first_step));
  EXPECT_TRUE(std::isnan(hostile->last_step));
  EXPECT_TRUE(std::isnan(hostile->first_loss));
  EXPECT_EQ(hostile->records, 0);
  EXPECT_EQ(hostile->saves, 0);
  EXPECT_EQ(hostile->restarts, 0);
  EXPECT_EQ(hostile->checkpoints.size(), JobSummary::kMostCheckpoints);
}

// Whoever can write a job's comment can write a line: it cannot bring longer names than we write.
TEST(JobSummary, LongerNamesThanWeWriteAreNobodys) {
  const std::string longest(JobSummary::kMostWordBytes, 'a');
  const auto fits = ReadJobSummary("rs1 job:" + longest + " records:1 .");
  ASSERT_TRUE(fits);
  EXPECT_EQ(fits->job_id, longest);
  EXPECT_FALSE(ReadJobSummary("rs1 job:" + longest + "a records:1 ."));
  const auto summary = ReadJobSummary("rs1 job:7 prog:" + longest + "a ckpt:/" +
                                      std::string(JobSummary::kMostPathBytes + 3, 'p') + ":1:1 .");
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->program, "");
  EXPECT_EQ(summary->checkpoints.at(0).path, "");
}

TEST(JobSummary, AnAttemptThatDidNothingTakesNothingAway) {
  JobSummary crashed;
  crashed.job_id = "8841";
  crashed.code = "A1";
  crashed.restarts = 3;
  const JobSummary after = GoOn(Full(), crashed);
  EXPECT_EQ(after.code, "A1");
  EXPECT_EQ(after.restarts, 3);
  EXPECT_EQ(after.last_step, 400);
  EXPECT_EQ(after.checkpoints.size(), 2u);
  JobSummary trained = crashed;
  trained.records = 10;
  trained.last_step = 600;
  const JobSummary further = GoOn(Full(), trained);
  EXPECT_EQ(further.last_step, 600);
  EXPECT_EQ(further.checkpoints.front().step, 400);  // it had saved none of its own
}

TEST(ProgramOf, IsTheScriptOrTheModule) {
  EXPECT_EQ(ProgramOf({"torchrun", "--nproc_per_node", "2", "/home/ada/train.py", "--lr", "1"}),
            "train.py");
  EXPECT_EQ(ProgramOf({"python", "-u", "-m", "torch.distributed.run", "train.py"}), "train.py");
  EXPECT_EQ(ProgramOf({"python", "-m", "fairseq_cli.train", "x"}), "fairseq_cli.train");
  EXPECT_EQ(ProgramOf({"bash", "job.sh"}), "");
  EXPECT_EQ(ProgramOf({}), "");
  EXPECT_EQ(ProgramOf({"python", "-m"}), "");
}

}  // namespace
}  // namespace rankscope
