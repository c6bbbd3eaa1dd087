// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/text_reader.h"

#include <optional>
#include <span>
#include <utility>

#include "exporter/slurm/fields.h"
#include "exporter/slurm/job_keys.h"
#include "exporter/slurm/key_value_text.h"
#include "exporter/slurm/node_keys.h"

namespace rankscope::exporter::slurm {
namespace {

std::string_view LineAt(std::string_view text, size_t at) {
  return text.substr(at, text.find('\n', at) - at);
}

template <class Record>
std::string_view ValueOf(std::span<const Key<Record>> keys, const KeyValues& values,
                         std::string_view name) {
  const size_t key = FindKey(keys, name);
  return key != keys.size() && values.once(key) ? Said(values.value(key)) : std::string_view();
}

// What is counted as TRES, or where the cluster does not count GPUs, what was asked for.
std::optional<int64_t> GpusOfJob(const KeyValues& values, const SlurmJob& job) {
  std::optional<int64_t> gpus;
  for (const std::string_view name : {"AllocTRES", "TRES", "ReqTRES"}) {
    gpus = GpusOfTres(ValueOf(JobKeys(), values, name));
    if (gpus) break;
  }
  if (gpus && *gpus > 0) return gpus;
  struct Asked {
    std::string_view name;
    int64_t times;
  };
  const Asked asked[] = {{"TresPerJob", 1},
                         {"TresPerNode", job.node_count.value_or(0)},
                         {"TresPerTask", job.tasks.value_or(0)}};
  for (const auto& [name, times] : asked) {
    const auto each = GpusOfGres(ValueOf(JobKeys(), values, name));
    int64_t all = 0;
    if (each && !__builtin_mul_overflow(*each, times, &all) && all > 0) return all;
  }
  return gpus;
}

bool Finish(const KeyValues& values, SlurmJob& job) {
  job.gpus = GpusOfJob(values, job);
  ForgetExitOfTheLiving(job);
  return !job.job_id.empty() && !(job.state.empty() && job.state_flags.empty());
}

bool Finish(const KeyValues& values, SlurmNode& node) {
  const auto value = [&](std::string_view name) { return ValueOf(NodeKeys(), values, name); };
  const auto counted = GpusOfTres(value("CfgTRES"));
  if (counted && *counted > 0) {
    node.gpus = counted;
    node.gpus_allocated = GpusOfTres(value("AllocTRES")).value_or(0);
  } else {
    const std::string_view gres = value("Gres");
    node.gpus = gres.empty() ? counted : GpusOfGres(gres);
    node.gpus_allocated = GpusOfGres(value("GresUsed"));
  }
  return !node.name.empty() && !(node.state.empty() && node.state_flags.empty());
}

template <class Record>
Read<Record> ReadRecords(std::span<const Key<Record>> keys, RecordCutter cutter) {
  Read<Record> read;
  KeyValues values(keys.size());
  for (std::string_view text = cutter.Next(); !text.empty(); text = cutter.Next()) {
    if (!cutter.whole()) {
      ++read.unreadable;
      continue;
    }
    ReadKeyValues(text, keys, values);
    Record record;
    if (SetFields(keys, values, record) && Finish(values, record)) {
      read.records.push_back(std::move(record));
    } else {
      ++read.unreadable;
    }
  }
  return read;
}

}  // namespace

std::string_view RecordCutter::Next() {
  has_fact_ = has_text_ = false;
  while (at_ < text_.size()) {  // "No jobs in the system", and empty lines
    const std::string_view line = LineAt(text_, at_);
    if (!Said(line).empty() && !line.starts_with("No ")) break;
    at_ += line.size() + 1;
  }
  const size_t begin = at_;
  size_t end = at_;
  while (at_ < text_.size()) {
    const std::string_view line = LineAt(text_, at_);
    // What does not begin with the first name is the end of a text that was cut before this one.
    if (at_ > begin && line.starts_with(first_) &&
        (whole() || !text_.substr(begin).starts_with(first_))) {
      break;
    }
    has_fact_ = has_fact_ || line.find(fact_) != std::string_view::npos;
    has_text_ = has_text_ || line.find(end_) != std::string_view::npos;
    at_ += line.size() + 1;
    end = at_;
  }
  if (begin >= text_.size()) return {};
  if (!text_.substr(begin).starts_with(first_)) has_fact_ = false;
  return text_.substr(begin, end - begin);
}

Read<SlurmJob> ReadJobText(std::string_view text) {
  return ReadRecords(JobKeys(), RecordCutter(text, "JobId=", " JobState=", " WorkDir="));
}

Read<SlurmNode> ReadNodeText(std::string_view text) {
  return ReadRecords(NodeKeys(), RecordCutter(text, "NodeName=", " State=", " BootTime="));
}

}  // namespace rankscope::exporter::slurm
