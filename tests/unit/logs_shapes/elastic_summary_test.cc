// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/elastic_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Incident> RunSummary(std::string_view text) {
  return RunMachine<ElasticSummaryMachine>(text);
}

constexpr std::string_view kBlock =
    "============================================================\n"
    "fit.py FAILED\n"
    "------------------------------------------------------------\n"
    "Failures:\n"
    "[1]:\n"
    "  time      : 2025-03-01_10:20:31\n"
    "  host      : node-b\n"
    "  rank      : 9 (local_rank: 1)\n"
    "  exitcode  : 1 (pid: 4001)\n"
    "  error_file: <N/A>\n"
    "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
    "------------------------------------------------------------\n"
    "Root Cause (first observed failure):\n"
    "[0]:\n"
    "  time      : 2025-03-01_10:20:30\n"
    "  host      : node-a\n"
    "  rank      : 3 (local_rank: 3)\n"
    "  exitcode  : -9 (pid: 4000)\n"
    "  error_file: <N/A>\n"
    "  traceback : Signal 9 (SIGKILL) received by PID 4000\n"
    "============================================================\n";

TEST(ElasticSummary, ReadsEveryEntry) {
  const auto got = RunSummary(kBlock);
  ASSERT_THAT(got, SizeIs(2));
  EXPECT_EQ(got[0].kind, IncidentKind::kNonZeroExit);
  EXPECT_EQ(got[0].role, Role::kWrapper);
  EXPECT_EQ(got[0].rank, 9);
  EXPECT_EQ(got[0].local_rank, 1);
  EXPECT_EQ(got[0].exit_code, 1);
  EXPECT_EQ(got[0].pid, 4001);
  EXPECT_EQ(got[0].sub, "");
  EXPECT_EQ(got[0].message, "");
  EXPECT_EQ(got[1].kind, IncidentKind::kSignalDeath);
  EXPECT_EQ(got[1].sub, "root_cause");
  EXPECT_EQ(got[1].rank, 3);
  EXPECT_EQ(got[1].signal, 9);
  EXPECT_EQ(got[1].exit_code, -9);
  EXPECT_EQ(Field(got[1], "host"), "node-a");
  EXPECT_EQ(got[0].printed_time_s - got[1].printed_time_s, 1);
}

TEST(ElasticSummary, CitesTheExitCodeLine) {
  const auto got = RunSummary(kBlock);
  ASSERT_THAT(got, SizeIs(2));
  EXPECT_EQ(got[1].line, "  exitcode  : -9 (pid: 4000)");
  EXPECT_EQ(kBlock.substr(static_cast<size_t>(got[1].offset), got[1].line.size()), got[1].line);
}

TEST(ElasticSummary, SignalNamedBehindTheCode) {
  const auto got = RunSummary(
      "Root Cause (first observed failure):\n"
      "[0]:\n"
      "  rank      : 0 (local_rank: 0)\n"
      "  exitcode  : -11 (pid: 7) (SIGSEGV)\n"
      "==========\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].signal, 11);
}

TEST(ElasticSummary, ALoggersHeadBeforeEachLine) {
  const auto got = RunSummary(
      "2025-03-01 10:20:31 ERROR Root Cause (first observed failure):\n"
      "2025-03-01 10:20:31 ERROR [0]:\n"
      "2025-03-01 10:20:31 ERROR   rank      : 2 (local_rank: 2)\n"
      "2025-03-01 10:20:31 ERROR   exitcode  : 1 (pid: 7)\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].rank, 2);
  EXPECT_EQ(got[0].exit_code, 1);
}

TEST(ElasticSummary, RecordedTracebackNamesTheException) {
  const auto got = RunSummary(
      "Root Cause (first observed failure):\n"
      "[0]:\n"
      "  rank      : 2 (local_rank: 2)\n"
      "  exitcode  : 1 (pid: 7)\n"
      "  error_file: /tmp/err.json\n"
      "  traceback : Traceback (most recent call last):\n"
      "    File \"fit.py\", line 9, in main\n"
      "      run()\n"
      "  ValueError: no rows\n"
      "\n"
      "==========\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].role, Role::kWrapper);
  EXPECT_EQ(got[0].exception_type, "ValueError");
  EXPECT_EQ(got[0].message, "no rows");
}

TEST(ElasticSummary, CutOffBeforeTheExitCodeSaysNothing) {
  EXPECT_THAT(
      RunSummary("Root Cause (first observed failure):\n[0]:\n  time      : 2025-03-01_10:20:31\n"),
      IsEmpty());
}

TEST(ElasticSummary, NoOtherFailures) {
  EXPECT_THAT(RunSummary("Failures:\n  <NO_OTHER_FAILURES>\n------------------------------\n"),
              IsEmpty());
}

TEST(ElasticSummary, OtherListsOfFailuresAreNotClaimedForLong) {
  ElasticSummaryMachine machine;
  RecordList out;
  const auto lines = Lines("Failures:\nstep 3 loss 2.0\n");
  EXPECT_TRUE(machine.Feed(lines[0], out));
  EXPECT_FALSE(machine.Feed(lines[1], out));
  for (int i = 0; i < 100; ++i) machine.Feed(lines[1], out);
  EXPECT_FALSE(machine.open());
  EXPECT_THAT(out, IsEmpty());
}

}  // namespace
}  // namespace rankscope::logs
