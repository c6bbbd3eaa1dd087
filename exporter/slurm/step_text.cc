// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "exporter/slurm/fields.h"
#include "exporter/slurm/text_reader.h"

namespace rankscope::exporter::slurm {

std::string StepFormat(std::string_view separator) {
  std::string format;
  for (const std::string_view column : {"%i", "%j", "%S", "%N", "%A"})
    format.append(column).append(separator);
  return format;
}

Read<SlurmJob> ReadStepText(std::string_view text, std::string_view separator) {
  Read<SlurmJob> read;
  while (!Said(text).empty()) {
    std::array<std::string_view, 5> values;
    for (std::string_view& value : values) {
      const size_t at = text.find(separator);
      if (separator.empty() || at == std::string_view::npos) return ++read.unreadable, read;
      value = text.substr(0, at);
      text.remove_prefix(at + separator.size());
    }
    if (!text.empty() && text.front() != '\n') return ++read.unreadable, read;
    text.remove_prefix(std::min<size_t>(1, text.size()));
    // Steps of an array's task are named by the array: accounting knows the task's own number.
    const auto [id, name, start, nodes, tasks] = values;
    const size_t dot = id.find('.');
    if (dot == std::string_view::npos || !IsId(id.substr(0, dot))) continue;
    SlurmJob step;
    step.job_id = id.substr(0, dot);
    step.step_id = id.substr(dot + 1, 32);
    step.name = Bounded(name);
    step.state = "RUNNING";
    SetTime<&SlurmJob::start>(start, step);
    SetText<&SlurmJob::nodes>(nodes, step);
    SetCount<&SlurmJob::tasks>(tasks, step);
    if (!step.step_id.empty()) read.records.push_back(std::move(step));
  }
  return read;
}

}  // namespace rankscope::exporter::slurm
