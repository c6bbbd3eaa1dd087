// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "exporter/slurm/fields.h"
#include "exporter/slurm/text_reader.h"

namespace rankscope::exporter::slurm {
namespace {

// A wait status, as a number or taken apart.
void SetWaitStatus(std::string_view value, SlurmJob& job) {
  value = Said(value);
  if (const auto status = ReadInteger(value)) {
    job.exit = ExitOfWaitStatus(*status);
  } else {
    job.exit = ReadExit(value);
  }
}

void SetUid(std::string_view value, SlurmJob& job) {
  job.uid = ReadInteger(Said(value));
}

void SetOffset(std::string_view value, SlurmJob& job) {
  const auto offset = ReadCount(Said(value));
  if (offset && *offset <= 0xffff) job.het_offset = static_cast<int32_t>(*offset);
}

void SetGpus(std::string_view value, SlurmJob& job) {
  if (const auto gpus = GpusOfTres(Said(value)); gpus && *gpus > 0) job.gpus = gpus;
}

void SetGpusOfNodes(std::string_view value, SlurmJob& job) {
  const auto each = GpusOfGres(Said(value));
  int64_t all = 0;
  if (!job.gpus && each && !__builtin_mul_overflow(*each, job.node_count.value_or(0), &all) &&
      all > 0)
    job.gpus = all;
}

// A job may be called "None".
void SetName(std::string_view value, SlurmJob& job) {
  job.name = Bounded(value);
}

struct Column {
  std::string_view name;
  void (*set)(std::string_view value, SlurmJob& job);
};

// All of them are columns of 22.05.
constexpr Column kColumns[] = {
    {"JobID", SetId<&SlurmJob::job_id>},
    {"ArrayJobID", SetId<&SlurmJob::array_job_id>},
    {"ArrayTaskID", SetText<&SlurmJob::array_task>},
    {"HetJobID", SetId<&SlurmJob::het_job_id>},
    {"HetJobOffset", SetOffset},
    {"UserID", SetUid},
    {"UserName", SetText<&SlurmJob::user>},
    {"Account", SetText<&SlurmJob::account>},
    {"Partition", SetText<&SlurmJob::partition>},
    {"QOS", SetText<&SlurmJob::qos>},
    {"State", SetJobState},
    {"Reason", SetText<&SlurmJob::reason>},
    {"Dependency", SetText<&SlurmJob::dependency>},
    {"NodeList", SetText<&SlurmJob::nodes>},
    {"BatchHost", SetText<&SlurmJob::batch_host>},
    {"NumNodes", SetCount<&SlurmJob::node_count>},
    {"NumCPUs", SetCount<&SlurmJob::cpus>},
    {"NumTasks", SetCount<&SlurmJob::tasks>},
    {"tres-alloc", SetGpus},
    {"tres-per-node", SetGpusOfNodes},
    {"PriorityLong", SetCount<&SlurmJob::priority>},
    {"RestartCnt", SetCount<&SlurmJob::restarts>},
    {"TimeLimit", SetDuration<&SlurmJob::time_limit_seconds>},
    {"SubmitTime", SetTime<&SlurmJob::submit>},
    {"EligibleTime", SetTime<&SlurmJob::eligible>},
    {"StartTime", SetTime<&SlurmJob::start>},
    {"EndTime", SetTime<&SlurmJob::end>},
    {"PreemptTime", SetTime<&SlurmJob::preempt>},
    {"TimeUsed", SetDuration<&SlurmJob::elapsed_seconds>},
    {"exit_code", SetWaitStatus},
    {"WorkDir", SetText<&SlurmJob::work_dir>},
    {"Comment", SetText<&SlurmJob::comment>},
    {"Name", SetName},
};

// Where the output goes: for whoever reads it, of a few jobs.
constexpr Column kOutputColumns[] = {
    {"StdOut", SetText<&SlurmJob::std_out>},
    {"StdErr", SetText<&SlurmJob::std_err>},
};

std::span<const Column> OutputColumns(QueueColumns columns) {
  if (columns == QueueColumns::kPlain) return {};
  return kOutputColumns;
}

// Takes a column's value out of the text; false: it is cut.
bool TakeColumn(const Column& column, std::string_view separator, std::string_view& text,
                SlurmJob& job) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return false;
  column.set(text.substr(0, at), job);
  text.remove_prefix(at + separator.size());
  return true;
}

bool Agree(const SlurmJob& a, const SlurmJob& b) {
  return a.uid == b.uid && a.submit == b.submit && a.start == b.start && a.restarts == b.restarts &&
         a.partition == b.partition;
}

// What squeue does not print.
void AddMore(const SlurmJob& from, SlurmJob& job) {
  job.suspend = from.suspend;
  job.derived_exit = from.derived_exit;
  if (!from.comment.empty()) job.comment = from.comment;
  job.admin_comment = from.admin_comment;
  job.submit_line = from.submit_line;
  job.command = from.command;
  job.work_dir = from.work_dir;
  job.std_out = from.std_out;
  job.std_err = from.std_err;
  job.requeue = from.requeue;
  if (from.gpus) job.gpus = from.gpus;
}

}  // namespace

std::string QueueFormat(std::string_view separator, QueueColumns columns) {
  std::string format;
  const auto add = [&](const Column& column) {
    if (!format.empty()) format += ',';
    format.append(column.name).append(":0").append(separator);
  };
  for (const Column& column : kColumns) add(column);
  for (const Column& column : OutputColumns(columns)) add(column);
  return format;
}

Read<SlurmJob> ReadQueueText(std::string_view text, std::string_view separator,
                             QueueColumns columns) {
  Read<SlurmJob> read;
  const auto take = [&](std::span<const Column> all, SlurmJob& job) {
    return std::all_of(all.begin(), all.end(), [&](const Column& column) {
      return TakeColumn(column, separator, text, job);
    });
  };
  while (!separator.empty() && !Said(text).empty()) {
    SlurmJob job;
    if (!take(kColumns, job) || !take(OutputColumns(columns), job)) return ++read.unreadable, read;
    if (!text.empty() && text.front() != '\n') return ++read.unreadable, read;
    text.remove_prefix(std::min<size_t>(1, text.size()));
    // Of a job that is none of an array it is its own number.
    if (job.array_task.empty()) job.array_job_id.clear();
    ForgetExitOfTheLiving(job);
    const bool said = !job.job_id.empty() && !(job.state.empty() && job.state_flags.empty());
    if (!said) {
      ++read.unreadable;
      continue;
    }
    read.records.push_back(std::move(job));
  }
  return read;
}

std::vector<SlurmJob> Confirm(const std::vector<SlurmJob>& sure,
                              const std::vector<SlurmJob>& jobs) {
  std::map<std::string_view, const SlurmJob*> told;
  for (const SlurmJob& job : jobs) {
    const auto [known, fresh] = told.try_emplace(job.job_id, &job);
    if (!fresh) known->second = nullptr;
  }
  std::vector<SlurmJob> confirmed = sure;
  for (SlurmJob& job : confirmed) {
    const auto found = told.find(job.job_id);
    if (found != told.end() && found->second != nullptr && Agree(job, *found->second))
      AddMore(*found->second, job);
  }
  return confirmed;
}

}  // namespace rankscope::exporter::slurm
