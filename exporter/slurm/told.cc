// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/told.h"

#include <algorithm>
#include <span>
#include <utility>

#include "detectors/logs/text/redactor.h"
#include "exporter/slurm/job_ledger.h"
#include "exporter/slurm/step_ledger.h"

namespace rankscope::exporter::slurm {

bool IsRequeued(const SlurmJob& job) {
  return job.state.empty() && std::find(job.state_flags.begin(), job.state_flags.end(),
                                        "REQUEUED") != job.state_flags.end();
}

void Redact(SchedulerRecord& record) {
  for (std::string* text :
       {&record.state, &record.by, &record.reason, &record.nodes, &record.failed_node,
        &record.partition, &record.dependency, &record.submit_line, &record.work_dir})
    logs::Redact(std::span(text->data(), text->size()));
}

SchedulerRecord RecordOf(const SlurmJob& job, std::string_view origin) {
  SchedulerRecord record;
  record.job_id = job.job_id;
  record.origin = origin;
  record.submit = job.submit;
  record.start = job.start;
  record.time_limit_seconds = job.time_limit_seconds.value_or(-1);
  record.restarts = job.restarts.value_or(-1);
  record.gpus = job.gpus.value_or(-1);
  record.priority = job.priority.value_or(-1);
  record.partition = job.partition;
  record.dependency = job.dependency;
  record.nodes = job.nodes;
  record.failed_node = job.failed_node;
  record.submit_line = job.submit_line;
  record.work_dir = job.work_dir;
  record.reason = job.reason;
  record.state = IsRequeued(job) ? "REQUEUED" : job.state;
  if (!EndOf(job.state).empty() || IsRequeued(job)) {
    record.end = job.end;
    record.elapsed_seconds = job.elapsed_seconds.value_or(-1);
    record.exit = job.exit ? Text(*job.exit) : std::string();
    record.derived_exit = job.derived_exit ? Text(*job.derived_exit) : std::string();
    record.by = job.state_by;
    constexpr int64_t kMaxSecond = int64_t{1} << 32;  // in nanoseconds, a later time is none
    if (job.end < kMaxSecond) record.wall_ns = job.end * 1'000'000'000;
  }
  Redact(record);
  return record;
}

std::vector<SchedulerFact> StepTold(const std::string& job_id, const std::vector<KeyValue>& facts,
                                    const std::string& state, int64_t end,
                                    std::string_view origin) {
  std::vector<SchedulerFact> all;
  const int64_t wall_ns = WallOf(std::to_string(end));
  std::string step;
  for (const KeyValue& fact : facts) {
    if (fact.key == "step_id") step = fact.value;
  }
  const auto tell = [&](std::string_view field, std::string value) {
    if (step.empty() || value.empty()) return;
    logs::Redact(std::span(value.data(), value.size()));
    SchedulerFact& told = all.emplace_back();
    told.job_id = job_id;
    told.step_id = step;
    told.field = field;
    told.value = std::move(value);
    told.origin = origin;
    told.wall_ns = field == "start" ? WallOf(told.value) : wall_ns;
  };
  for (const std::string_view field : {"name", "start", "exit", "nodes"}) {
    for (const KeyValue& fact : facts) {
      if (fact.key == field) tell(field, fact.value);
    }
  }
  tell("state", state);
  return all;
}

}  // namespace rankscope::exporter::slurm
