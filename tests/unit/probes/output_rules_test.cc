// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/stdio/output_rules.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

namespace rankscope::probes {
namespace {

using Answer = OutputRules::Answer;
using attribution::ProcessInfo;
using attribution::ProcessRole;

rs_file Pipe(uint64_t inode) {
  return {inode, 15, S_IFIFO | 0600};
}
rs_file Regular(uint64_t inode) {
  return {inode, 0x800001, S_IFREG | 0644};
}
const rs_file kNull = {4, 6, S_IFCHR | 0666 | RS_FILE_NULL};

class OutputRulesTest : public testing::Test {
 protected:
  // bash 10 -> torchrun 20 -> rank 30 -> worker 40
  void SetUp() override {
    Add(10, 1, ProcessRole::kLauncher, "bash", Regular(1));
    Add(20, 10, ProcessRole::kLauncher, "torchrun", Regular(1));
    Add(30, 20, ProcessRole::kRank, "python3", Pipe(7));
    Add(40, 30, ProcessRole::kWorker, "python3", Pipe(7));
  }

  void Add(int32_t pid, int32_t parent, ProcessRole role, std::string comm, const rs_file& output) {
    ProcessInfo info;
    info.key = {pid, 100};
    info.parent = {parent, 100};
    info.role = role;
    info.comm = std::move(comm);
    info.job_id = "j";
    processes_[info.key] = info;
    standard_[pid] = {{rs_file{}, output, output}};
  }

  Answer Ask(int32_t pid, const rs_file& file, std::string_view text = "text\n",
             const rs_file& input = {}, bool first_look = true) {
    return rules_.Decide({{pid, 100}, file, input, text, first_look});
  }

  std::map<ProcessKey, ProcessInfo> processes_;
  std::map<int32_t, rs_standard> standard_;
  OutputRules rules_{[this](const ProcessKey& key) -> const ProcessInfo* {
                       const auto found = processes_.find(key);
                       return found == processes_.end() ? nullptr : &found->second;
                     },
                     [this](int32_t pid) -> std::optional<rs_standard> {
                       const auto found = standard_.find(pid);
                       if (found == standard_.end()) return std::nullopt;
                       return found->second;
                     }};
};

TEST_F(OutputRulesTest, ARanksStreamsAreOutputWhereverTheyLead) {
  EXPECT_EQ(Ask(30, Pipe(7)), Answer::kOutput);
  EXPECT_EQ(Ask(30, Regular(99)), Answer::kOutput);
  EXPECT_EQ(Ask(30, kNull), Answer::kOutput);
}

TEST_F(OutputRulesTest, BinaryIsNot) {
  EXPECT_EQ(Ask(30, Regular(99), std::string_view("PK\3\4\0\0", 6)), Answer::kNot);
}

TEST_F(OutputRulesTest, AStrangerMayBecomeSomebody) {
  EXPECT_EQ(Ask(77, Pipe(7)), Answer::kLater);
}

TEST_F(OutputRulesTest, AWorkerIsHeardWhereItInherits) {
  EXPECT_EQ(Ask(40, Pipe(7)), Answer::kOutput);
  EXPECT_EQ(Ask(40, Pipe(8)), Answer::kNot) << "a pipe that its rank reads";
  EXPECT_EQ(Ask(40, kNull), Answer::kNot);
  // The rank has put a log in place of its standard output since it was started.
  EXPECT_EQ(Ask(40, Regular(99)), Answer::kNot);
  EXPECT_EQ(Ask(30, Regular(99)), Answer::kOutput);
  EXPECT_EQ(Ask(40, Regular(99)), Answer::kOutput);
}

TEST_F(OutputRulesTest, ALauncherIsHeardOnTheJobsOutput) {
  EXPECT_EQ(Ask(20, Regular(1)), Answer::kOutput);
  EXPECT_EQ(Ask(20, Regular(2)), Answer::kNot) << "what a script writes into a file of its own";
  EXPECT_EQ(Ask(10, Regular(1)), Answer::kOutput);
  processes_[{10, 100}].alive = false;
  standard_.erase(10);
  EXPECT_EQ(Ask(20, Regular(1)), Answer::kOutput) << "the script has gone, its child goes on";
}

TEST_F(OutputRulesTest, SrunsLastWordsAreHeardWhenAllIsGone) {
  Add(21, 10, ProcessRole::kLauncher, "srun", Regular(1));
  Add(22, 10, ProcessRole::kLauncher, "cp", Regular(1));
  for (const int32_t pid : {10, 21, 22}) {
    processes_[{pid, 100}].alive = false;
    standard_.erase(pid);
  }
  EXPECT_EQ(Ask(21, Regular(1)), Answer::kOutput);
  EXPECT_EQ(Ask(22, Regular(2)), Answer::kNot) << "whatever a script has copied";
  EXPECT_EQ(Ask(21, kNull), Answer::kNot);
}

TEST_F(OutputRulesTest, WhoPassesOnARanksWordsIsNotHeard) {
  Add(21, 10, ProcessRole::kLauncher, "tee", Regular(1));
  EXPECT_EQ(Ask(30, Pipe(7)), Answer::kOutput);
  EXPECT_EQ(Ask(21, Regular(1), "text\n", Pipe(7)), Answer::kLater);
  EXPECT_EQ(Ask(21, Regular(1), "text\n", Pipe(7), false), Answer::kNot);
  EXPECT_EQ(Ask(21, Regular(1), "text\n", Pipe(8), false), Answer::kOutput)
      << "a filter of something else";
  EXPECT_TRUE(OutputRules::IsRelay("srun"));
  EXPECT_FALSE(OutputRules::IsRelay("torchrun"));
  EXPECT_TRUE(OutputRules::IsOwnWord("srun", "srun: Job step aborted"));
  EXPECT_TRUE(
      OutputRules::IsOwnWord("srun", "slurmstepd-n1: error: *** STEP 10.0 ON n1 CANCELLED"));
  EXPECT_FALSE(OutputRules::IsOwnWord("srun", "step 7 loss 0.5"));
  EXPECT_TRUE(OutputRules::IsOwnWord("", "step 7 loss 0.5")) << "whoever is no relay";
}

TEST_F(OutputRulesTest, WhatAWrapperHearsIsNotHeardAgain) {
  Add(10, 1, ProcessRole::kLauncher, "bash", Pipe(5));
  rules_.NoteWrapped({10, 100});
  EXPECT_EQ(Ask(30, Pipe(5)), Answer::kNot);
  EXPECT_EQ(Ask(30, Regular(99)), Answer::kOutput) << "a log that the wrapper does not see";
}

TEST_F(OutputRulesTest, OfAWrappedCommandThatHasEndedOnlyFilesAreOurs) {
  standard_.erase(10);
  rules_.NoteWrapped({10, 100});
  EXPECT_EQ(Ask(30, Pipe(7)), Answer::kNot);
  EXPECT_EQ(Ask(30, Regular(99)), Answer::kOutput);
}

}  // namespace
}  // namespace rankscope::probes
