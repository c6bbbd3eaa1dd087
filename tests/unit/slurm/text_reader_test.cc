// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Texts in which a job's owner has put more than a name, and texts that end early.
#include "exporter/slurm/text_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "exporter/slurm/commands.h"
#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

std::string Job(const std::string& id, const std::string& name, const std::string& more = "",
                const std::string& texts = "") {
  return "JobId=" + id + " JobName=" + name + " UserId=alice(1000) GroupId=ml(500)" +
         " JobState=RUNNING Reason=None Requeue=1 Restarts=0 ExitCode=0:0 Partition=gpu" +
         " NodeList=n1 NumNodes=1 " + more + "Command=/home/alice/a.sh WorkDir=/home/alice" +
         texts + " StdOut=/home/alice/out \n";
}

SlurmJob Only(const Read<SlurmJob>& read) {
  EXPECT_EQ(read.unreadable, 0);
  EXPECT_THAT(read.records, SizeIs(1));
  return read.records.empty() ? SlurmJob() : read.records[0];
}

TEST(JobText, OfNoJobsIsEmpty) {
  for (const char* text : {"", "\n\n", "No jobs in the system\n"}) {
    EXPECT_THAT(ReadJobText(text).records, IsEmpty()) << text;
    EXPECT_EQ(ReadJobText(text).unreadable, 0) << text;
  }
  EXPECT_EQ(ReadJobText("slurm_load_jobs error: Unable to contact slurm controller").unreadable, 1);
}

TEST(JobText, ValuesHoldBlanksAndSigns) {
  const SlurmJob job = Only(ReadJobText(Job("7", "a  b=c Foo=bar (1) |")));
  EXPECT_EQ(job.name, "a  b=c Foo=bar (1) |");
  EXPECT_EQ(job.user, "alice");
  EXPECT_EQ(Only(ReadJobText(Job("7", ""))).name, "");
  EXPECT_EQ(Only(ReadJobText(Job("7", "(null)"))).name, "");
}

TEST(JobText, ANameThatIsNotKnownYetEndsNoFact) {
  const SlurmJob job = Only(ReadJobText(Job("7", "a", "AllocTRES=cpu=1,gres/gpu=2 NewFact=x y ")));
  EXPECT_EQ(job.gpus, 2);
  EXPECT_EQ(Only(ReadJobText(Job("7", "a", "BatchHost= NewFact=x "))).batch_host, "");
}

TEST(JobText, ALineThatANameBreaksIsOneRecord) {
  const auto read = ReadJobText(Job("7", "two\nlines") + Job("8", "b\n\n") + Job("9", "c"));
  EXPECT_EQ(read.unreadable, 0);
  ASSERT_THAT(read.records, SizeIs(3));
  EXPECT_EQ(read.records[0].name, "two\nlines");
  EXPECT_EQ(read.records[0].user, "alice");
  EXPECT_EQ(read.records[1].job_id, "8");
  EXPECT_EQ(read.records[2].job_id, "9");
}

// Who calls his job so would have another's job look failed.
TEST(JobText, ANameThatImitatesFactsIsUnreadable) {
  for (const char* name :
       {"x JobState=FAILED", "x UserId=root(0)", "x\nJobId=5 JobName=y", "x ExitCode=1:0 y",
        "x\nJobId=5 JobName=y UserId=bob(1001) JobState=FAILED", "x Command=/bin/true",
        "x WorkDir=/tmp"}) {
    const auto read = ReadJobText(Job("6", "a") + Job("7", name) + Job("8", "b"));
    EXPECT_EQ(read.unreadable, 1) << name;
    ASSERT_THAT(read.records, SizeIs(2)) << name;
    EXPECT_EQ(read.records[0].job_id, "6") << name;
    EXPECT_EQ(read.records[1].job_id, "8") << name;
  }
}

TEST(JobText, NoFactBeginsBehindTheFirstText) {
  const SlurmJob job = Only(ReadJobText(
      Job("7", "a", "", " Comment=see JobState=FAILED UserId=root(0) JobId=9 NumNodes=8")));
  EXPECT_EQ(job.state, "RUNNING");
  EXPECT_EQ(job.user, "alice");
  EXPECT_EQ(job.comment, "see JobState=FAILED UserId=root(0) JobId=9 NumNodes=8");
  EXPECT_EQ(job.std_out, "/home/alice/out");
}

TEST(JobText, ATextThatStandsTwiceIsNotSaid) {
  const SlurmJob job =
      Only(ReadJobText(Job("7", "a", "", " Comment=mine StdOut=/etc/shadow WorkDir=/")));
  EXPECT_EQ(job.std_out, "");
  EXPECT_EQ(job.work_dir, "");
  EXPECT_EQ(job.comment, "mine");
}

TEST(JobText, APathEndsBeforeANameThatIsNotKnownYet) {
  const auto texts = [](const std::string& value) {
    return Only(ReadJobText(Job("7", "a", "", " Comment=mine StdErr=" + value)));
  };
  EXPECT_EQ(texts("/home/al ice/a=b.err").std_err, "/home/al ice/a=b.err");
  EXPECT_EQ(texts("/home/alice/err KillOInInvalidDependent=No").std_err, "/home/alice/err");
  EXPECT_EQ(texts("/home/alice/err NewFact=5").std_err, "");
  EXPECT_EQ(texts("/home/alice/err NewFact=5").std_out, "/home/alice/out");
}

TEST(JobText, SaysWhatEachNodeHas) {
  const SlurmJob job =
      Only(ReadJobText(Job("7", "a",
                           "JOB_GRES=gpu:4   Nodes=n1 CPU_IDs=0-3 Mem=8 GRES=gpu:2(IDX:0-1)"
                           "   Nodes=n2 CPU_IDs=0-3 Mem=8 GRES=gpu:2(IDX:0-1) ")));
  EXPECT_EQ(job.nodes, "n1");
}

TEST(JobText, AsksForGpusWhereTheClusterCountsNone) {
  const auto gpus = [](const std::string& facts, const std::string& texts) {
    return Only(ReadJobText(Job("7", "a", facts, texts))).gpus;
  };
  EXPECT_EQ(gpus("TRES=cpu=4 ", " TresPerNode=gres:gpu:4"), 4);
  EXPECT_EQ(gpus("TRES=cpu=4 ", " TresPerJob=gres/gpu:a100:8"), 8);
  EXPECT_EQ(gpus("NumTasks=2 ", " TresPerTask=gres/gpu:1"), 2);
  EXPECT_EQ(gpus("TRES=cpu=4 ", ""), 0);
  EXPECT_EQ(gpus("ReqTRES=cpu=4,gres/gpu=2 AllocTRES=(null) ", ""), 2);
  EXPECT_EQ(gpus("ReqTRES=cpu=4,gres/gpu=2 AllocTRES=cpu=4,gres/gpu=1 ", ""), 1);
  EXPECT_EQ(gpus("", ""), std::nullopt);
}

TEST(JobText, KnowsWhatIsNoRecord) {
  EXPECT_EQ(ReadJobText("JobId=x JobName=a JobState=RUNNING WorkDir=/\n").unreadable, 1);
  EXPECT_EQ(ReadJobText("JobId=7 JobName=a WorkDir=/\n").unreadable, 1);
  EXPECT_EQ(ReadJobText("JobId=7 JobState= WorkDir=/\n").unreadable, 1);
  EXPECT_EQ(ReadJobText("x JobId=7 JobState=RUNNING WorkDir=/\n").unreadable, 1);
  const auto late = ReadJobText("=tail of a text JobState=RUNNING WorkDir=/\n" + Job("8", "b"));
  EXPECT_EQ(late.unreadable, 1);
  ASSERT_THAT(late.records, SizeIs(1));
  EXPECT_EQ(late.records[0].job_id, "8");
}

TEST(JobText, CutsWhatIsLong) {
  const SlurmJob job = Only(
      ReadJobText(Job("7", std::string(9000, 'n'), "", " SubmitLine=" + std::string(90000, 's'))));
  EXPECT_THAT(job.name, SizeIs(kMaxField));
  EXPECT_THAT(job.submit_line, SizeIs(kMaxSubmitLine));
  EXPECT_EQ(job.std_out, "/home/alice/out");
}

TEST(JobText, KeepsBytesThatAreNoText) {
  const std::string name("\xff\x00\x1b[31m\x80", 8);
  EXPECT_EQ(Only(ReadJobText(Job("7", name))).name, name);
}

std::string Node(const std::string& state, const std::string& more) {
  return "NodeName=n1 Arch=x86_64 CPUAlloc=0 CPUTot=4 CPULoad=0.10 Gres=gpu:2 OS=Linux 6.1 #1 "
         "SMP RealMemory=1000 AllocMem=0 FreeMem=N/A State=" +
         state +
         " Partitions=gpu  BootTime=None SlurmdStartTime=None CfgTRES=cpu=4 AllocTRES= " + more +
         "\n";
}

TEST(NodeText, TellsWhoSaidWhyFromWhy) {
  const auto reason = [](const std::string& text) {
    const auto read = ReadNodeText(Node("DOWN", "Reason=" + text));
    EXPECT_THAT(read.records, SizeIs(1)) << text;
    return read.records.empty() ? SlurmNode() : read.records[0];
  };
  const SlurmNode plain = reason("Not responding [slurm@1795442400]");
  EXPECT_EQ(plain.reason, "Not responding");
  EXPECT_EQ(plain.reason_by, "slurm");
  EXPECT_EQ(plain.reason_since, 1795442400);
  const SlurmNode nested = reason("[HC] card [0] of [a@b] [root@1795442400] Comment=x");
  EXPECT_EQ(nested.reason, "[HC] card [0] of [a@b]");
  EXPECT_EQ(nested.reason_by, "root");
  const SlurmNode lines = reason("first [root@1795442400]        second");
  EXPECT_EQ(lines.reason, "first second");
  EXPECT_EQ(lines.reason_by, "root");
  const SlurmNode bare = reason("mail [a@b.org] to know");
  EXPECT_EQ(bare.reason, "mail [a@b.org] to know");
  EXPECT_EQ(bare.reason_by, "");
  EXPECT_EQ(reason("[").reason, "[");
  EXPECT_EQ(reason(" [x@").reason, "[x@");
}

TEST(NodeText, WhatHasMovedHidesNothing) {
  const auto read = ReadNodeText(
      "NodeName=n1 Topology=default:s1 InstanceId=i-1 State=IDLE BootTime=None"
      " Reason=mine State=DOWN InstanceType=big ReservationName=r\n");
  ASSERT_THAT(read.records, SizeIs(1));
  EXPECT_EQ(read.records[0].state, "IDLE");
  EXPECT_EQ(read.records[0].reason, "mine State=DOWN");
}

TEST(NodeText, FallsBackToWhatIsConfigured) {
  const auto read = ReadNodeText(Node("IDLE", "") + Node("IDLE", "GresUsed=gpu:1(IDX:0)"));
  ASSERT_THAT(read.records, SizeIs(2));
  EXPECT_EQ(read.records[0].gpus, 2);
  EXPECT_EQ(read.records[0].gpus_allocated, std::nullopt);
  EXPECT_EQ(read.records[1].gpus_allocated, 1);
  EXPECT_EQ(read.records[0].memory_free_bytes, std::nullopt);
  EXPECT_EQ(read.records[0].boot, 0);
}

constexpr std::string_view kHeader = "JobIDRaw|JobID|State|ExitCode|JobName|NNodes\n";

// As `sacct -p` prints it: the separator, here a bar, stands behind each value.
Read<SlurmJob> Rows(const std::string& rows, std::string_view header = kHeader) {
  std::string text;
  for (const char c : std::string(header) + rows) text += c == '\n' ? "|\n" : std::string(1, c);
  return ReadAccountingText(text, "|");
}

TEST(AccountingText, NeedsAHeader) {
  EXPECT_THAT(ReadAccountingText("", "|").records, IsEmpty());
  EXPECT_EQ(ReadAccountingText("", "|").unreadable, 0);
  EXPECT_EQ(ReadAccountingText("7|7|FAILED|1:0|a|1|\n", "|").unreadable, 1);
  EXPECT_EQ(ReadAccountingText("Slurm accounting storage is disabled\n", "|").unreadable, 1);
  EXPECT_EQ(Only(ReadAccountingText("JobID|\n7|\n", "|")).job_id, "7");
  EXPECT_EQ(ReadAccountingText("JobID|\n7|\n", "~").unreadable, 1);
}

TEST(AccountingText, KnowsWhoCancelled) {
  const SlurmJob job = Only(Rows("7|7|CANCELLED by 1000|0:15|a|1\n"));
  EXPECT_EQ(job.state, "CANCELLED");
  EXPECT_EQ(job.state_by, "1000");
  EXPECT_EQ(job.exit, (ExitStatus{0, 15}));
}

// A name may hold whatever is not the separator: what looks like another job's row is the name's.
TEST(AccountingText, ANameForgesNoRowAndNoColumn) {
  const std::string separator = "~0123456789abcdef01234567~";
  const auto row = [&](std::initializer_list<std::string> values) {
    std::string text;
    for (const std::string& value : values) text += value + separator;
    return text + "\n";
  };
  for (const std::string& name :
       {std::string("a\n99|99|FAILED|1:0|x|1|\nb"), std::string("JobState=FAILED|\"'`\\"),
        std::string("\x01\x1f\x7f"), std::string("\n"), std::string(" || "),
        std::string("~0123456789abcdef0123456~"), std::string("\xc3\xa9\xff")}) {
    const auto read = ReadAccountingText(
        row({"JobIDRaw", "JobID", "State", "ExitCode", "JobName", "SubmitLine", "NNodes"}) +
            row({"7", "7", "RUNNING", "0:0", name, "sbatch -J " + name, "2"}) +
            row({"7.0", "7.0", "FAILED", "1:0", name, "srun -J " + name, "2"}) +
            row({"8", "8", "FAILED", "1:0", "b", "", "1"}),
        separator);
    EXPECT_EQ(read.unreadable, 0) << name;
    ASSERT_THAT(read.records, SizeIs(3)) << name;
    EXPECT_EQ(read.records[0].name, name);
    EXPECT_EQ(read.records[0].state, "RUNNING");
    EXPECT_EQ(read.records[0].node_count, 2);
    EXPECT_EQ(read.records[1].step_id, "0");
    EXPECT_EQ(read.records[1].name, name);
    EXPECT_EQ(read.records[2].job_id, "8");
  }
}

TEST(AccountingText, CountsWhatWasCut) {
  const auto few = Rows("8|8|FAILED|1:0|a|1\n7|7|FAILED|1:0|a");
  EXPECT_EQ(few.unreadable, 1);
  ASSERT_THAT(few.records, SizeIs(1));
  EXPECT_EQ(few.records[0].job_id, "8");
  const auto none =
      Rows("7|7|FAILED|1:0|2\n7|FAILED|FAILED|1:0|2\n", "JobIDRaw|JobID|State|ExitCode|NNodes\n");
  EXPECT_EQ(none.unreadable, 1);
}

TEST(AccountingText, ReadsTheFormsOfIds) {
  const auto only = [](const std::string& raw, const std::string& id) {
    return Only(Rows(raw + "|" + id + "|RUNNING\n", "JobIDRaw|JobID|State\n"));
  };
  EXPECT_EQ(only("12.batch", "12.batch").step_id, "batch");
  EXPECT_EQ(only("19", "12_7").job_id, "19");
  EXPECT_EQ(only("19", "12_7").array_job_id, "12");
  EXPECT_EQ(only("12", "12_[1-5%2]").array_task, "1-5%2");
  EXPECT_EQ(only("13.0", "12+1.0").het_offset, 1);
  EXPECT_EQ(only("13.0", "12+1.0").het_job_id, "12");
  // The array's number is not the task's.
  const SlurmJob alone = Only(Rows("12_7.0|RUNNING\n", "JobID|State\n"));
  EXPECT_EQ(alone.job_id, "");
  EXPECT_EQ(alone.array_job_id, "12");
  EXPECT_EQ(alone.step_id, "0");
  for (const char* id : {"", "x", "12.", "12_", "12+", "12+x", "-1", "12345678901", ".batch"}) {
    EXPECT_EQ(Rows(std::string(id) + "|RUNNING\n", "JobID|State\n").unreadable, 1) << id;
  }
}

TEST(StepText, ReadsWhatRuns) {
  const std::string separator = NewSeparator();
  EXPECT_NE(separator, NewSeparator());
  std::string text;
  for (const char* value : {"7.0", "a|b\n8.0", "1795444482", "n[1-2]", "4"})
    text += value + separator;
  text += "\n";
  for (const char* value : {"7.batch", "batch", "1795444480", "n1", "1"}) text += value + separator;
  text += "\n";
  for (const char* value : {"12_3.0", "of an array", "1795444480", "n1", "1"})
    text += value + separator;
  text += "\n";
  const auto read = ReadStepText(text, separator);
  EXPECT_EQ(read.unreadable, 0);
  ASSERT_THAT(read.records, SizeIs(2));
  EXPECT_EQ(read.records[0].step_id, "0");
  EXPECT_EQ(read.records[0].name, "a|b\n8.0");
  EXPECT_EQ(read.records[0].start, 1795444482);
  EXPECT_EQ(read.records[0].nodes, "n[1-2]");
  EXPECT_EQ(read.records[0].tasks, 4);
  EXPECT_EQ(read.records[1].step_id, "batch");
  EXPECT_EQ(ReadStepText(text.substr(0, 40), separator).unreadable, 1);
  EXPECT_THAT(ReadStepText("", separator).records, IsEmpty());
}

TEST(AccountingText, LimitsInMinutesAndInClock) {
  EXPECT_EQ(Only(Rows("7|90\n", "JobID|TimelimitRaw\n")).time_limit_seconds, 5400);
  EXPECT_EQ(Only(Rows("7|01:30:00\n", "JobID|Timelimit\n")).time_limit_seconds, 5400);
  EXPECT_EQ(Only(Rows("7|Partition_Limit\n", "JobID|Timelimit\n")).time_limit_seconds,
            std::nullopt);
}

TEST(DiagText, OfNothingSaysNothing) {
  for (const char* text :
       {"", "No data available. Probably slurmctld is not working\n", "::::\n", "Data since (\n",
        "Remote Procedure Call statistics by user\n\tx count:1"}) {
    const SlurmDiag diag = ReadDiagText(text);
    EXPECT_EQ(diag.since, 0) << text;
    EXPECT_EQ(diag.server_threads, std::nullopt) << text;
    EXPECT_THAT(diag.users, IsEmpty()) << text;
  }
}

TEST(DiagText, ANumberBelongsToItsHeading) {
  const SlurmDiag diag = ReadDiagText(
      "\tLast cycle:   7\nMain schedule statistics (microseconds):\n\tLast cycle:   1000000\n"
      "\tMax cycle: -1\n\tMean cycle: many\nBackfilling stats\n\tLast cycle: 2000000\n"
      "Main scheduler exit:\n\tLast cycle: 3000000\n");
  EXPECT_EQ(diag.cycle_seconds, 1.0);
  EXPECT_EQ(diag.backfill_seconds, 2.0);
  EXPECT_EQ(diag.cycle_max_seconds, std::nullopt);
  EXPECT_EQ(diag.cycle_mean_seconds, std::nullopt);
}

}  // namespace
}  // namespace rankscope::exporter::slurm
