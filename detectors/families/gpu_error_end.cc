// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// B2, X3, X5 and X21 as far as text decides them: hardware errors that the CUDA runtime or the
// kernel names, faults of the program's own kernels, broken transports, failing storage.
#include "detectors/families/gpu_error_end.h"

#include <algorithm>

#include "detectors/features/gpu_error.h"

namespace rankscope::families {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

bool IsUnknownDriverError(const JobFeatures& f) {
  bool unknown = false;
  for (const Cause& cause : f.causes) {
    const features::GpuErrorOwner owner = features::OwnerOfGpuError(cause.incident());
    if (owner != features::GpuErrorOwner::kNone && owner != features::GpuErrorOwner::kUndecided)
      return false;
    const std::vector<KeyValue>& fields = cause.incident().fields;
    unknown = unknown || (cause.incident().kind == IncidentKind::kCudaError &&
                          std::any_of(fields.begin(), fields.end(), [](const KeyValue& field) {
                            return field.key == "error" && field.value == "unknown";
                          }));
  }
  return unknown;
}

bool IsPeerAccess(const logs::Incident& incident) {
  constexpr std::string_view kTexts[] = {"peer access is not supported", "NVLink SHARP",
                                         "transport/nvls.cc", "peer mapping resources exhausted"};
  return std::any_of(std::begin(kTexts), std::end(kTexts), [&](std::string_view text) {
    return incident.message.find(text) != std::string::npos ||
           incident.line.find(text) != std::string::npos;
  });
}

RuledOut NotTheEnd(const JobFeatures& f, bool (*mine)(const logs::Incident&),
                   std::string_view nothing) {
  for (const Cause& cause : f.causes) {
    if (!mine(cause.incident())) continue;
    if (cause.role == Cause::Role::kRecovered)
      return Excluded(Reason::kWentOn, {cause.evidence, f.last_progress_evidence});
    return Excluded(Reason::kOtherEvent, {cause.evidence});
  }
  return NoSuchText(f, nothing);
}

}  // namespace rankscope::families
