// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reasons and states of nodes, and words that only look like them.
#include "exporter/slurm/node_reason.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {
namespace {

std::string ClassOf(std::string_view reason) {
  return std::string(NodeReasonName(ClassifyReason(reason)));
}

TEST(NodeReason, HasANameForEach) {
  std::set<std::string_view> names;
  for (const NodeReason reason : NodeReasons()) names.insert(NodeReasonName(reason));
  EXPECT_EQ(names.size(), 12u);
}

TEST(NodeReason, KnowsSlurmsOwnWords) {
  EXPECT_EQ(ClassOf("Not responding"), "not_responding");
  EXPECT_EQ(ClassOf("ResumeTimeout reached"), "not_responding");
  EXPECT_EQ(ClassOf("Node unexpectedly rebooted"), "rebooted");
  EXPECT_EQ(ClassOf("Prolog error"), "prolog_epilog");
  EXPECT_EQ(ClassOf("Epilog error"), "prolog_epilog");
  EXPECT_EQ(ClassOf("Prolog/Epilog failure"), "prolog_epilog");
  EXPECT_EQ(ClassOf("Kill task failed"), "kill_task");
  EXPECT_EQ(ClassOf("Low RealMemory (reported:386000 < 100.00% of configured:512000)"), "memory");
  EXPECT_EQ(ClassOf("gres/gpu count reported lower than configured (7 < 8)"), "gpu");
  EXPECT_EQ(ClassOf("gres/gpu count too low (7 < 8)"), "gpu");
  EXPECT_EQ(ClassOf("NO NETWORK ADDRESS FOUND"), "network");
  EXPECT_EQ(ClassOf("Low socket*core*thread count, Low CPUs"), "hardware");
  EXPECT_EQ(ClassOf("reboot requested"), "operator");
  EXPECT_EQ(ClassOf("Duplicate jobid"), "other");
  EXPECT_EQ(ClassOf("batch job complete failure"), "other");
  EXPECT_EQ(ClassOf("rack 4 : reboot issued"), "operator");
  EXPECT_EQ(ClassOf("Kill task failed : Not responding"), "kill_task");
}

TEST(NodeReason, KnowsOperatorsPrefixes) {
  EXPECT_EQ(ClassOf("[node_problem] gpu: Xid 79 on 0000:c1:00.0"), "gpu");
  EXPECT_EQ(ClassOf("[node_problem] IB: port 1 down"), "network");
  EXPECT_EQ(ClassOf("[node_problem] something else"), "health_check");
  EXPECT_EQ(ClassOf("[hardware_problem] board"), "hardware");
  EXPECT_EQ(ClassOf("[user_problem] see mail"), "operator");
  EXPECT_EQ(ClassOf("[HC] GPU 3 lost"), "gpu");
  EXPECT_EQ(ClassOf("[HC] scratch"), "health_check");
  EXPECT_EQ(ClassOf("NHC: check_fs_mount: /scratch not mounted"), "health_check");
}

TEST(NodeReason, KnowsThePartsOfAMachine) {
  EXPECT_EQ(ClassOf("gpu3 fell off the bus"), "gpu");
  EXPECT_EQ(ClassOf("GPU memory: ECC"), "gpu");
  EXPECT_EQ(ClassOf("DIMM A4 uncorrectable ECC"), "memory");
  EXPECT_EQ(ClassOf("uncorrectable ECC"), "hardware");
  EXPECT_EQ(ClassOf("link flap on mlx5_2"), "network");
  EXPECT_EQ(ClassOf("PSU 2 dead"), "hardware");
  EXPECT_EQ(ClassOf("monthly maintenance"), "operator");
  EXPECT_EQ(ClassOf("INC1234"), "other");
  EXPECT_EQ(ClassOf("-"), "other");
}

TEST(NodeReason, OfNoneIsNone) {
  for (const char* text : {"", " ", "(null)", "none", "None"}) EXPECT_EQ(ClassOf(text), "none");
}

TEST(NodeReason, WordsWithinWordsAreNone) {
  EXPECT_EQ(ClassOf("gpuuser complained"), "other");
  EXPECT_EQ(ClassOf("memorial day"), "other");
  EXPECT_EQ(ClassOf("library move"), "other");
  EXPECT_EQ(ClassOf("fantastic"), "other");
  EXPECT_EQ(ClassOf("technical debt"), "other");
  EXPECT_EQ(ClassOf("latest image"), "other");
  EXPECT_EQ(ClassOf("\xc3\xa9gpu\xc3\xa9"), "other");
}

TEST(NodeReason, WordsOfSlurmWithMoreBehindThemAreNotSlurms) {
  EXPECT_EQ(ClassOf("Not responding to mails"), "other");
  EXPECT_EQ(ClassOf("owner is Not responding"), "other");
  EXPECT_EQ(ClassOf("Prolog error messages are being looked at"), "other");
  EXPECT_EQ(ClassOf("Kill task failed last week"), "other");
}

TEST(NodeReason, TakesAnyLength) {
  EXPECT_EQ(ClassOf(std::string(100'000, ':')), "other");
  EXPECT_EQ(ClassOf(std::string(100'000, 'x') + " gpu"), "other");
}

std::string Condition(std::string_view state) {
  SlurmNode node;
  StateWords words = ReadNodeState(state);
  node.state = words.base;
  node.state_flags = words.flags;
  return std::string(NodeConditionName(ConditionOf(node)));
}

TEST(NodeCondition, IsTheWorstThatIsSaid) {
  EXPECT_EQ(Condition("IDLE"), "up");
  EXPECT_EQ(Condition("ALLOCATED"), "up");
  EXPECT_EQ(Condition("MIXED+PLANNED"), "up");
  EXPECT_EQ(Condition("ALLOCATED*"), "up");  // not yet given up
  EXPECT_EQ(Condition("DOWN"), "down");
  EXPECT_EQ(Condition("DOWN*+DRAIN"), "down");
  EXPECT_EQ(Condition("DOWN+MAINTENANCE"), "down");
  EXPECT_EQ(Condition("IDLE+DRAIN"), "drained");
  EXPECT_EQ(Condition("IDLE+COMPLETING+DRAIN"), "draining");
  EXPECT_EQ(Condition("MIXED+DRAIN"), "draining");
  EXPECT_EQ(Condition("ALLOCATED+DRAIN+MAINTENANCE"), "draining");
  EXPECT_EQ(Condition("DRAINING"), "draining");
  EXPECT_EQ(Condition("DRAINED"), "drained");
  EXPECT_EQ(Condition("ALLOCATED+FAIL"), "failed");
  EXPECT_EQ(Condition("IDLE+MAINTENANCE"), "maintenance");
  EXPECT_EQ(Condition("IDLE^"), "maintenance");
  EXPECT_EQ(Condition("IDLE@"), "up");  // it waits for its jobs' end
  EXPECT_EQ(Condition("FUTURE"), "unknown");
  EXPECT_EQ(Condition("UNKNOWN"), "unknown");
  EXPECT_EQ(Condition(""), "unknown");
}

}  // namespace
}  // namespace rankscope::exporter::slurm
