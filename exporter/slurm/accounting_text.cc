// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/slurm/fields.h"
#include "exporter/slurm/text_reader.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr size_t kMaxColumns = 256;  // sacct -e lists 120

// What a row's columns say together.
struct Row {
  SlurmJob job;
  std::string id;        // JobID: "12_7.batch"
  std::string raw;       // JobIDRaw: "19.batch"
  std::string required;  // ReqTRES
  std::optional<int64_t> gpus;
};

template <auto kMember>
void InJob(std::string_view value, Row& row) {
  SetText<kMember>(value, row.job);
}

// The first of two columns that say the same is kept.
template <auto kMember, auto kRead>
void First(std::string_view value, Row& row) {
  if (auto read = kRead(Said(value))) row.job.*kMember = row.job.*kMember ? row.job.*kMember : read;
}

template <auto kMember>
void Time(std::string_view value, Row& row) {
  SetTime<kMember>(value, row.job);
}

void Minutes(std::string_view value, Row& row) {
  const auto minutes = ReadCount(Said(value));
  if (minutes && *minutes < 1'000'000'000) row.job.time_limit_seconds = *minutes * 60;
}

// A job may be called "None".
void Name(std::string_view value, Row& row) {
  row.job.name = Bounded(value);
}

struct Column {
  std::string_view name;  // in capitals: sacct prints what it knows, whatever was asked for
  void (*set)(std::string_view value, Row& row);
};

constexpr Column kColumns[] = {
    {"JOBIDRAW", [](std::string_view value, Row& row) { row.raw = Bounded(value, 64); }},
    {"JOBID", [](std::string_view value, Row& row) { row.id = Bounded(value, 1024); }},
    {"JOBNAME", Name},
    {"USER", InJob<&SlurmJob::user>},
    {"ACCOUNT", InJob<&SlurmJob::account>},
    {"PARTITION", InJob<&SlurmJob::partition>},
    {"QOS", InJob<&SlurmJob::qos>},
    {"CLUSTER", InJob<&SlurmJob::cluster>},
    {"STATE", [](std::string_view value, Row& row) { SetJobState(value, row.job); }},
    {"REASON", InJob<&SlurmJob::reason>},
    {"NODELIST", InJob<&SlurmJob::nodes>},
    {"FAILEDNODE", InJob<&SlurmJob::failed_node>},
    {"NNODES", First<&SlurmJob::node_count, ReadCount>},
    {"ALLOCNODES", First<&SlurmJob::node_count, ReadCount>},
    {"ALLOCCPUS", First<&SlurmJob::cpus, ReadCount>},
    {"NCPUS", First<&SlurmJob::cpus, ReadCount>},
    {"NTASKS", First<&SlurmJob::tasks, ReadCount>},
    {"ALLOCTRES", [](std::string_view value, Row& row) { row.gpus = GpusOfTres(value); }},
    {"REQTRES", [](std::string_view value, Row& row) { row.required = Bounded(value); }},
    {"PRIORITY", First<&SlurmJob::priority, ReadCount>},
    {"RESTARTS", First<&SlurmJob::restarts, ReadCount>},
    {"TIMELIMIT", First<&SlurmJob::time_limit_seconds, ReadDuration>},
    {"TIMELIMITRAW", Minutes},
    {"ELAPSED", First<&SlurmJob::elapsed_seconds, ReadDuration>},
    {"ELAPSEDRAW", First<&SlurmJob::elapsed_seconds, ReadInteger>},
    {"SUSPENDED", First<&SlurmJob::suspended_seconds, ReadDuration>},
    {"SUBMIT", Time<&SlurmJob::submit>},
    {"ELIGIBLE", Time<&SlurmJob::eligible>},
    {"START", Time<&SlurmJob::start>},
    {"END", Time<&SlurmJob::end>},
    {"EXITCODE", First<&SlurmJob::exit, ReadExit>},
    {"DERIVEDEXITCODE", First<&SlurmJob::derived_exit, ReadExit>},
    {"COMMENT", InJob<&SlurmJob::comment>},
    {"ADMINCOMMENT", InJob<&SlurmJob::admin_comment>},
    {
        "SUBMITLINE",
        [](std::string_view value, Row& row) {
          row.job.submit_line = Bounded(Said(value), kMaxSubmitLine);
        },
    },
    {"WORKDIR", InJob<&SlurmJob::work_dir>},
    {"STDOUT", InJob<&SlurmJob::std_out>},
    {"STDERR", InJob<&SlurmJob::std_err>},
};

const Column* FindColumn(std::string_view name) {
  std::string capitals(name.substr(0, 32));
  for (char& c : capitals) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const auto* at = std::find_if(std::begin(kColumns), std::end(kColumns),
                                [&](const Column& column) { return column.name == capitals; });
  return at == std::end(kColumns) ? nullptr : at;
}

struct Header {
  std::vector<const Column*> columns;  // nullptr: not known
  bool identified = false;             // one tells whose row it is
};

// Takes the text up to the next separator; nullopt: there is none.
std::optional<std::string_view> Take(std::string_view& text, std::string_view separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + separator.size());
  return taken;
}

Header ReadHeader(std::string_view line, std::string_view separator) {
  Header header;
  while (header.columns.size() <= kMaxColumns) {
    const std::optional<std::string_view> name = Take(line, separator);
    if (!name) break;
    const Column* column = FindColumn(*name);
    header.identified =
        header.identified || *name == "JobID" || (column != nullptr && column->name == "JOBIDRAW");
    header.columns.push_back(column);
  }
  header.identified = header.identified && header.columns.size() <= kMaxColumns;
  return header;
}

// "12", "12.batch", "12_7.0", "12_[1-5%2]", "12+1.extern". False: it is none.
struct JobIdParts {
  std::string_view job, task, offset, step;
  bool plain() const { return task.empty() && offset.empty(); }
};
std::optional<JobIdParts> ReadJobId(std::string_view text) {
  JobIdParts parts;
  const size_t dot = text.find('.');
  if (dot != std::string_view::npos) {
    parts.step = text.substr(dot + 1);
    if (parts.step.empty() || parts.step.size() > 32) return std::nullopt;
  }
  text = text.substr(0, dot);
  const size_t sign = text.find_first_of("_+");
  parts.job = text.substr(0, sign);
  if (!IsId(parts.job)) return std::nullopt;
  if (sign == std::string_view::npos) return parts;
  const std::string_view rest = text.substr(sign + 1);
  if (rest.empty()) return std::nullopt;
  if (text[sign] == '+') {
    if (!IsId(rest) || rest.size() > 4) return std::nullopt;
    parts.offset = rest;
    return parts;
  }
  parts.task = rest.front() == '[' && rest.back() == ']' ? rest.substr(1, rest.size() - 2) : rest;
  return parts;
}

// Whose row it is. Without JobIDRaw the own number of an array's task, or of a heterogeneous job's
// part, is not known, and left empty.
bool Identify(Row& row) {
  const auto id = ReadJobId(row.id);
  const auto raw = ReadJobId(row.raw);
  if ((!id && !row.id.empty()) || (!raw && !row.raw.empty()) || (!id && !raw)) return false;
  SlurmJob& job = row.job;
  if (raw) {
    job.job_id = raw->job;
  } else if (id->plain()) {
    job.job_id = id->job;
  }
  job.step_id = raw ? raw->step : id->step;
  if (!id) return true;
  if (!id->task.empty()) {
    job.array_job_id = id->job;
    job.array_task = id->task;
  }
  if (!id->offset.empty()) {
    job.het_job_id = id->job;
    job.het_offset = static_cast<int32_t>(*ReadInteger(id->offset));
  }
  return true;
}

}  // namespace

// A value may hold anything but the separator, and so newlines: a row is so many values, and only
// what stands behind the last of them ends it.
Read<SlurmJob> ReadAccountingText(std::string_view text, std::string_view separator) {
  Read<SlurmJob> read;
  if (Said(text).empty()) return read;
  while (text.starts_with('\n')) text.remove_prefix(1);
  const size_t end = std::min(text.find('\n'), text.size());
  const Header header = ReadHeader(text.substr(0, end), separator);
  if (!header.identified) return {{}, 1};
  text.remove_prefix(std::min(end + 1, text.size()));
  while (!Said(text).empty()) {
    Row row;
    for (const Column* column : header.columns) {
      const std::optional<std::string_view> value = Take(text, separator);
      if (!value) return ++read.unreadable, read;  // it was cut
      if (column != nullptr && column->set != nullptr) column->set(*value, row);
    }
    if (!text.empty() && text.front() != '\n') return ++read.unreadable, read;
    text.remove_prefix(std::min<size_t>(1, text.size()));
    if (!Identify(row)) {
      ++read.unreadable;
      continue;
    }
    row.job.gpus = row.gpus ? row.gpus : GpusOfTres(row.required);
    ForgetExitOfTheLiving(row.job);
    read.records.push_back(std::move(row.job));
  }
  return read;
}

}  // namespace rankscope::exporter::slurm
