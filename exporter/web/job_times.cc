// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/web/job_times.h"

#include <cmath>

namespace rankscope::web {

double BeganAt(const JobStatus& job) {
  double began = kUnknown;
  const auto take = [&began](double seconds) {
    if (std::isfinite(seconds) && !(began <= seconds)) began = seconds;
  };
  for (const JobSpan& span : job.timeline.spans) take(span.from_wall_seconds);
  if (!std::isnan(began)) return began;
  for (const JobMark& mark : job.timeline.marks) {
    if (mark.kind != "submitted") take(mark.wall_seconds);
  }
  return began;
}

double EndedAt(const JobStatus& job) {
  if (job.running) return kUnknown;
  if (job.verdict.disposition().at_ns() != 0)
    return static_cast<double>(job.verdict.disposition().at_ns()) * 1e-9;
  double ended = kUnknown;
  for (const JobSpan& span : job.timeline.spans) {
    if (!span.suspended && !(ended >= span.until_wall_seconds)) ended = span.until_wall_seconds;
  }
  return ended;
}

}  // namespace rankscope::web
