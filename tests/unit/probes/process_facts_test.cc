// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "exporter/probes/process/process.h"

namespace rankscope::probes {
namespace {

using testing::ElementsAre;

rs_cgroup Cgroup(std::initializer_list<const char*> leaf_first) {
  rs_cgroup cgroup{};
  for (const char* name : leaf_first) std::strcpy(cgroup.name[cgroup.names++], name);
  return cgroup;
}

bool Keep(std::string_view key) {
  return key == "RANK" || key == "SLURM_JOB_ID";
}

std::unique_ptr<rs_exec> Exec(const std::string& arguments, const std::string& environment) {
  auto exec = std::make_unique<rs_exec>();
  std::memset(static_cast<void*>(exec.get()), 0, sizeof *exec);
  exec->process = {12'345'678'901, 77, 1000, "python3"};
  exec->parent = {1'000'000'000, 5, 1000, "torchrun"};
  exec->arguments = static_cast<uint32_t>(arguments.size());
  exec->environment = static_cast<uint32_t>(environment.size());
  std::memcpy(exec->data, arguments.data(), arguments.size());
  std::memcpy(exec->data + arguments.size(), environment.data(), environment.size());
  exec->cgroup = Cgroup({"job_6", "uid_1000", "slurm"});
  return exec;
}

TEST(ProcessFacts, AStartIsInTheTicksThatProcShows) {
  EXPECT_EQ(KeyOf(7, 12'349'999'999), (ProcessKey{7, 1234}));
}

TEST(ProcessFacts, ACgroupIsReadFromItsEnd) {
  EXPECT_EQ(CgroupPath(Cgroup({"task_0", "step_1", "job_6"})), "/job_6/step_1/task_0");
  EXPECT_EQ(CgroupPath(Cgroup({"task_0", "step_1", "job_6"}), 2), "/job_6");
  EXPECT_EQ(CgroupPath(Cgroup({})), "/");
  rs_cgroup cut = Cgroup({"a", "b"});
  cut.cut = 1;
  EXPECT_EQ(CgroupPath(cut), "/.../b/a");
  rs_cgroup damaged{};
  damaged.names = 4'000'000'000;  // no more is read than there is room for
  EXPECT_EQ(CgroupPath(damaged), "//////////");
}

TEST(ProcessFacts, AnExecTellsAll) {
  const std::string arguments("python3\0train.py\0", 17);
  const std::string environment("HOME=/root\0RANK=3\0SLURM_JOB_ID=99\0", 34);
  const auto exec = Exec(arguments, environment);
  exec->inner_pid = 2;
  exec->cgroup.v1 = RS_CGROUP_MEMORY;
  const auto facts = FactsOf(*exec, Keep);
  EXPECT_EQ(facts.start.key, (ProcessKey{77, 1234}));
  EXPECT_EQ(facts.start.parent, (ProcessKey{5, 100}));
  EXPECT_EQ(facts.start.uid, 1000u);
  EXPECT_EQ(facts.start.comm, "python3");
  EXPECT_THAT(facts.start.argv, ElementsAre("python3", "train.py"));
  ASSERT_EQ(facts.start.env.size(), 2u);
  EXPECT_EQ(facts.start.env[0].value, "3");
  EXPECT_TRUE(facts.environment.ranked);
  EXPECT_EQ(facts.environment.slurm_job_id, "99");
  EXPECT_THAT(facts.start.ns_pids, ElementsAre(77, 2));
  EXPECT_EQ(facts.start.cgroup, "/slurm/uid_1000/job_6");
  EXPECT_EQ(facts.cgroup.memory, "/slurm/uid_1000/job_6");
  EXPECT_EQ(facts.cgroup.unified, "");
  EXPECT_EQ(facts.owner.job_id, "6");
  EXPECT_TRUE(facts.start.complete);
  exec->cgroup.v1 = RS_CGROUP_OTHER;  // where a job's memory is not limited
  EXPECT_EQ(FactsOf(*exec, Keep).cgroup.memory, "");
  EXPECT_EQ(FactsOf(*exec, Keep).owner.job_id, "6");
}

TEST(ProcessFacts, WhatWasCutIsNotComplete) {
  auto exec = Exec(std::string("x\0", 2), std::string("RANK=3\0", 7));
  exec->cut = 1;  // arguments alone: the environment decides
  EXPECT_TRUE(FactsOf(*exec, Keep).start.complete);
  exec->cut = 2;
  EXPECT_FALSE(FactsOf(*exec, Keep).start.complete);
}

}  // namespace
}  // namespace rankscope::probes
