// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is shown of each job that the engine knows: written anew when the engine says so, and only
// then, so that beside a thousand jobs that have ended a tick writes the running ones. Single
// writer; what is handed out never changes and is for any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "detectors/engine/engine.h"
#include "detectors/status/job_status.h"

namespace rankscope::status {

class JobStatuses {
 public:
  // After each tick of the engine, with what it returned.
  void Update(const engine::Engine& engine, const engine::Output& output);
  // Somebody else's copy of one that was just written, so that it is in memory once.
  void Replace(std::shared_ptr<const JobStatus> copy);

  // Null: the engine does not know the job.
  std::shared_ptr<const JobStatus> Find(std::string_view job_id) const;

  // By job id.
  template <class F>
  void ForEach(F f) const {
    for (const auto& [id, job] : jobs_) f(job.status);
  }
  size_t size() const { return jobs_.size(); }

 private:
  struct Shown {
    Timestamp begin;  // of the job: another of the same id begins later
    std::shared_ptr<const JobStatus> status;
  };
  void Renew(const engine::JobView& view);

  std::map<std::string, Shown, std::less<>> jobs_;
};

}  // namespace rankscope::status
