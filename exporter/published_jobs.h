// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is published of the engine's jobs: a copy of each job that others may read at any time, made
// anew only when the engine has written the job anew. Beside a thousand jobs that have ended a tick
// copies the running ones only. Loop thread only; what is handed out is for any thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "detectors/engine.h"
#include "detectors/job_status.h"
#include "exporter/metrics/published.h"

namespace rankscope::exporter {

class PublishedJobs {
 public:
  // What a tick of the engine has written anew or forgotten.
  void Note(const engine::Output& output);
  // Of a job that the engine has just written: somebody else's copy, so that there is one only.
  void Share(std::shared_ptr<const JobStatus> copy);

  // The engine's jobs and those of `kept` that it does not know, by job id. `trouble`: why nothing
  // is recorded; it becomes a note of the running jobs' verdicts. Empty: there is none.
  metrics::JobList All(const engine::Engine& engine, metrics::JobList kept,
                       const std::string& trouble);

 private:
  std::map<std::string, std::shared_ptr<const JobStatus>, std::less<>> copies_;
};

}  // namespace rankscope::exporter
