// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is shown of each job that the engine knows: written anew when the engine says so, and only
// then, so that beside a thousand jobs that have ended a tick writes the running ones. Single
// writer; what is handed out never changes and is for any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "detectors/engine/engine.h"
#include "detectors/status/job_status.h"

namespace rankscope::status {

class JobStatuses {
 public:
  // A user's name as the node has it; empty: it is not known, or not yet.
  using NameOf = std::function<std::string(int64_t uid)>;

  // Without names, users are what their jobs and numbers say.
  explicit JobStatuses(NameOf names = {}) : names_(std::move(names)) {}

  // After each tick of the engine, with what it returned.
  void Update(const engine::Engine& engine, const engine::Output& output);
  // The name of a user has become known.
  void Named(int64_t uid);
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

  NameOf names_;
  std::map<std::string, Shown, std::less<>> jobs_;
};

}  // namespace rankscope::status
