// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whom a job may go on from: what the scheduler was told when it was submitted, and what is left of
// the job that it waited for, or of itself before it was begun anew. Bounded. Single writer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/ids.h"
#include "detectors/model/job_summary.h"
#include "detectors/model/observation.h"
#include "detectors/model/slurm_dependency.h"
#include "detectors/model/time.h"

namespace rankscope::windows {

// One of the scheduler's words, and where it stood.
struct SchedulerWord {
  std::string field, value;
  std::string origin;  // scontrol | sacct | environment ...
  Timestamp t;

  bool present() const { return !value.empty(); }
  template <class A>
  void Fields(A& a) {
    a(field, value, origin, t);
  }
};

struct ParentJob {
  bool known = false;  // else nothing is left of it where it was looked for
  std::string job_id;  // that was asked for: "8841", "7_3"
  JobSummary summary;  // meaningful where known
  std::string line;    // as it was found
  std::string
      origin;  // state | controller | accounting; of an unknown one: where it was looked for
  Timestamp t;

  template <class A>
  void Fields(A& a) {
    a(known, job_id, summary, line, origin, t);
  }
};

class ParentJobs {
 public:
  static constexpr size_t kMost = 4;        // summaries of 1 kB
  static constexpr size_t kValueCap = 512;  // of the scheduler's words

  void OnSchedulerRecord(const SchedulerRecord& record, Timestamp t);
  // The number of the job that was asked for and its summary, or "unknown".
  void OnSummary(const SchedulerFact& fact, Timestamp t);
  void OnEnvironment(const std::vector<KeyValue>& environment, Timestamp t);

  const std::vector<ParentJob>& all() const { return all_; }
  const SchedulerWord& dependency() const { return dependency_; }
  const SchedulerWord& submit_line() const { return submit_line_; }
  // `array_task`: of the job itself, "9_3".
  std::vector<SlurmDependency> Dependencies(std::string_view array_task) const {
    return ReadSlurmDependencies(dependency_.value, array_task);
  }

  template <class A>
  void Fields(A& a) {
    a(all_, dependency_, submit_line_);
    if (all_.size() > kMost) all_.resize(kMost);  // restored from damaged bytes
  }

 private:
  void TakeDependency(SchedulerWord word);

  std::vector<ParentJob> all_;
  SchedulerWord dependency_;
  SchedulerWord submit_line_;
};

}  // namespace rankscope::windows
