// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a line of Slurm's in a job's text is about that job. Pure.
#pragma once

#include <string_view>

#include "detectors/logs/record.h"

namespace rankscope::windows {

struct JobNumbers {
  std::string_view job_id;
  std::string_view array_task;  // "12_3"; empty: none, or not told
  bool heterogeneous = false;   // it has parts with numbers of their own
};

// A line of Slurm's about a job names it, and this one has another number: it was printed of a job
// that this one started or watches. Where no number of this job's is known, place and stream
// decide; and so do they for a part of an array or of a heterogeneous job, which has a number of
// its own besides.
bool OfAnotherJob(const logs::Incident& incident, const JobNumbers& job);

}  // namespace rankscope::windows
