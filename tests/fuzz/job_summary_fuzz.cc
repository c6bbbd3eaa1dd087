// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as what is left of a job, which passes through Slurm's comments: what is read can be
// written again, means the same then, and never grows beyond its line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "detectors/model/job_summary.h"

using namespace rankscope;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view line = FindJobSummary(text);
  if (line.size() > JobSummary::kMostBytes) std::abort();
  const auto summary = ReadJobSummary(text);
  if (!summary) return 0;
  if (summary->job_id.empty() || summary->job_id.size() > JobSummary::kMostWordBytes) std::abort();
  if (summary->checkpoints.size() > JobSummary::kMostCheckpoints) std::abort();
  const std::string written = JobSummaryToText(*summary);
  if (written.size() > JobSummary::kMostBytes) std::abort();
  const auto again = ReadJobSummary(written);
  if (!again || again->job_id != summary->job_id || again->code != summary->code) std::abort();
  // Once its numbers have the digits that are written, nothing changes any more.
  const std::string settled = JobSummaryToText(*again);
  const auto last = ReadJobSummary(settled);
  if (!last || JobSummaryToText(*last) != settled) std::abort();
  return 0;
}
