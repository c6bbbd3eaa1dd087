// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/process_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace rankscope::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(ProcessFacts, StartTicksAreTheTwentySecondField) {
  const std::string stat = "17 (a) b (c)) S 1 17 17 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 3 4";
  EXPECT_EQ(ParseStartTicks(stat), 4711);
  EXPECT_EQ(ParseStartTicks("17 (x) S 1 17"), 0);
  EXPECT_EQ(ParseStartTicks(""), 0);
  EXPECT_GT(ReadProcessKey(getpid()).start_ticks, 0);
  EXPECT_EQ(ReadProcessKey(-1).start_ticks, 0);
}

TEST(ProcessFacts, ArgumentsAreMasked) {
  char a0[] = "train", a1[] = "--lr=0.1", a2[] = "--api-key=abcdefgh12345678",
       a3[] = "--wandb-api-key";
  char a4[] = "abcdefgh12345678", a5[] = "plain";
  char* argv[] = {a0, a1, a2, a3, a4, a5, nullptr};
  const auto masked = RedactArguments(argv);
  ASSERT_EQ(masked.size(), 6u);
  EXPECT_EQ(masked[0], "train");
  EXPECT_EQ(masked[1], "--lr=0.1");
  EXPECT_THAT(masked[2], Not(HasSubstr("abcdefgh")));
  EXPECT_EQ(masked[2].size(), std::string(a2).size());
  EXPECT_THAT(masked[4], Not(HasSubstr("abcdefgh")));
  EXPECT_EQ(masked[5], "plain");
}

TEST(ProcessFacts, OnlyAllowedVariablesLeave) {
  char e0[] = "RANK=3", e1[] = "HOME=/root", e2[] = "NCCL_DEBUG=INFO", e3[] = "WANDB_API_KEY=x",
       e4[] = "odd";
  char e5[] = "RANKS=1", e6[] = "SLURM_JOB_ID=8841";
  char* environment[] = {e0, e1, e2, e3, e4, e5, e6, nullptr};
  std::vector<std::string> keys;
  for (const KeyValue& pair : AllowedEnvironment(environment))
    keys.push_back(pair.key + "=" + pair.value);
  EXPECT_THAT(keys, ElementsAre("RANK=3", "NCCL_DEBUG=INFO", "SLURM_JOB_ID=8841"));
  EXPECT_EQ(EnvironmentValue(environment, "RANK"), "3");
  EXPECT_EQ(EnvironmentValue(environment, "RAN"), "");
}

TEST(ProcessFacts, DescribesAChild) {
  char a0[] = "/usr/bin/train.py";
  char* argv[] = {a0, nullptr};
  char* environment[] = {nullptr};
  const ProcessStart start = DescribeChild(ReadProcessKey(getpid()), "8841", argv, environment);
  EXPECT_EQ(start.comm, "train.py");
  EXPECT_EQ(start.job_id, "8841");
  EXPECT_TRUE(start.complete);
  EXPECT_FALSE(start.ns_pids.empty());
  EXPECT_FALSE(start.cgroup.empty());
}

}  // namespace
}  // namespace rankscope::run
