// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/watch/job_choice.h"

#include <algorithm>
#include <optional>

#include "detectors/model/ascii.h"

namespace rankscope::watch {
namespace {

using exporter::slurm::SlurmJob;

constexpr size_t kMaxRanges = 256;  // of one word

std::optional<int64_t> Number(std::string_view text) {
  constexpr size_t kMaxDigits = 10;
  if (text.empty() || text.size() > kMaxDigits || !IsDigits(text)) return std::nullopt;
  int64_t value = 0;
  for (const char digit : text) value = value * 10 + (digit - '0');
  return value;
}

// "3", "0-9", "0-100:4"
std::optional<TaskRange> ReadRange(std::string_view text) {
  TaskRange range;
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    const auto step = Number(text.substr(colon + 1));
    if (!step || *step == 0) return std::nullopt;
    range.step = *step;
    text = text.substr(0, colon);
  }
  const size_t dash = text.find('-');
  const auto first = Number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : Number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  range.first = *first;
  range.last = *last;
  return range;
}

// "0-9,12", "4-9%2"; empty: it is no list of tasks.
std::vector<TaskRange> ReadTasks(std::string_view text) {
  text = text.substr(0, text.find('%'));
  std::vector<TaskRange> ranges;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const auto range = ReadRange(text.substr(0, comma));
    if (!range || ranges.size() == kMaxRanges) return {};
    ranges.push_back(*range);
    if (comma == std::string_view::npos) return ranges;
    text.remove_prefix(comma + 1);
  }
  return {};
}

// Of ranges with steps it may be said that they meet where they do not: then a bundle is shown
// until it is taken apart.
bool Meet(const std::vector<TaskRange>& a, const std::vector<TaskRange>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const TaskRange& one) {
    return std::any_of(b.begin(), b.end(), [&one](const TaskRange& other) {
      if (one.first > other.last || other.first > one.last) return false;
      const bool single = other.first == other.last;
      return !single || (other.first - one.first) % one.step == 0;
    });
  });
}

Error NotAJob(std::string_view text) {
  return Error{"'" + std::string(text.substr(0, 80)) +
               "' is no job id; give a number, a task of an array (8841_3, 8841_[0-9]) or a part "
               "of a heterogeneous job (8841+1)"};
}

}  // namespace

bool JobChoice::Matches(const SlurmJob& job) const {
  if (het_offset >= 0) return job.het_job_id == number && job.het_offset == het_offset;
  if (tasks.empty())
    return job.job_id == number || job.array_job_id == number || job.het_job_id == number;
  if (job.array_job_id != number) return false;
  const std::vector<TaskRange> of_job = ReadTasks(job.array_task);
  // Slurm cuts a long list: its tasks are met when they have numbers of their own.
  return of_job.empty() ? IsBundle(job) : Meet(tasks, of_job);
}

std::string JobChoice::Asked() const {
  const bool one = tasks.size() == 1 && tasks[0].first == tasks[0].last;
  return one ? number + '_' + std::to_string(tasks[0].first) : number;
}

Result<JobChoice> ReadJobChoice(std::string_view text) {
  JobChoice choice;
  choice.text = text;
  const size_t sign = text.find_first_of("_+");
  const auto number = Number(text.substr(0, sign));
  if (!number || *number == 0) return NotAJob(text);
  choice.number = std::to_string(*number);
  if (sign == std::string_view::npos) return choice;
  std::string_view rest = text.substr(sign + 1);
  if (text[sign] == '+') {
    constexpr int64_t kMaxParts = 0xffff;
    const auto offset = Number(rest);
    if (!offset || *offset > kMaxParts) return NotAJob(text);
    choice.het_offset = static_cast<int32_t>(*offset);
    return choice;
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  choice.tasks = ReadTasks(rest);
  if (choice.tasks.empty()) return NotAJob(text);
  return choice;
}

bool IsBundle(const SlurmJob& job) {
  return !job.array_job_id.empty() && !IsDigits(job.array_task);
}

std::string ShownId(const SlurmJob& job) {
  if (!job.het_job_id.empty() && job.het_offset >= 0)
    return job.het_job_id + '+' + std::to_string(job.het_offset);
  if (job.array_job_id.empty() || job.array_task.empty()) return job.job_id;
  if (!IsBundle(job)) return job.array_job_id + '_' + job.array_task;
  constexpr size_t kMaxShown = 60;
  const bool bracketed = job.array_task.starts_with('[');
  return job.array_job_id + (bracketed ? "_" : "_[") + job.array_task.substr(0, kMaxShown) +
         (bracketed ? "" : "]");
}

}  // namespace rankscope::watch
