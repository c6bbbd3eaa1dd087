// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The same jobs, nodes and counts out of every version's texts and JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "exporter/slurm/json_reader.h"
#include "exporter/slurm/text_reader.h"
#include "tests/unit/slurm/atlas.h"

namespace rankscope::exporter::slurm {

// For a failing test's message.
void PrintTo(const SlurmJob& job, std::ostream* out) {
  *out << job.job_id << "." << job.step_id << " name=" << job.name << " user=" << job.user
       << " array=" << job.array_job_id << "_" << job.array_task << " het=" << job.het_job_id << "+"
       << job.het_offset << " state=" << job.state;
  for (const std::string& flag : job.state_flags) *out << "+" << flag;
  *out << " by=" << job.state_by << " reason=" << job.reason << " dep=" << job.dependency
       << " nodes=" << job.nodes << " host=" << job.batch_host
       << " counts=" << job.node_count.value_or(-1) << "/" << job.cpus.value_or(-1) << "/"
       << job.tasks.value_or(-1) << "/" << job.gpus.value_or(-1)
       << " prio=" << job.priority.value_or(-1) << " restarts=" << job.restarts.value_or(-1)
       << " limit=" << job.time_limit_seconds.value_or(-1) << " times=" << job.submit << "/"
       << job.eligible << "/" << job.start << "/" << job.end << "/" << job.preempt
       << " elapsed=" << job.elapsed_seconds.value_or(-1)
       << " exit=" << (job.exit ? job.exit->code * 1000 + job.exit->signal : -1)
       << " derived=" << (job.derived_exit ? job.derived_exit->code : -1)
       << " failed=" << job.failed_node << " comment=" << job.comment << "/" << job.admin_comment
       << " line=" << job.submit_line << " command=" << job.command << " dir=" << job.work_dir
       << " out=" << job.std_out << " err=" << job.std_err << " requeue=" << job.requeue
       << " account=" << job.account << " partition=" << job.partition << " qos=" << job.qos
       << " cluster=" << job.cluster;
}
void PrintTo(const SlurmNode& node, std::ostream* out) {
  *out << node.name << " state=" << node.state;
  for (const std::string& flag : node.state_flags) *out << "+" << flag;
  *out << " reason=" << node.reason << " by=" << node.reason_by << " since=" << node.reason_since
       << " boot=" << node.boot << "/" << node.slurmd_start
       << " load=" << node.cpu_load.value_or(-1) << " counts=" << node.cpus.value_or(-1) << "/"
       << node.cpus_allocated.value_or(-1) << "/" << node.gpus.value_or(-1) << "/"
       << node.gpus_allocated.value_or(-1) << " memory=" << node.memory_bytes.value_or(-1) << "/"
       << node.memory_allocated_bytes.value_or(-1) << "/" << node.memory_free_bytes.value_or(-1)
       << " partitions=" << node.partitions << " version=" << node.version;
}

namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::SizeIs;

class Versions : public testing::TestWithParam<const char*> {
 protected:
  Versions() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
  ~Versions() override {
    unsetenv("TZ");
    tzset();
  }
  std::string version() const { return GetParam(); }
  std::string Read(const std::string& name) const { return Fixture(GetParam(), name); }
};

TEST_P(Versions, SayTheSameJobsInText) {
  const auto read = ReadJobText(Read("jobs.txt"));
  EXPECT_EQ(read.unreadable, 0);
  std::vector<SlurmJob> expected = AtlasJobs();
  constexpr std::array kElapsed = {3600, 0, 200, 790, 66};
  for (size_t i = 0; i < expected.size(); ++i) expected[i].elapsed_seconds = kElapsed[i];
  if (version() == "25.11") {
    constexpr std::array kLines = {"sbatch --gpus=8 train.sh --lr=0.1 model=7b",
                                   "sbatch -d afterany:4101 train.sh", "sbatch -a 1-5 eval.sh",
                                   "sbatch het.sh", ""};
    for (size_t i = 0; i < expected.size(); ++i) expected[i].submit_line = kLines[i];
  }
  EXPECT_THAT(read.records, ElementsAreArray(expected));
}

TEST_P(Versions, SayTheSameJobsInJson) {
  auto read = ReadJobJson(Read("jobs.json"));
  EXPECT_EQ(read.unreadable, 0);
  std::vector<SlurmJob> expected = AtlasJobs();
  ASSERT_THAT(read.records, SizeIs(expected.size()));
  EXPECT_EQ(read.records[0].submit_line,
            version() == "25.11" ? "sbatch --gpus=8 train.sh --lr=0.1 model=7b" : "");
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i].cluster = "atlas";
    if (i >= 2) expected[i].derived_exit = ExitStatus{0, 0};
    read.records[i].submit_line.clear();
  }
  // From 23.11 a state and its flags are a list.
  if (version() != "22.05" && version() != "23.02") expected[3].state = "CANCELLED";
  EXPECT_THAT(read.records, ElementsAreArray(expected));
}

TEST_P(Versions, SayTheSameNodesInText) {
  const auto read = ReadNodeText(Read("nodes.txt"));
  EXPECT_EQ(read.unreadable, 0);
  std::vector<SlurmNode> expected = AtlasNodes();
  for (SlurmNode& node : expected) node.version = version() + ".8";
  EXPECT_THAT(read.records, ElementsAreArray(expected));
}

TEST_P(Versions, SayTheSameNodesInJson) {
  const auto read = ReadNodeJson(Read("nodes.json"));
  EXPECT_EQ(read.unreadable, 0);
  std::vector<SlurmNode> expected = AtlasNodes();
  for (SlurmNode& node : expected) node.version = version() + ".8";
  EXPECT_THAT(read.records, ElementsAreArray(expected));
}

TEST_P(Versions, SayTheSameGroupsOfNodes) {
  if (version() == "22.05") return;  // its sinfo says what nodes.json does
  const auto read = ReadNodeJson(Read("sinfo.json"));
  EXPECT_EQ(read.unreadable, 0);
  ASSERT_THAT(read.records, SizeIs(4));
  EXPECT_EQ(read.records[0].name, "n1");
  EXPECT_EQ(read.records[0].partitions, "gpu,debug");
  EXPECT_EQ(read.records[0].cpus, 64);
  EXPECT_EQ(read.records[1].name, "n2");
  EXPECT_EQ(read.records[2].name, "n3");
  EXPECT_EQ(read.records[2].state, "ALLOCATED");
  EXPECT_EQ(read.records[2].cpus, std::nullopt);  // of two nodes together
  EXPECT_EQ(read.records[3].state, "DOWN");
  EXPECT_THAT(read.records[3].state_flags, ElementsAre("NOT_RESPONDING"));
  EXPECT_EQ(read.records[3].reason, "Not responding");
  EXPECT_EQ(read.records[3].reason_since, kNow - 60);
}

// What accounting says of a job, whichever way.
void ExpectAccounting(const std::vector<SlurmJob>& records, const std::string& canceller,
                      bool codes_are_said = true) {
  const auto code = [&](int32_t value) {
    return codes_are_said ? std::optional(ExitStatus{value, 0}) : std::nullopt;
  };
  ASSERT_THAT(records, SizeIs(9));
  const SlurmJob& task = records[0];
  EXPECT_EQ(task.job_id, "4113");
  EXPECT_EQ(task.array_job_id, "4110");
  EXPECT_EQ(task.array_task, "3");
  EXPECT_EQ(task.step_id, "");
  EXPECT_EQ(task.name, "evals");
  EXPECT_EQ(task.user, "bob");
  EXPECT_EQ(task.state, "FAILED");
  EXPECT_EQ(task.reason, "NonZeroExitCode");
  EXPECT_EQ(task.exit, code(1));
  EXPECT_EQ(task.derived_exit, code(0));
  EXPECT_EQ(task.elapsed_seconds, 200);
  EXPECT_EQ(task.suspended_seconds, 0);
  EXPECT_EQ(task.time_limit_seconds, 3600);
  EXPECT_EQ(task.submit, kNow - 2000);
  EXPECT_EQ(task.start, kNow - 1900);
  EXPECT_EQ(task.end, kNow - 1700);
  EXPECT_EQ(task.nodes, "n3");
  EXPECT_EQ(task.node_count, 1);
  EXPECT_EQ(task.cpus, 8);
  EXPECT_EQ(task.gpus, 1);
  EXPECT_EQ(task.cluster, "atlas");

  EXPECT_EQ(records[1].step_id, "batch");
  EXPECT_EQ(records[1].job_id, "4113");
  EXPECT_EQ(records[1].array_task, "3");
  EXPECT_EQ(records[1].exit, code(1));
  EXPECT_EQ(records[2].step_id, "extern");
  EXPECT_EQ(records[2].state, "COMPLETED");
  EXPECT_EQ(records[3].step_id, "0");
  EXPECT_EQ(records[3].name, "python");
  EXPECT_EQ(records[3].exit, (ExitStatus{0, 9}));
  EXPECT_EQ(records[3].tasks, 1);

  EXPECT_EQ(records[4].job_id, "4121");
  EXPECT_EQ(records[4].het_job_id, "4120");
  EXPECT_EQ(records[4].het_offset, 1);
  EXPECT_EQ(records[4].state, "CANCELLED");
  EXPECT_EQ(records[4].state_by, canceller);
  EXPECT_EQ(records[4].time_limit_seconds, std::nullopt);

  EXPECT_EQ(records[6].job_id, "4101");
  EXPECT_EQ(records[6].state, "");
  EXPECT_THAT(records[6].state_flags, ElementsAre("REQUEUED"));
  EXPECT_EQ(records[7].job_id, "4101");
  EXPECT_EQ(records[7].state, "RUNNING");
  EXPECT_EQ(records[7].end, 0);
  EXPECT_EQ(records[7].exit, std::nullopt);
  EXPECT_EQ(records[7].elapsed_seconds, 3600);
  EXPECT_EQ(records[8].state, "RUNNING");
  EXPECT_EQ(records[8].exit, std::nullopt);
}

TEST_P(Versions, SayTheSameAccountsInText) {
  std::string text;  // as `sacct -p` prints it
  for (const char c : Read("accounting.txt")) text += c == '\n' ? "|\n" : std::string(1, c);
  const auto read = ReadAccountingText(text, "|");
  EXPECT_EQ(read.unreadable, 0);
  ExpectAccounting(read.records, "0");
  if (version() >= "24.11") {
    EXPECT_EQ(read.records[7].restarts, 1);
  }
  EXPECT_EQ(read.records[4].failed_node, version() == "22.05" ? "" : "n05");
}

TEST_P(Versions, SayTheSameAccountsInJson) {
  const auto read = ReadAccountingJson(Read("accounting.json"));
  EXPECT_EQ(read.unreadable, 0);
  ExpectAccounting(read.records, "root", version() != "22.05");
  EXPECT_EQ(read.records[0].submit_line, version() == "22.05" ? "" : "sbatch -a 1-5 eval.sh");
  EXPECT_EQ(read.records[0].work_dir, "/home/bob");
  EXPECT_EQ(read.records[7].comment, "sweep 12");
  if (version() >= "24.11") {
    EXPECT_EQ(read.records[7].restarts, 1);
    EXPECT_EQ(read.records[0].std_out, "/home/bob/slurm-4110_3.out");
  }
}

void ExpectDiag(const SlurmDiag& diag) {
  EXPECT_EQ(diag.since, kNow - 50400);
  EXPECT_EQ(diag.server_threads, 3);
  EXPECT_EQ(diag.agent_queue, 2);
  EXPECT_EQ(diag.dbd_agent_queue, 7);
  EXPECT_EQ(diag.submitted, 120);
  EXPECT_EQ(diag.started, 100);
  EXPECT_EQ(diag.completed, 80);
  EXPECT_EQ(diag.cancelled, 5);
  EXPECT_EQ(diag.failed, 3);
  EXPECT_EQ(diag.pending, 20);
  EXPECT_EQ(diag.running, 17);
  EXPECT_DOUBLE_EQ(diag.cycle_seconds.value_or(-1), 0.0015);
  EXPECT_DOUBLE_EQ(diag.cycle_max_seconds.value_or(-1), 0.25);
  EXPECT_DOUBLE_EQ(diag.cycle_mean_seconds.value_or(-1), 0.002);
  EXPECT_DOUBLE_EQ(diag.backfill_seconds.value_or(-1), 0.009);
  EXPECT_DOUBLE_EQ(diag.backfill_mean_seconds.value_or(-1), 0.012);
  EXPECT_EQ(diag.backfill_depth, 19);
  EXPECT_EQ(diag.queue_length, 20);
  ASSERT_THAT(diag.rpcs, SizeIs(3));
  EXPECT_EQ(diag.rpcs[1].name, "REQUEST_JOB_INFO");
  EXPECT_EQ(diag.rpcs[1].calls, 900);
  EXPECT_DOUBLE_EQ(diag.rpcs[1].seconds, 1.8);
  ASSERT_THAT(diag.users, SizeIs(2));
  EXPECT_EQ(diag.users[1].name, "alice");
  EXPECT_EQ(diag.users[1].calls, 630);
  EXPECT_DOUBLE_EQ(diag.users[1].seconds, 1.046);
}

TEST_P(Versions, SayTheSameCountsInText) {
  ExpectDiag(ReadDiagText(Read("diag.txt")));
}
TEST_P(Versions, SayTheSameCountsInJson) {
  ExpectDiag(ReadDiagJson(Read("diag.json")));
}

TEST_P(Versions, KnowAnAnswerThatWasCut) {
  const std::string text = Read("jobs.json");
  const auto half = ReadJobJson(text.substr(0, text.size() / 2));
  EXPECT_FALSE(half.whole);
  EXPECT_EQ(half.unreadable, 1);
  const std::string lines = Read("jobs.txt");
  const auto cut = ReadJobText(std::string_view(lines).substr(0, lines.find("JobId=4121") + 50));
  EXPECT_EQ(cut.unreadable, 1);
  EXPECT_THAT(cut.records, SizeIs(3));
}

std::string NameOf(const testing::TestParamInfo<const char*>& version) {
  std::string name = version.param;
  name[2] = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Slurm, Versions, testing::ValuesIn(kVersions), NameOf);

}  // namespace
}  // namespace rankscope::exporter::slurm
