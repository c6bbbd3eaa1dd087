// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
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
  bool anything;  // the words of the job's owner
};

constexpr Column kColumns[] = {
    {"JOBIDRAW", [](std::string_view value, Row& row) { row.raw = Bounded(value, 64); }, false},
    {"JOBID", [](std::string_view value, Row& row) { row.id = Bounded(value, 1024); }, false},
    {"JOBNAME", Name, true},
    {"USER", InJob<&SlurmJob::user>, false},
    {"ACCOUNT", InJob<&SlurmJob::account>, false},
    {"PARTITION", InJob<&SlurmJob::partition>, false},
    {"QOS", InJob<&SlurmJob::qos>, false},
    {"CLUSTER", InJob<&SlurmJob::cluster>, false},
    {"STATE", [](std::string_view value, Row& row) { SetJobState(value, row.job); }, false},
    {"REASON", InJob<&SlurmJob::reason>, false},
    {"NODELIST", InJob<&SlurmJob::nodes>, false},
    {"FAILEDNODE", InJob<&SlurmJob::failed_node>, false},
    {"NNODES", First<&SlurmJob::node_count, ReadCount>, false},
    {"ALLOCNODES", First<&SlurmJob::node_count, ReadCount>, false},
    {"ALLOCCPUS", First<&SlurmJob::cpus, ReadCount>, false},
    {"NCPUS", First<&SlurmJob::cpus, ReadCount>, false},
    {"NTASKS", First<&SlurmJob::tasks, ReadCount>, false},
    {"ALLOCTRES", [](std::string_view value, Row& row) { row.gpus = GpusOfTres(value); }, false},
    {"REQTRES", [](std::string_view value, Row& row) { row.required = Bounded(value); }, false},
    {"PRIORITY", First<&SlurmJob::priority, ReadCount>, false},
    {"RESTARTS", First<&SlurmJob::restarts, ReadCount>, false},
    {"TIMELIMIT", First<&SlurmJob::time_limit_seconds, ReadDuration>, false},
    {"TIMELIMITRAW", Minutes, false},
    {"ELAPSED", First<&SlurmJob::elapsed_seconds, ReadDuration>, false},
    {"ELAPSEDRAW", First<&SlurmJob::elapsed_seconds, ReadInteger>, false},
    {"SUSPENDED", First<&SlurmJob::suspended_seconds, ReadDuration>, false},
    {"SUBMIT", Time<&SlurmJob::submit>, false},
    {"ELIGIBLE", Time<&SlurmJob::eligible>, false},
    {"START", Time<&SlurmJob::start>, false},
    {"END", Time<&SlurmJob::end>, false},
    {"EXITCODE", First<&SlurmJob::exit, ReadExit>, false},
    {"DERIVEDEXITCODE", First<&SlurmJob::derived_exit, ReadExit>, false},
    {"COMMENT", InJob<&SlurmJob::comment>, true},
    {"ADMINCOMMENT", InJob<&SlurmJob::admin_comment>, true},
    {"SYSTEMCOMMENT", nullptr, true},
    {"EXTRA", nullptr, true},
    {"SUBMITLINE",
     [](std::string_view value, Row& row) {
       row.job.submit_line = Bounded(Said(value), kMaxSubmitLine);
     },
     true},
    {"WORKDIR", InJob<&SlurmJob::work_dir>, true},
    {"STDOUT", InJob<&SlurmJob::std_out>, true},
    {"STDERR", InJob<&SlurmJob::std_err>, true},
    {"STDIN", nullptr, true},
    {"CONTAINER", nullptr, true},
};

std::vector<std::string_view> Split(std::string_view line, char separator) {
  std::vector<std::string_view> parts;
  while (parts.size() <= kMaxField) {
    const size_t at = line.find(separator);
    parts.push_back(line.substr(0, at));
    if (at == std::string_view::npos) break;
    line.remove_prefix(at + 1);
  }
  return parts;
}

const Column* FindColumn(std::string_view name) {
  std::string capitals(name.substr(0, 32));
  for (char& c : capitals) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const auto* at = std::find_if(std::begin(kColumns), std::end(kColumns),
                                [&](const Column& column) { return column.name == capitals; });
  return at == std::end(kColumns) ? nullptr : at;
}

struct Header {
  std::vector<const Column*> columns;  // nullptr: not known
  size_t free_columns = 0;             // that may hold anything
  size_t free_at = 0;                  // the last of them
  bool identified = false;             // one tells whose row it is
  bool closed = false;                 // a separator ends each line: sacct -p
};

Header ReadHeader(std::string_view line, char separator) {
  Header header;
  std::vector<std::string_view> names = Split(line, separator);
  header.closed = names.size() > 1 && names.back().empty();
  if (header.closed) names.pop_back();
  if (names.size() > kMaxColumns) return header;
  for (const std::string_view name : names) {
    const Column* column = FindColumn(name);
    if (column != nullptr && column->anything) {
      ++header.free_columns;
      header.free_at = header.columns.size();
    }
    header.identified =
        header.identified || name == "JobID" || (column != nullptr && column->name == "JOBIDRAW");
    header.columns.push_back(column);
  }
  return header;
}

// The values of the columns; empty if it cannot be said which is which.
std::vector<std::string_view> ReadColumns(std::string_view line, char separator,
                                          const Header& header) {
  if (header.closed && line.ends_with(separator)) line.remove_suffix(1);
  std::vector<std::string_view> values = Split(line, separator);
  const size_t columns = header.columns.size();
  if (values.size() == columns) return values;
  if (values.size() < columns || values.size() > kMaxField || header.free_columns != 1) return {};
  // All others are counted from the two ends.
  const size_t surplus = values.size() - columns;
  const std::string_view first = values[header.free_at];
  const std::string_view last = values[header.free_at + surplus];
  const size_t size = static_cast<size_t>(last.data() + last.size() - first.data());
  values[header.free_at] = std::string_view(first.data(), size);
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(header.free_at) + 1;
  values.erase(begin, begin + static_cast<std::ptrdiff_t>(surplus));
  return values;
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

Read<SlurmJob> ReadAccountingText(std::string_view text, char separator) {
  Read<SlurmJob> read;
  Header header;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (Said(line).empty()) continue;
    if (header.columns.empty()) {
      header = ReadHeader(line, separator);
      if (!header.identified) return {{}, 1};
      continue;
    }
    const std::vector<std::string_view> values = ReadColumns(line, separator, header);
    Row row;
    for (size_t i = 0; i < values.size(); ++i) {
      if (header.columns[i] && header.columns[i]->set) header.columns[i]->set(values[i], row);
    }
    if (values.empty() || !Identify(row)) {
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
