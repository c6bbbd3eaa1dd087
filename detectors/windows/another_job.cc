// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/another_job.h"

#include <string_view>

#include "detectors/model/ascii.h"

namespace rankscope::windows {
namespace {

// "8841", "8841.0" and "8841.batch", "12_3", "12+0": the job that a step is of.
std::string_view JobOfStep(std::string_view id) {
  return id.substr(0, id.find('.'));
}

}  // namespace

bool OfAnotherJob(const logs::Incident& incident, const JobNumbers& job) {
  if (incident.kind != logs::IncidentKind::kSchedulerEnd &&
      incident.kind != logs::IncidentKind::kHostOom) {
    return false;
  }
  std::string_view named;
  for (const KeyValue& field : incident.fields) {
    if (field.key == "job" || field.key == "step") named = JobOfStep(field.value);
  }
  const std::string_view own = job.job_id;
  if (named.empty() || !IsDigits(own) || named == own || named == job.array_task) return false;
  // "12_3" of an array is not told apart where this job does not know whether it is of one.
  const size_t mark = named.find_first_of("_+");
  const std::string_view base = named.substr(0, mark);
  const std::string_view array = job.array_task.substr(0, job.array_task.find('_'));
  if (!IsDigits(base) || job.heterogeneous) return false;
  if (mark == std::string_view::npos) return base != array;
  return named[mark] == '_' ? !array.empty() : base != own;
}

}  // namespace rankscope::windows
