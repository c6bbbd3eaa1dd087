// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is published of jobs: what the engine knows of them now, else what was kept of them, each
// with what the disk has not taken. Loop thread only; what is handed out is for any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "detectors/status/job_statuses.h"
#include "exporter/metrics/published.h"

namespace rankscope::exporter {

class PublishedJobs {
 public:
  struct Notes {
    // What is to be said in the verdict of a job that runs: null = nothing.
    std::function<std::shared_ptr<const JobStatus>(const JobStatus& job)> on_running;
    // Of verdicts that the disk has not taken; an empty reason: it has all.
    std::function<bool(const std::string& job_id)> is_unkept;
    std::string why_unkept;
  };

  // Those of `known` and those of `kept` that are not among them, by job id.
  metrics::JobList All(const status::JobStatuses& known, metrics::JobList kept, const Notes& notes);

 private:
  struct Unkept {
    std::shared_ptr<const JobStatus> verdict;
    std::shared_ptr<const JobStatus> noted;
  };
  void NoteUnkept(metrics::JobList& jobs, const Notes& notes);

  std::map<std::string, Unkept> unkept_;  // copies with the note, made once for each verdict
  std::string why_unkept_;                // that stands in them
};

}  // namespace rankscope::exporter
