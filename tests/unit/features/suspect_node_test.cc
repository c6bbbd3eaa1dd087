// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A node that is in every run that fails soon, and what only looks like one.
#include "detectors/features/suspect_node.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {
namespace {

struct Run {
  std::string nodes;
  int64_t seconds = 120;
  std::string state = "NODE_FAIL";
  std::string failed_node = {};
  std::string by = {};
  std::string reason = {};
};

// Judges these runs, an hour apart.
SuspectNode Of(const std::vector<Run>& runs) {
  windows::SchedulerHistory history;
  int64_t start = 1'790'000'000;
  for (const Run& run : runs) {
    SchedulerRecord record;
    record.origin = "sacct";
    record.start = start;
    record.nodes = run.nodes;
    record.end = start + run.seconds;
    record.elapsed_seconds = run.seconds;
    record.failed_node = run.failed_node;
    record.by = run.by;
    record.reason = run.reason;
    record.state = run.state;
    record.wall_ns = record.end * 1'000'000'000;
    history.OnRecord(record, {{record.wall_ns}, 1});
    start += 3600;
  }
  const windows::JobWindow job("j", {});
  JobFeatures f;
  Citer citer(job, f);
  SuspectNode suspect;
  DescribeSuspectNode(history, citer, suspect);
  EXPECT_EQ(suspect.node.empty(), suspect.evidence == kNoEvidence);
  if (suspect.evidence != kNoEvidence) {
    EXPECT_EQ(f.evidence.back().values.Text(FieldId::kNode), suspect.node);
    EXPECT_EQ(f.evidence.back().observed, suspect.runs);
  }
  return suspect;
}

TEST(SuspectNode, InEachWhileTheOthersChange) {
  const SuspectNode suspect = Of({{"n[3-4]"}, {"n[1,3]"}, {"n[3,7]", 90, "FAILED"}});
  EXPECT_EQ(suspect.node, "n3");
  EXPECT_EQ(suspect.runs, 3);
  EXPECT_EQ(suspect.failed, 0);
}

TEST(SuspectNode, NamedAsTheOneThatFailedEachTime) {
  const SuspectNode suspect = Of({{"n[1-2]", 120, "NODE_FAIL", "n2"},
                                  {"n[1-2]", 120, "NODE_FAIL", "n2"},
                                  {"n[1-2]", 120, "NODE_FAIL", "n2"}});
  EXPECT_EQ(suspect.node, "n2");
  EXPECT_EQ(suspect.failed, 3);
}

TEST(SuspectNode, ThreeRunsAtLeast) {
  EXPECT_EQ(Of({{"n[3-4]"}, {"n[1,3]"}}).node, "");
}

TEST(SuspectNode, AJobOfOneNodeProvesNothing) {
  EXPECT_EQ(Of({{"n3"}, {"n3"}, {"n3"}, {"n3"}}).node, "");
  EXPECT_EQ(Of({{"n3", 120, "NODE_FAIL", "n3"},
                {"n3", 120, "NODE_FAIL", "n3"},
                {"n3", 120, "NODE_FAIL", "n3"}})
                .node,
            "");
  EXPECT_EQ(Of({{"n[3-4]"}, {"n[1,3]"}, {"n3"}, {"n[3,7]"}}).node, "");
}

TEST(SuspectNode, WhereNothingChangesNobodyIsSingledOut) {
  EXPECT_EQ(Of({{"n[1-2]"}, {"n[1-2]"}, {"n[1-2]"}}).node, "");
  EXPECT_EQ(Of({{"n[1-3]"}, {"n[1-2,4]"}, {"n[1-2,5]"}}).node, "");
}

TEST(SuspectNode, PreemptionsAndPeoplesActsAreNotTheNodes) {
  EXPECT_EQ(Of({{"n[3-4]", 120, "PREEMPTED"},
                {"n[1,3]", 120, "PREEMPTED"},
                {"n[3,7]", 120, "PREEMPTED"},
                {"n[3,8]", 120, "PREEMPTED"}})
                .node,
            "");
  EXPECT_EQ(Of({{"n[3-4]", 120, "REQUEUED", "", "", "JobPreempted"},
                {"n[1,3]", 120, "REQUEUED", "", "ada"},
                {"n[3,7]", 120, "CANCELLED by 1000"},
                {"n[3,8]", 120, "TIMEOUT"}})
                .node,
            "");
  // They do not speak for the node either.
  EXPECT_EQ(
      Of({{"n[3-4]"}, {"n[3,9]", 120, "PREEMPTED"}, {"n[1,3]"}, {"n[3,7]", 90, "FAILED"}}).node,
      "n3");
}

TEST(SuspectNode, ARunThatLastedThereSpeaksForIt) {
  EXPECT_EQ(Of({{"n[3-4]"}, {"n[1,3]"}, {"n[3,7]"}, {"n[3,8]", 7200, "NODE_FAIL"}}).node, "");
  EXPECT_EQ(Of({{"n[3-4]"}, {"n[1,3]"}, {"n[3,7]"}, {"n[3,8]", 60, "COMPLETED"}}).node, "");
  EXPECT_EQ(Of({{"n[3-4]"}, {"n[1,3]"}, {"n[3,7]"}, {"n[6,8]", 7200, "NODE_FAIL"}}).node, "n3");
  EXPECT_EQ(Of({{"n[3-4]", 600}, {"n[1,3]", 599}, {"n[3,7]", 599}}).node, "");
}

TEST(SuspectNode, AnotherThatIsNamedSpeaksForIt) {
  EXPECT_EQ(Of({{"n[3-4]", 120, "NODE_FAIL", "n4"}, {"n[1,3]"}, {"n[3,7]"}}).node, "");
}

TEST(SuspectNode, ListsThatAreNotKnownInFullDecideNothing) {
  std::string many = "n[1";
  for (int i = 3; i < 300; i += 2) many += "," + std::to_string(i);
  EXPECT_EQ(Of({{many + "]"}, {"n[1,2]"}, {"n[1,4]"}, {"n[1,6]"}}).node, "");
  EXPECT_EQ(Of({{"n[1-"}, {"n[1,2]"}, {"n[1,4]"}, {"n[1,6]"}}).node, "");
  EXPECT_EQ(Of({{""}, {"n[1,2]"}, {"n[1,4]"}, {"n[1,6]"}}).node, "");
}

}  // namespace
}  // namespace rankscope::features
