// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is published of the engine's jobs: a copy of each job that others may read at any time, made
// anew only when the engine has written the job anew. Beside a thousand jobs that have ended a tick
// copies the running ones only. Loop thread only; what is handed out is for any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "detectors/engine/engine.h"
#include "detectors/status/job_status.h"
#include "exporter/metrics/published.h"

namespace rankscope::exporter {

class PublishedJobs {
 public:
  // What a tick of the engine has written anew or forgotten.
  void Note(const engine::Output& output);
  // Of a job that the engine has just written: somebody else's copy, so that there is one only.
  void Share(std::shared_ptr<const JobStatus> copy);

  struct Notes {
    std::function<void(JobStatus& job)> on_running;  // writes in the copy of a job that runs
    // Of verdicts that the disk has not taken; an empty reason: it has all.
    std::function<bool(const std::string& job_id)> is_unkept;
    std::string why_unkept;
  };

  // The engine's jobs and those of `kept` that it does not know, by job id.
  metrics::JobList All(const engine::Engine& engine, metrics::JobList kept, const Notes& notes);

 private:
  struct Unkept {
    std::shared_ptr<const JobStatus> verdict;
    std::shared_ptr<const JobStatus> noted;
  };
  void NoteUnkept(metrics::JobList& jobs, const Notes& notes);

  std::map<std::string, std::shared_ptr<const JobStatus>, std::less<>> copies_;
  std::map<std::string, Unkept> unkept_;  // copies with the note, made once for each verdict
  std::string why_unkept_;                // that stands in them
};

}  // namespace rankscope::exporter
