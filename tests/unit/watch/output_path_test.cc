// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Where a batch job's output lies. The paths of the first test are what slurmd of 22.05 made of the
// patterns.
#include "exporter/watch/output_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope::watch {
namespace {

using exporter::slurm::SlurmJob;
using testing::ElementsAre;
using testing::IsEmpty;

SlurmJob Job() {
  SlurmJob job;
  job.job_id = "927000";
  job.user = "root";
  job.name = "na%Nme";
  job.batch_host = "vm.example.org";
  job.work_dir = "/project";
  return job;
}

TEST(OutputPath, PatternsOfABatchJob) {
  EXPECT_EQ(ExpandPattern("%J_%t_%n_%N_%s_%5j_%%_%x_%u_%A_%a_%b.out", Job(), "b"),
            "927000_0_0_vm_batch_927000_%_na%Nme_root_927000_4294967294_%b.out");
  EXPECT_EQ(ExpandPattern("%8j", Job()), "00927000");
  EXPECT_EQ(ExpandPattern("%9999999999j", Job()), "0000927000") << "at most ten places";
  EXPECT_EQ(ExpandPattern("100%", Job()), "100%");
  EXPECT_EQ(ExpandPattern("%q%5", Job()), "%q%5");
}

TEST(OutputPath, PatternsOfATask) {
  SlurmJob task = Job();
  task.job_id = "8845";
  task.array_job_id = "8841";
  task.array_task = "13";
  EXPECT_EQ(ExpandPattern("slurm-%A_%a.out", task), "slurm-8841_13.out");
  EXPECT_EQ(ExpandPattern("%j_%4a_%b", task), "8845_0013_3");
}

TEST(OutputPath, ThePrintedPathComesFirst) {
  EXPECT_THAT(OutputPaths("/a/slurm-1.out", Job()), ElementsAre("/a/slurm-1.out"));
  EXPECT_THAT(OutputPaths("/a/%x.out", Job()), ElementsAre("/a/%x.out", "/a/na%Nme.out"));
  EXPECT_THAT(OutputPaths("logs/%j.out", Job()),
              ElementsAre("/project/logs/%j.out", "/project/logs/927000.out"));
  EXPECT_THAT(OutputPaths("/a/%b", Job()), ElementsAre("/a/%b", "/a/0"));
  EXPECT_THAT(OutputPaths("/a/x\\%j.out", Job()), ElementsAre("/a/x\\%j.out", "/a/x%j.out"))
      << "slurmd takes the sign away and expands nothing";
}

TEST(OutputPath, WhatIsNoPathIsNone) {
  EXPECT_THAT(OutputPaths("", Job()), IsEmpty());
  SlurmJob lost = Job();
  lost.work_dir.clear();
  EXPECT_THAT(OutputPaths("slurm.out", lost), IsEmpty()) << "relative to nobody knows what";
  EXPECT_THAT(OutputPaths("/" + std::string(5000, 'x'), Job()), IsEmpty());
}

}  // namespace
}  // namespace rankscope::watch
