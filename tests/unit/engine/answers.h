// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What an engine answers of one job.
#pragma once

#include <optional>
#include <string_view>

#include "detectors/engine/engine.h"
#include "detectors/status/describe_job.h"

namespace rankscope::testing {

// A default one when the engine knows no such job.
inline proto::Verdict VerdictOf(const engine::Engine& engine, std::string_view job_id = "j1") {
  const std::optional<engine::JobView> job = engine.Find(job_id);
  return job ? *job->verdict : proto::Verdict();
}

// What is shown of a job; nullopt: the engine knows of none.
inline std::optional<JobStatus> StatusOf(const engine::Engine& engine, std::string_view job_id) {
  const std::optional<engine::JobView> job = engine.Find(job_id);
  if (!job) return std::nullopt;
  return status::DescribeJob(*job);
}

}  // namespace rankscope::testing
