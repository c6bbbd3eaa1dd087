// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/queue_summary.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace rankscope::exporter::slurm {
namespace {

using Jobs = std::array<int64_t, kQueueStates.size()>;

SlurmJob Job(std::string state, std::string partition, std::string user = "ada",
             std::string reason = {}) {
  SlurmJob job;
  job.job_id = "7";
  job.state = std::move(state);
  job.partition = std::move(partition);
  job.user = std::move(user);
  job.account = "science";
  job.reason = std::move(reason);
  return job;
}

SlurmNode Node(std::string state, std::string partitions, std::vector<std::string> flags = {}) {
  SlurmNode node;
  node.name = "n1";
  node.state = std::move(state);
  node.state_flags = std::move(flags);
  node.partitions = std::move(partitions);
  node.cpus = 64;
  node.cpus_allocated = node.state == "IDLE" || node.state == "DOWN" ? 0 : 16;
  node.gpus = 8;
  node.gpus_allocated = node.state == "ALLOCATED" ? 8 : 0;
  node.memory_bytes = 1000;
  return node;
}

TEST(QueueSummary, TasksOfAnArrayAreJobs) {
  EXPECT_EQ(CountTasks(""), 1);
  EXPECT_EQ(CountTasks("7"), 1);
  EXPECT_EQ(CountTasks("1-5,9%2"), 6);
  EXPECT_EQ(CountTasks("[0-9:2,20]"), 6);
  EXPECT_EQ(CountTasks("1-3,5-..."), 3) << "as long as Slurm prints the list";
  EXPECT_EQ(CountTasks("9-1,x,-4,1-99999999999,1-9:0"), 1);
}

TEST(QueueSummary, JobsByStatePartitionUserAndReason) {
  SlurmJob array = Job("PENDING", "gpu,long", "ada", "Priority");
  array.array_task = "1-4";
  SlurmJob completing = Job("", "gpu", "bob");
  completing.state_flags = {"COMPLETING"};
  SlurmJob nameless = Job("PENDING", "gpu", "", "ReqNodeNotAvail, UnavailableNodes:n[1-2]");
  nameless.uid = 1001;
  SlurmJob step = Job("RUNNING", "gpu");
  step.step_id = "0";
  const SlurmQueue queue = Summarize(
      {array, completing, nameless, step, Job("RUNNING", "gpu"), Job("COMPLETED", "gpu")}, {});
  ASSERT_EQ(queue.partitions.size(), 2u);
  EXPECT_EQ(queue.partitions[0].name, "gpu");
  EXPECT_EQ(queue.partitions[0].jobs, (Jobs{5, 0, 1, 0, 1}));
  EXPECT_EQ(queue.partitions[1].jobs, (Jobs{4, 0, 0, 0, 0}));
  ASSERT_EQ(queue.users.size(), 3u);
  EXPECT_EQ(queue.users[0].name, "1001");
  EXPECT_EQ(queue.users[1].name, "ada");
  EXPECT_EQ(queue.users[1].account, "science");
  EXPECT_EQ(queue.users[1].jobs, (Jobs{4, 0, 1, 0, 0}));
  ASSERT_EQ(queue.waits.size(), 2u);
  EXPECT_EQ(queue.waits[0], (std::pair<std::string, int64_t>("Priority", 4)));
  EXPECT_EQ(queue.waits[1], (std::pair<std::string, int64_t>("ReqNodeNotAvail", 1)));
}

TEST(QueueSummary, NodesByStateAndWhatPartitionsHave) {
  const SlurmQueue queue = Summarize(
      {}, {Node("IDLE", "gpu,long"), Node("ALLOCATED", "gpu"), Node("MIXED", "gpu"),
           Node("DOWN", "gpu"), Node("MIXED", "gpu", {"DRAIN"}), Node("IDLE", "gpu", {"DRAIN"})});
  EXPECT_EQ(queue.nodes, (std::array<int64_t, 8>{1, 1, 1, 1, 0, 1, 1, 0}));
  ASSERT_EQ(queue.resources.size(), 2u);
  EXPECT_EQ(queue.resources[0].name, "gpu");
  EXPECT_EQ(queue.resources[0].cpus.total, 6 * 64);
  EXPECT_EQ(queue.resources[0].cpus.allocated, 3 * 16);
  EXPECT_EQ(queue.resources[0].cpus.idle, 64 + 48 + 48) << "nodes out of service have none to give";
  EXPECT_EQ(queue.resources[0].gpus.total, 48);
  EXPECT_EQ(queue.resources[0].gpus.allocated, 8);
  EXPECT_EQ(queue.resources[0].gpus.idle, 16);
  EXPECT_EQ(queue.resources[1].memory_bytes.idle, 1000);
  ASSERT_EQ(queue.partitions.size(), 2u) << "where nobody waits";
}

TEST(QueueSummary, WhatIsBeyondTheBoundsIsSummed) {
  std::vector<SlurmJob> jobs;
  for (int i = 0; i < 1000; ++i) {
    jobs.push_back(Job("PENDING", "p" + std::to_string(i), "u" + std::to_string(i),
                       "Reason" + std::to_string(i)));
  }
  jobs.push_back(jobs.back());
  const SlurmQueue queue = Summarize(jobs, {});
  const auto check = [](const std::vector<SlurmQueue::JobsOf>& rows, size_t size, int64_t rest) {
    ASSERT_EQ(rows.size(), size);
    EXPECT_EQ(rows.front().jobs[0], 2) << "who has most";
    EXPECT_EQ(rows.back().name, "other");
    EXPECT_EQ(rows.back().jobs[0], rest);
  };
  check(queue.partitions, 64, 1000 - 63);
  check(queue.users, 128, 1000 - 127);
  ASSERT_EQ(queue.waits.size(), 32u);
  EXPECT_EQ(queue.waits.back(), (std::pair<std::string, int64_t>("other", 1000 - 31)));
}

TEST(QueueSummary, AReasonIsAWord) {
  const SlurmQueue queue =
      Summarize({Job("PENDING", "gpu", "a", "$(rm -rf)"), Job("PENDING", "gpu", "a", ""),
                 Job("PENDING", "gpu", "a", std::string(5000, 'x'))},
                {});
  ASSERT_EQ(queue.waits.size(), 2u);
  EXPECT_EQ(queue.waits[0], (std::pair<std::string, int64_t>("other", 2)));
  EXPECT_EQ(queue.waits[1].first, "none");
}

}  // namespace
}  // namespace rankscope::exporter::slurm
