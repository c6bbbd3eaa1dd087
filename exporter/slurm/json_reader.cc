// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/json_reader.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exporter/slurm/fields.h"
#include "exporter/slurm/json_fields.h"
#include "exporter/slurm/json_records.h"
#include "exporter/slurm/json_values.h"
#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr int64_t kMostMinutes = 1'000'000'000;

void SetName(const Json& value, SlurmJob& job) {
  // A job may be called "None".
  if (value.Is(Json::Kind::kString)) job.name = Bounded(value.text);
}
void SetHetOffset(const Json& value, SlurmJob& job) {
  const auto offset = Number(value);
  if (offset && *offset <= 0xffff) job.het_offset = static_cast<int32_t>(*offset);
}
void SetLimit(const Json& value, SlurmJob& job) {
  const auto minutes = Number(value);
  if (minutes && *minutes <= kMostMinutes) job.time_limit_seconds = *minutes * 60;
}
void SetStates(const Json& value, SlurmJob& job) {
  SetState(JobStateOf(Texts(value)), job);
}
void SetSubmitLine(const Json& value, SlurmJob& job) {
  job.submit_line = Text(value, kMaxSubmitLine);
}

// Where two names say the same, the later row is the better one.
constexpr Field<SlurmJob> kJobFields[] = {
    {"job_id", SetId<&SlurmJob::job_id>},
    {"array_job_id", SetId<&SlurmJob::array_job_id>},
    {"het_job_id", SetId<&SlurmJob::het_job_id>},
    {"het_job_offset", SetHetOffset},
    {"name", SetName},
    {"user_name", SetText<&SlurmJob::user>},
    {"user_id", SetNumber<&SlurmJob::uid>},
    {"account", SetText<&SlurmJob::account>},
    {"partition", SetText<&SlurmJob::partition>},
    {"qos", SetText<&SlurmJob::qos>},
    {"cluster", SetText<&SlurmJob::cluster>},
    {"job_state", SetStates},
    {"state_reason", SetText<&SlurmJob::reason>},
    {"dependency", SetText<&SlurmJob::dependency>},
    {"nodes", SetText<&SlurmJob::nodes>},
    {"batch_host", SetText<&SlurmJob::batch_host>},
    {"node_count", SetNumber<&SlurmJob::node_count>},
    {"cpus", SetNumber<&SlurmJob::cpus>},
    {"tasks", SetNumber<&SlurmJob::tasks>},
    {"priority", SetNumber<&SlurmJob::priority>},
    {"restart_cnt", SetNumber<&SlurmJob::restarts>},
    {"time_limit", SetLimit},
    {"submit_time", SetTime<&SlurmJob::submit>},
    {"eligible_time", SetTime<&SlurmJob::eligible>},
    {"start_time", SetTime<&SlurmJob::start>},
    {"end_time", SetTime<&SlurmJob::end>},
    {"suspend_time", SetTime<&SlurmJob::suspend>},
    {"preempt_time", SetTime<&SlurmJob::preempt>},
    {"exit_code", SetExit<&SlurmJob::exit>},
    {"derived_exit_code", SetExit<&SlurmJob::derived_exit>},
    {"failed_node", SetText<&SlurmJob::failed_node>},
    {"comment", SetText<&SlurmJob::comment>},
    {"admin_comment", SetText<&SlurmJob::admin_comment>},
    {"submit_line", SetSubmitLine},
    {"command", SetText<&SlurmJob::command>},
    {"current_working_directory", SetText<&SlurmJob::work_dir>},
    {"standard_output", SetText<&SlurmJob::std_out>},
    {"stdout_expanded", SetText<&SlurmJob::std_out>},
    {"standard_error", SetText<&SlurmJob::std_err>},
    {"stderr_expanded", SetText<&SlurmJob::std_err>},
};

// What accounting calls otherwise.
constexpr Field<SlurmJob> kAccountingFields[] = {
    {"user", SetText<&SlurmJob::user>},
    {"allocation_nodes", SetNumber<&SlurmJob::node_count>},
    {"working_directory", SetText<&SlurmJob::work_dir>},
    {"stdout", SetText<&SlurmJob::std_out>},
    {"stdout_expanded", SetText<&SlurmJob::std_out>},
    {"stderr", SetText<&SlurmJob::std_err>},
    {"stderr_expanded", SetText<&SlurmJob::std_err>},
};

constexpr Field<SlurmJob> kTimeFields[] = {
    {"submission", SetTime<&SlurmJob::submit>},
    {"eligible", SetTime<&SlurmJob::eligible>},
    {"start", SetTime<&SlurmJob::start>},
    {"end", SetTime<&SlurmJob::end>},
    {"elapsed", SetNumber<&SlurmJob::elapsed_seconds>},
    {"suspended", SetNumber<&SlurmJob::suspended_seconds>},
    {"limit", SetLimit},
};

// False: it is none, or says nothing that a job is known by.
bool ReadJob(const Json& value, SlurmJob& job) {
  SetFields(value, kJobFields, job);
  if (!job.array_job_id.empty()) {
    job.array_task = Text(At(value, "array_task_string"), kMaxField);
    const auto task = Number(At(value, "array_task_id"));
    if (job.array_task.empty() && task) job.array_task = std::to_string(*task);
  }
  if (job.het_job_id.empty()) job.het_offset = -1;
  const Json& requeue = At(value, "requeue");
  job.requeue = requeue.Is(Json::Kind::kBoolean) && requeue.truth;
  job.gpus = Gpus(At(value, "tres_alloc_str"));
  if (!job.gpus) job.gpus = Gpus(At(value, "tres_req_str"));
  // The limit of a job without one is a year (seen in 22.05); the text says "Unknown".
  const bool begun = job.state == "RUNNING" || job.state == "SUSPENDED";
  if (begun && !job.time_limit_seconds) job.end = 0;
  ForgetExitOfTheLiving(job);
  return !job.job_id.empty() && !(job.state.empty() && job.state_flags.empty());
}

// State, reason, times, who ended it and resources: jobs and steps have them in the same places.
void ReadAccountingCommon(const Json& value, SlurmJob& job) {
  const Json& state = At(value, "state");
  SetState(JobStateOf(Texts(state.Is(Json::Kind::kObject) ? At(state, "current") : state)), job);
  job.reason = Text(At(state, "reason"), kMaxField);
  SetFields(At(value, "time"), kTimeFields, job);
  if (job.state == "CANCELLED") job.state_by = Text(At(value, "kill_request_user"), kMaxField);
  job.exit = Exit(At(value, "exit_code"));
  // slurmrestd of 22.05 takes the time of the question for it.
  if (!job.state.empty() && !IsEndState(job.state)) job.end = 0;
  // 22.05 loses every code but a signal: what ended by 3 is FAILED with {"status": "SUCCESS",
  // "return_code": 0}, and so is the derived code.
  if (job.state == "FAILED" && job.exit == ExitStatus{}) job.exit = job.derived_exit = std::nullopt;
  const Json& allocated = At(At(value, "tres"), "allocated");
  job.gpus = Gpus(allocated);
  if (!allocated.Is(Json::Kind::kArray)) return;
  for (const Json& item : allocated.items()) {
    if (Text(At(item, "type"), 64) == "cpu") job.cpus = Number(At(item, "count"));
  }
}

bool ReadAccountedJob(const Json& value, SlurmJob& job) {
  SetFields(value, kJobFields, job);
  SetFields(value, kAccountingFields, job);
  ReadAccountingCommon(value, job);
  const Json& comment = At(value, "comment");
  if (comment.Is(Json::Kind::kObject)) {
    job.comment = Text(At(comment, "job"), kMaxField);
    job.admin_comment = Text(At(comment, "administrator"), kMaxField);
  }
  const Json& array = At(value, "array");
  SetId<&SlurmJob::array_job_id>(At(array, "job_id"), job);
  if (!job.array_job_id.empty()) {
    job.array_task = Text(At(array, "task"), kMaxField);
    const auto task = Number(At(array, "task_id"));
    if (job.array_task.empty() && task) job.array_task = std::to_string(*task);
  }
  const Json& het = At(value, "het");
  SetId<&SlurmJob::het_job_id>(At(het, "job_id"), job);
  if (!job.het_job_id.empty()) SetHetOffset(At(het, "job_offset"), job);
  if (!job.gpus) job.gpus = Gpus(At(At(value, "tres"), "requested"));
  if (!job.cpus) job.cpus = Number(At(At(value, "required"), "CPUs"));
  ForgetExitOfTheLiving(job);
  return !job.job_id.empty();
}

// Its job is not read yet, and is added when it is. From 23.11 "4101.batch" is the id, before it is
// in parts.
void ReadStep(const Json& value, SlurmJob& step) {
  ReadAccountingCommon(value, step);
  const Json& whose = At(value, "step");
  SetName(At(whose, "name"), step);
  const Json& id = At(whose, "id");
  const Json& part = id.Is(Json::Kind::kObject) ? At(id, "step_id") : id;
  step.step_id = Text(part, 64);
  if (const auto number = Number(part)) step.step_id = std::to_string(*number);
  if (const size_t dot = step.step_id.rfind('.'); dot != std::string::npos) {
    step.step_id.erase(0, dot + 1);
  }
  const Json& nodes = At(value, "nodes");
  step.node_count = Number(At(nodes, "count"));
  step.nodes = Text(At(nodes, "range"), kMaxField);
  step.tasks = Number(At(At(value, "tasks"), "count"));
  ForgetExitOfTheLiving(step);
}

void OfJob(const SlurmJob& job, SlurmJob& step) {
  step.job_id = job.job_id;
  step.array_job_id = job.array_job_id;
  step.array_task = job.array_task;
  step.het_job_id = job.het_job_id;
  step.het_offset = job.het_offset;
  step.user = job.user;
  step.account = job.account;
  step.partition = job.partition;
  step.cluster = job.cluster;
}

}  // namespace

Read<SlurmJob> ReadJobJson(std::string text) {
  constexpr size_t kLeastJob = 2048;  // bytes; 22.05 prints 3,000
  Read<SlurmJob> read;
  read.records.reserve(std::min(text.size(), kMaxJsonBytes) / kLeastJob);
  read.whole = ForEachJsonRecord(std::move(text), IsReadName, [&](const JsonRecord& record) {
    if (record.list != "jobs" || record.step) return;
    SlurmJob job;
    if (ReadJob(record.value, job)) {
      read.records.push_back(std::move(job));
    } else {
      ++read.unreadable;
    }
  });
  if (!read.whole) ++read.unreadable;
  return read;
}

Read<SlurmJob> ReadAccountingJson(std::string text) {
  Read<SlurmJob> read;
  std::vector<SlurmJob> steps;  // of the job that is not read to its end
  read.whole = ForEachJsonRecord(std::move(text), IsReadName, [&](const JsonRecord& record) {
    if (record.list != "jobs") return;
    SlurmJob job;
    if (record.step) {
      ReadStep(record.value, steps.emplace_back());
      return;
    }
    if (ReadAccountedJob(record.value, job)) {
      for (SlurmJob& step : steps) OfJob(job, step);
      read.records.push_back(std::move(job));
      std::move(steps.begin(), steps.end(), std::back_inserter(read.records));
    } else {
      ++read.unreadable;
    }
    steps.clear();
  });
  if (!read.whole) ++read.unreadable;
  return read;
}

}  // namespace rankscope::exporter::slurm
