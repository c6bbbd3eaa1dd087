// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What it costs to read what Slurm says of 5,000 jobs: the text of `scontrol show job -o` and the
// JSON of `squeue`, in the shape of 24.11. The controller is asked twice a minute at most; the aim
// for the text is well below 100 ms.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>

#include "exporter/slurm/json_reader.h"
#include "exporter/slurm/text_reader.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr int kJobs = 5000;
constexpr int64_t kNow = 1795442400;

std::string Id(int job) {
  return std::to_string(100'000 + job);
}

std::string JobLine(int job) {
  const std::string id = Id(job);
  const std::string start = std::to_string(kNow - 60 * job);
  const std::string tres = "cpu=64,mem=512G,node=2,billing=64,gres/gpu=16,gres/gpu:h200=16";
  const std::string out = "/scratch/team/alice/experiments/run-" + id + "/slurm-" + id;
  return "JobId=" + id + " JobName=pretrain-7b seed=" + std::to_string(job % 17) +
         " UserId=alice(1000) GroupId=ml(500) MCS_label=N/A Priority=" +
         std::to_string(4000 + job) +
         " Nice=0 Account=foundation QOS=normal JobState=RUNNING Reason=None Dependency=(null)"
         " Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=01:00:00"
         " TimeLimit=2-00:00:00 TimeMin=N/A SubmitTime=" +
         start + " EligibleTime=" + start + " AccrueTime=" + start + " StartTime=" + start +
         " EndTime=" + start +
         " Deadline=N/A SuspendTime=None SecsPreSuspend=0 LastSchedEval=" + start +
         " Scheduler=Backfill Partition=gpu AllocNode:Sid=login1:2211 ReqNodeList=(null)"
         " ExcNodeList=(null) NodeList=node[0" +
         std::to_string(100 + job % 800) +
         "-0999] BatchHost=node0101 NumNodes=2 NumCPUs=64 NumTasks=16 CPUs/Task=4"
         " ReqB:S:C:T=0:0:*:* ReqTRES=" +
         tres + " AllocTRES=" + tres +
         " Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=1 MinMemoryNode=0"
         " MinTmpDiskNode=0 Features=(null) DelayBoot=00:00:00 OverSubscribe=OK Contiguous=0"
         " Licenses=(null) Network=(null) Command=/home/alice/train/launch.sh --config base.yaml"
         " --lr=3e-4 model=7b WorkDir=/scratch/team/alice/experiments/run-" +
         id + " StdErr=" + out + ".err StdIn=/dev/null StdOut=" + out +
         ".out TresPerNode=gres/gpu:h200:8 \n";
}

std::string Set(int64_t number) {
  return R"({"set":true,"infinite":false,"number":)" + std::to_string(number) + "}";
}

std::string Exit() {
  return R"({"status":["SUCCESS"],"return_code":{"set":true,"infinite":false,"number":0},)"
         R"("signal":{"id":{"set":false,"infinite":false,"number":0},"name":""}})";
}

// Of the cores that a job holds, each is named: most of the text, and nobody reads it.
std::string Cores() {
  std::string cores;
  for (int core = 0; core < 16; ++core) {
    cores += (core ? "," : "") + std::string(R"({"index":)") + std::to_string(core) +
             R"(,"status":["ALLOCATED"]})";
  }
  return R"({"select_type":["CPU"],"nodes":{"count":1,"list":"node0101","allocation":[{"name":"node0101",)"
         R"("sockets":[{"index":0,"cores":[)" +
         cores + "]}]}]}}";
}

std::string JobObject(int job) {
  const std::string start = Set(kNow - 60 * job);
  const std::string tres = "cpu=64,mem=512G,node=2,billing=64,gres/gpu=16,gres/gpu:h200=16";
  std::string text =
      R"({"account":"foundation","accrue_time":)" + start +
      R"(,"admin_comment":"","array_job_id":)" + Set(0) + R"(,"array_task_id":)" + Set(0) +
      R"(,"array_task_string":"","batch_flag":true,"batch_host":"node0101",)" +
      R"("cluster":"atlas","command":"/home/alice/train/launch.sh","comment":"","cpus":)" +
      Set(64) + R"(,"dependency":"","derived_exit_code":)" + Exit() + R"(,"eligible_time":)" +
      start + R"(,"end_time":)" + start + R"(,"exit_code":)" + Exit() +
      R"(,"failed_node":"","flags":["EXACT_TASK_COUNT_REQUESTED"],)" +
      R"("gres_detail":["gpu:h200:8(IDX:0-7) ","gpu:h200:8(IDX:0-7) "],"job_id":)" + Id(job) +
      R"(,"job_resources":)" + Cores() + R"(,"job_state":["RUNNING"],)" +
      R"("name":"pretrain-7b","nodes":"node[0101-0102]","node_count":)" + Set(2) +
      R"(,"partition":"gpu","priority":)" + Set(4000) +
      R"(,"qos":"normal","requeue":true,"restart_cnt":0,"start_time":)" + start +
      R"(,"state_reason":"None","submit_time":)" + start + R"(,"tasks":)" + Set(16) +
      R"(,"time_limit":)" + Set(2880) + R"(,"tres_req_str":")" + tres + R"(","tres_alloc_str":")" +
      tres + R"(","user_name":"alice")";
  // The names that no reader looks for.
  for (int field = 0; field < 30; ++field) {
    text += R"(,"unread_field_)" + std::to_string(field) + R"(":)" +
            (field % 2 ? Set(field) : std::string("\"\""));
  }
  return text + R"(,"current_working_directory":"/scratch/team/alice/experiments"})";
}

std::string JobText() {
  std::string text;
  for (int job = 0; job < kJobs; ++job) text += JobLine(job);
  return text;
}

std::string JobJson() {
  std::string text = R"({"jobs":[)";
  for (int job = 0; job < kJobs; ++job) text += (job ? "," : "") + JobObject(job);
  return text + R"(],"meta":{},"errors":[],"warnings":[]})";
}

template <auto kRead>
void ReadAll(benchmark::State& state, const std::string& text) {
  int64_t records = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::string answer;
    answer.reserve(text.size() + 64);  // as it comes, with room behind it
    answer = text;
    state.ResumeTiming();
    const auto read = kRead(std::move(answer));
    records = static_cast<int64_t>(read.records.size()) - read.unreadable;
    benchmark::DoNotOptimize(read);
  }
  if (records != kJobs) state.SkipWithError("not all jobs were read");
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.counters["bytes_per_job"] = static_cast<double>(text.size()) / kJobs;
}

void BM_Text(benchmark::State& state) {
  ReadAll<ReadJobText>(state, JobText());
}
void BM_Json(benchmark::State& state) {
  ReadAll<ReadJobJson>(state, JobJson());
}
BENCHMARK(BM_Text)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Json)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rankscope::exporter::slurm
