// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A cluster that never was, as each version of Slurm would have spoken of it at 14:00 of 23
// November 2026 in UTC: the files of tests/fixtures/slurm/<version>/, and what they all say.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

inline constexpr std::array kVersions = {"22.05", "23.02", "23.11", "24.05",
                                         "24.11", "25.05", "25.11"};
inline constexpr int64_t kNow = 1795442400;

inline std::string Fixture(const std::string& version, const std::string& name) {
  const std::string path =
      std::string(RANKSCOPE_SOURCE_DIR) + "/tests/fixtures/slurm/" + version + "/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline SlurmJob AtlasJob(const std::string& id, const std::string& name, const std::string& user) {
  SlurmJob job;
  job.job_id = id;
  job.name = name;
  job.user = user;
  job.uid = user == "alice" ? 1000 : user == "bob" ? 1001 : 1002;
  job.account = "ml";
  job.partition = "gpu";
  job.qos = "normal";
  job.requeue = true;
  return job;
}

inline SlurmJob RunningJob() {
  SlurmJob job = AtlasJob("4101", "train 7b x=1", "alice");
  job.state = "RUNNING";
  job.nodes = "n[1-2]";
  job.batch_host = "n1";
  job.node_count = 2;
  job.cpus = 64;
  job.tasks = 16;
  job.gpus = 8;
  job.priority = 4200;
  job.restarts = 1;
  job.time_limit_seconds = 86400;
  job.submit = kNow - 4000;
  job.eligible = kNow - 3990;
  job.start = kNow - 3600;
  job.end = kNow + 82800;
  job.comment = "sweep 12";
  job.command = "/home/alice/run/train.sh --lr=0.1 model=7b";
  job.work_dir = "/home/alice/run";
  job.std_out = job.std_err = "/home/alice/run/slurm-4101.out";
  return job;
}

inline SlurmJob PendingJob() {
  SlurmJob job = AtlasJob("4102", "train 7b resume", "alice");
  job.state = "PENDING";
  job.reason = "Dependency";
  job.dependency = "afterany:4101(unfulfilled)";
  job.node_count = 2;
  job.cpus = 64;
  job.tasks = 16;
  job.gpus = 8;
  job.priority = 4100;
  job.restarts = 0;
  job.time_limit_seconds = 86400;
  job.submit = kNow - 3900;
  job.command = "/home/alice/run/train.sh";
  job.work_dir = "/home/alice/run";
  job.std_out = job.std_err = "/home/alice/run/slurm-4102.out";
  return job;
}

inline SlurmJob FailedTask() {
  SlurmJob job = AtlasJob("4113", "evals", "bob");
  job.array_job_id = "4110";
  job.array_task = "3";
  job.state = "FAILED";
  job.reason = "NonZeroExitCode";
  job.nodes = job.batch_host = "n3";
  job.node_count = 1;
  job.cpus = 8;
  job.tasks = 1;
  job.gpus = 1;
  job.priority = 3000;
  job.restarts = 0;
  job.time_limit_seconds = 3600;
  job.submit = job.eligible = kNow - 2000;
  job.start = kNow - 1900;
  job.end = kNow - 1700;
  job.exit = ExitStatus{1, 0};
  job.command = "/home/bob/eval.sh";
  job.work_dir = "/home/bob";
  job.std_out = job.std_err = "/home/bob/slurm-4110_3.out";
  job.requeue = false;
  return job;
}

// Its state is said together with a flag: the text says the flag alone.
inline SlurmJob CancelledPart() {
  SlurmJob job = AtlasJob("4121", "hetero", "bob");
  job.het_job_id = "4120";
  job.het_offset = 1;
  job.state_flags = {"COMPLETING"};
  job.reason = "NodeDown";
  job.nodes = "n[3,05-06]";
  job.batch_host = "n3";
  job.node_count = 3;
  job.cpus = 96;
  job.tasks = 3;
  job.gpus = 0;
  job.priority = 2900;
  job.restarts = 0;
  job.submit = job.eligible = kNow - 900;
  job.start = kNow - 800;
  job.end = kNow - 10;
  job.exit = ExitStatus{0, 9};
  job.failed_node = "n05";
  job.command = "/home/bob/het.sh";
  job.work_dir = "/home/bob";
  job.std_out = job.std_err = "/home/bob/slurm-4121.out";
  return job;
}

inline SlurmJob OverdueJob() {
  SlurmJob job = AtlasJob("4130", "None", "carol");
  job.state = "TIMEOUT";
  job.reason = "TimeLimit";
  job.nodes = job.batch_host = "n1";
  job.node_count = 1;
  job.cpus = 4;
  job.tasks = 1;
  job.gpus = 0;
  job.priority = 1;
  job.restarts = 2;
  job.time_limit_seconds = 60;
  job.submit = kNow - 700;
  job.eligible = kNow - 600;
  job.start = kNow - 500;
  job.end = kNow - 434;
  job.preempt = kNow - 450;
  job.exit = ExitStatus{0, 0};
  job.work_dir = "/home/carol";
  return job;
}

inline std::vector<SlurmJob> AtlasJobs() {
  return {RunningJob(), PendingJob(), FailedTask(), CancelledPart(), OverdueJob()};
}

inline std::vector<SlurmNode> AtlasNodes() {
  constexpr int64_t kMiB = 1024 * 1024;
  SlurmNode node;
  node.boot = kNow - 90000;
  node.slurmd_start = kNow - 80000;
  node.cpus = 64;
  node.gpus = 4;
  node.memory_bytes = 512000 * kMiB;
  SlurmNode mixed = node, down = node, drained = node;
  mixed.name = "n1";
  mixed.state = "MIXED";
  mixed.cpu_load = 12.5;
  mixed.cpus_allocated = 36;
  mixed.gpus_allocated = 4;
  mixed.memory_allocated_bytes = 73728 * kMiB;
  mixed.memory_free_bytes = 300000 * kMiB;
  mixed.partitions = "gpu,debug";
  down.name = "n05";
  down.state = "DOWN";
  down.state_flags = {"NOT_RESPONDING"};
  down.reason = "Not responding";
  down.reason_by = "slurm";
  down.reason_since = kNow - 60;
  down.cpus_allocated = down.gpus_allocated = 0;
  down.memory_allocated_bytes = 0;
  down.partitions = "gpu";
  drained.name = "n06";
  drained.state = "IDLE";
  drained.state_flags = {"DRAIN"};
  drained.reason = "[node_problem] gpu: Xid 79 on 0000:c1:00.0";
  drained.reason_by = "root";
  drained.reason_since = kNow - 9000;
  drained.cpu_load = 0.03;
  drained.cpus_allocated = drained.gpus_allocated = 0;
  drained.memory_allocated_bytes = 0;
  drained.memory_free_bytes = 500000 * kMiB;
  drained.partitions = "gpu";
  return {mixed, down, drained};
}

}  // namespace rankscope::exporter::slurm
