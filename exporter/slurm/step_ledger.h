// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The steps of jobs: which began, and how each ended. Slurm lists the steps that run; how one ended
// only accounting knows, which is asked about a job once one of its steps is gone or the job has
// ended. A step is known by its job, its number and its start, and each of its events is told once.
// Pure and bounded; single writer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/slurm_report.h"
#include "exporter/slurm/records.h"
#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {

// What is told of a step: step_id, name, nodes, tasks, start, end, elapsed_seconds, exit.
std::vector<KeyValue> StepFacts(const SlurmJob& step);

// Nanoseconds of a time in seconds; 0: it is none.
inline int64_t WallOf(std::string_view second) {
  constexpr int64_t kMaxSecond = int64_t{1} << 32;  // in nanoseconds, a later time is none
  const int64_t value = ReadInteger(second).value_or(0);
  return value > 0 && value < kMaxSecond ? value * 1'000'000'000 : 0;
}

class StepLedger {
 public:
  static constexpr size_t kMaxJobs = 4096;  // the one that nothing was heard of for longest goes
  static constexpr size_t kMaxStepsOfJob = 64;  // scripts that start thousands are not followed
  static constexpr size_t kMaxWaiting = 4096;
  static constexpr int kMaxTries = 5;  // rounds: accounting is some seconds behind

  // Takes up an event told in an earlier life.
  void Remember(const SlurmEvent& event);
  // `steps`: all that run now. Jobs of steps that are gone are due.
  std::vector<SlurmEvent> Update(const std::vector<SlurmJob>& steps, int64_t now,
                                 std::string_view source);
  // Accounting's rows, of jobs and of steps.
  std::vector<SlurmEvent> Explain(const std::vector<SlurmJob>& rows, int64_t now,
                                  std::string_view source);
  // The job has ended, or was begun anew.
  void NoteEnd(const std::string& job_id);

  // Jobs of which accounting is to be asked.
  std::vector<std::string> TakeDue(size_t most);
  // Accounting could not be asked about these.
  void PutBack(const std::vector<std::string>& ids);
  // It was: those of which it does not know the end yet are due again.
  void Settle(const std::vector<std::string>& asked, const std::vector<SlurmJob>& rows);

  // The newest, for /metrics; at most kMostShown.
  static constexpr size_t kMostShown = 512;
  const std::deque<SlurmStepState>& newest() const { return newest_; }
  int64_t left_out() const { return left_out_; }

 private:
  struct Known {
    int64_t start = 0, end = 0;  // told
    bool runs = false, seen = false;
  };
  struct Steps {
    std::map<std::string, Known> all;
    int64_t touched = 0;
  };

  Known* Find(const SlurmJob& step);
  void Tell(const SlurmJob& step, int64_t now, std::string_view source,
            std::vector<SlurmEvent>& events);
  void TellAll(const std::vector<SlurmJob>& rows, int64_t now, std::string_view source,
               std::vector<SlurmEvent>& events);
  void Show(const SlurmJob& step);
  void Wait(const std::string& job_id, int tries);

  std::map<std::string, Steps> jobs_;
  std::deque<std::pair<std::string, int>> waiting_;  // jobs, and how often they were asked about
  std::map<std::string, int> asked_;
  std::deque<SlurmStepState> newest_;
  int64_t clock_ = 0, left_out_ = 0;
};

}  // namespace rankscope::exporter::slurm
